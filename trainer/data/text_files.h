// The text of a job: one file, or a folder's files joined in the order of their names. Read piece by piece as
// it is needed, so a text may be larger than memory. Immutable, so any number of threads may use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/text_file.h"

namespace shardscope::trainer::data {

class TextFiles {
  public:
    // In a folder, symbolic links (they would repeat a text), hidden files and sub-folders are ignored.
    // Throws DataError (data.path) if it does not exist, is not readable, or is empty; `kind` is the word for
    // such files in the message.
    explicit TextFiles(const std::string& path, const char* kind = "text");

    const std::string& path() const { return path_; }
    int files() const { return static_cast<int>(files_.size()); }
    const TextFile& file(int index) const { return files_[static_cast<std::size_t>(index)]; }
    std::int64_t bytes() const { return starts_.back(); }

    // Which file holds byte `position` (0 <= position < bytes()), and where that file starts.
    int file_at(std::int64_t position) const;
    std::int64_t start_of(int index) const { return starts_[static_cast<std::size_t>(index)]; }

  private:
    std::string path_;
    std::vector<TextFile> files_;
    std::vector<std::int64_t> starts_;  // by file; the last entry is the number of bytes in all
};

}  // namespace shardscope::trainer::data
