// Decoded pictures of files, kept in memory until a budget is used up. None is given up for another: an epoch
// needs each once, in another order than the last, so that it does not matter which ones are kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/data/image_files.h"

namespace shardscope::trainer::data {

// The bytes that are left for pictures; several files may share it.
using PictureBudget = std::shared_ptr<std::atomic<std::int64_t>>;

class PictureCache final : public ImageFiles {
  public:
    PictureCache(std::shared_ptr<const ImageFiles> files, PictureBudget budget);

    std::int64_t images() const override { return files_->images(); }
    std::int32_t label(std::int64_t image) const override { return files_->label(image); }
    Picture open(std::int64_t image, std::vector<unsigned char>& room) const override;
    bool decodes() const override { return files_->decodes(); }
    std::vector<std::string> class_names() const override { return files_->class_names(); }

  private:
    struct Kept {
        std::vector<unsigned char> bytes;
        Picture picture;  // of these bytes
    };

    std::shared_ptr<const ImageFiles> files_;
    PictureBudget budget_;
    mutable std::mutex mutex_;
    mutable std::unordered_map<std::int64_t, Kept> kept_;  // its elements stay where they are
};

}  // namespace shardscope::trainer::data
