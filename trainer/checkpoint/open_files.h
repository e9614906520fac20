// The files of a checkpoint to read from: one of a thousand ranks has a thousand, and a process may not have
// so many open. The last that were used stay open; others are opened again, and must then be the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "trainer/checkpoint/files.h"

namespace shardscope::trainer {

class OpenFiles {
  public:
    static constexpr std::size_t kMostOpen = 128;  // beside those that somebody holds

    explicit OpenFiles(std::size_t most_open = kMostOpen) : most_open_(most_open) {}

    // Opens the next file; its size. std::system_error.
    std::int64_t add(const std::filesystem::path& path);

    // Open as long as it is held. Any thread. std::system_error: it is gone, or (ESTALE) another has its
    // name.
    std::shared_ptr<const File> file(std::size_t index) const;

  private:
    struct Entry {
        std::filesystem::path path;
        File::Identity identity;
        std::shared_ptr<const File> open;  // null: closed
    };
    void used(std::size_t index) const;

    const std::size_t most_open_;
    mutable std::mutex mutex_;
    mutable std::vector<Entry> entries_;
    mutable std::list<std::size_t> recent_;  // those that are open, the last used first
};

}  // namespace shardscope::trainer
