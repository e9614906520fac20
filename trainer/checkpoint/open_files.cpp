#include "trainer/checkpoint/open_files.h"

#include <cerrno>
#include <system_error>

namespace shardscope::trainer::checkpoint {

std::int64_t OpenFiles::add(const std::filesystem::path& path) {
    auto file = std::make_shared<const File>(File::open_to_read(path));
    const std::int64_t bytes = file->bytes();
    const std::lock_guard lock(mutex_);
    const File::Identity identity = file->identity();
    entries_.push_back({path, identity, std::move(file)});
    recent_.push_front(entries_.size() - 1);
    used(entries_.size() - 1);
    return bytes;
}

std::shared_ptr<const File> OpenFiles::file(std::size_t index) const {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[index];
    if (!entry.open) {
        auto file = std::make_shared<const File>(File::open_to_read(entry.path));
        if (file->identity() != entry.identity)
            throw std::system_error(ESTALE, std::generic_category(), entry.path.string());
        entry.open = std::move(file);
        recent_.push_front(index);
    }
    used(index);
    return entry.open;
}

// Marks the file as the most recently used; closes the least recently used one if too many are open.
void OpenFiles::used(std::size_t index) const {
    if (recent_.front() != index) {
        recent_.remove(index);
        recent_.push_front(index);
    }
    if (recent_.size() <= most_open_) return;
    entries_[recent_.back()].open.reset();
    recent_.pop_back();
}

}  // namespace shardscope::trainer::checkpoint
