// A file mapped into memory for reading. Owns the mapping; views of text() are valid as long as it lives. The
// file must not be truncated meanwhile: as with every mapped file, the system then kills the process
// (SIGBUS). Lengthening, replacing (rename) and deleting it are harmless.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::trainer {

class MappedFile {
  public:
    // Throws std::system_error with the system's reason if it cannot be read; EINVAL if it is not a regular
    // file.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::string_view text() const { return text_; }

  private:
    std::string_view text_;  // empty if nothing is mapped
};

}  // namespace shardscope::trainer
