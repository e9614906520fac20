// Grey images in the IDX format of MNIST (LeCun, Cortes, Burges), in memory as they are in their files: one
// of images, NAME-images-idx3-ubyte, and beside it NAME-labels-idx1-ubyte with a byte for each.
#pragma once

#include "trainer/data/image_files.h"

namespace shardscope::trainer::data {

class IdxImages final : public ImageFiles {
  public:
    // `path`: the file of images. Throws DataError (data.path, data.classes) if either file is not in the
    // format, if they do not have as many, or if a label is not below `classes`.
    IdxImages(const std::string& path, int classes);

    // Whether a file's name says that it holds IDX.
    static bool has_name(const std::string& path);
    // The file of images of the set that a folder has, "train-images-idx3-ubyte" or
    // "t10k-images-idx3-ubyte"; empty: none.
    static std::string of_folder(const std::string& folder, ImageSet set);

    std::int64_t images() const override;
    std::int32_t label(std::int64_t image) const override;
    Picture open(std::int64_t image, std::vector<unsigned char>& room) const override;

  private:
    std::string pixels_, labels_;  // whole files
    int height_ = 0, width_ = 0;
};

}  // namespace shardscope::trainer::data
