// A file that takes its name only when it is whole.
#pragma once

#include <string>

namespace shardscope::traces {

class TemporaryFile {
  public:
    // Creates the file, for its owner only. Throws StoreError, also where it exists.
    explicit TemporaryFile(std::string path);
    ~TemporaryFile();  // removes it and SQLite's files beside it, unless it was renamed
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    const std::string& path() const { return path_; }

    // Gives the file its name, in one step. SQLite's files beside an older `target` go with that.
    void rename_to(const std::string& target, bool replace);

  private:
    std::string path_;
};

// Gives the database `from` its name in one step. SQLite's files beside an older `target` go with that; where
// it fails (StoreError) they stay.
void rename_database(const std::string& from, const std::string& target, bool replace);

// Removes the files and folders `prefix` + number of a process that is gone, also followed by ".finalizing":
// killed while it wrote, it left them.
void remove_left_ones(const std::string& prefix);
// Removes what those left beside `target` who were killed while they made or finished it.
void remove_litter(const std::string& target);

// Removes what SQLite keeps beside a database. With the database gone they are worth nothing; beside a new
// one they would be taken for its own.
void remove_side_files(const std::string& path);

}  // namespace shardscope::traces
