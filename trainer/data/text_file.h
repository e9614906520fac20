// A file that stays open for reading. Reads see the file that was opened: appending to it, replacing it
// (rename) and deleting it are harmless, and if it has been truncated, reading reports that. (Mapping the
// file would not make training noticeably faster, and the system kills a process whose mapped file is
// truncated.) Any number of threads may read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace shardscope::trainer::data {

class TextFile {
  public:
    // Throws std::system_error with the system's reason if it cannot be opened; EINVAL if it is not a regular
    // file.
    explicit TextFile(const std::string& path);
    ~TextFile();
    TextFile(TextFile&& other) noexcept
        : path_(std::move(other.path_)),
          descriptor_(std::exchange(other.descriptor_, -1)),
          size_(other.size_) {}
    TextFile& operator=(TextFile&&) = delete;

    const std::string& path() const { return path_; }
    std::int64_t size() const { return size_; }

    // Reads the bytes from `first` on, which must all be below size(). Throws std::runtime_error (one
    // sentence) if the file was truncated, std::system_error with the system's reason if it cannot be read.
    void read(std::int64_t first, std::span<char> bytes) const;
    std::string whole() const;

  private:
    std::string path_;
    int descriptor_;
    std::int64_t size_ = 0;
};

}  // namespace shardscope::trainer::data
