#include "trainer/data/picture_cache.h"

#include <utility>

namespace shardscope::trainer::data {

PictureCache::PictureCache(std::shared_ptr<const ImageFiles> files, PictureBudget budget)
    : files_(std::move(files)), budget_(std::move(budget)) {}

Picture PictureCache::open(std::int64_t image, std::vector<unsigned char>& room) const {
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = kept_.find(image); found != kept_.end()) return found->second.picture;
    }
    // Two threads may decode one picture at the same time; the first of them keeps it.
    const Picture picture = files_->open(image, room);
    const std::int64_t size =
        static_cast<std::int64_t>(picture.height) * picture.width * static_cast<std::int64_t>(picture.pixel);
    if (budget_->fetch_sub(size) < size) {
        budget_->fetch_add(size);
        return picture;
    }
    std::vector<unsigned char> bytes(picture.bytes, picture.bytes + size);
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = kept_.try_emplace(image);
    if (!is_new) {
        budget_->fetch_add(size);
        return place->second.picture;
    }
    Kept& kept = place->second;
    kept.bytes = std::move(bytes);
    kept.picture = picture;
    kept.picture.bytes = kept.bytes.data();
    return kept.picture;
}

}  // namespace shardscope::trainer::data
