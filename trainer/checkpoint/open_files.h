// The files from which a checkpoint is read: that of a thousand ranks has a thousand, more than a process may
// have open. The most recently used files stay open; others are opened again and must then be the same files.
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

namespace shardscope::trainer::checkpoint {

class OpenFiles {
  public:
    static constexpr std::size_t kMostOpen = 128;  // besides those that a caller holds

    explicit OpenFiles(std::size_t most_open = kMostOpen) : most_open_(most_open) {}

    // Opens the next file and returns its size. std::system_error.
    std::int64_t add(const std::filesystem::path& path);

    // The file, which stays open as long as the caller holds it. Any thread. std::system_error: it was
    // removed, or (ESTALE) another file has its name.
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
    mutable std::list<std::size_t> recent_;  // the files that are open, the most recently used first
};

}  // namespace shardscope::trainer::checkpoint
