// CIFAR-10 and CIFAR-100 in their binary version (Krizhevsky: "Learning multiple layers of features from tiny
// images", 2009), in memory as they are in the files: a label of one byte, or a coarse and a fine one, then
// 32 x 32 pixels as planes of red, green and blue.
#pragma once

#include "trainer/data/image_files.h"

namespace shardscope::trainer::data {

struct CifarFile {
    std::string path, bytes;
};

class CifarImages final : public ImageFiles {
  public:
    static constexpr int kSide = 32;

    // `path`: a file, or a folder, of whose *.bin files those of the set are read: test_batch.bin and
    // test.bin are the test set. Throws DataError (data.path, data.classes) if there is none, if a file is
    // not a whole number of images, or if a label is not below `classes`.
    CifarImages(const std::string& path, int classes, ImageSet set = ImageSet::training);

    std::int64_t images() const override { return static_cast<std::int64_t>(records_.size()); }
    std::int32_t label(std::int64_t image) const override;
    Picture open(std::int64_t image, std::vector<unsigned char>& room) const override;

  private:
    std::vector<CifarFile> files_;
    std::vector<const char*> records_;  // of each image: its label, which its pixels follow
};

}  // namespace shardscope::trainer::data
