// A folder with a folder of PNG and JPEG files for each class, as torchvision's ImageFolder reads it: the
// classes are the folders' names in their order, and the files of a class count wherever they lie inside.
// Files are read when they are needed (picture_cache.h keeps them).
#pragma once

#include "trainer/data/image_files.h"

namespace shardscope::trainer::data {

class PictureFolder final : public ImageFiles {
  public:
    // Throws DataError (data.path, data.classes) if a class has no file or there are more than `classes`;
    // `key` is the one that open() names.
    PictureFolder(std::string key, const std::string& path, int classes);

    std::int64_t images() const override { return static_cast<std::int64_t>(paths_.size()); }
    std::int32_t label(std::int64_t image) const override { return labels_[static_cast<std::size_t>(image)]; }
    Picture open(std::int64_t image, std::vector<unsigned char>& room) const override;
    bool decodes() const override { return true; }
    std::vector<std::string> class_names() const override { return classes_; }

  private:
    std::string key_;
    std::vector<std::string> classes_, paths_;
    std::vector<std::int32_t> labels_;  // by path
};

}  // namespace shardscope::trainer::data
