// A file that takes its name only when it is whole.
#pragma once

#include <string>
#include <string_view>

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

// What this process writes before it takes the name `target`: "run.sqlite.shardscope-new-4711", a name that
// nobody else gives a file. `kind`: "new" of what is created, "part" of what is merged, "import" of a folder.
std::string unfinished_name(const std::string& target, std::string_view kind);
// Removes those of this user's processes that are gone, also followed by ".finalizing": killed while they
// wrote, they left them.
void remove_left_ones(const std::string& target, std::string_view kind);
// Removes what those left beside `target` who were killed while they made or finished it.
void remove_litter(const std::string& target);

// Removes what SQLite keeps beside a database. With the database gone they are worth nothing; beside a new
// one they would be taken for its own.
void remove_side_files(const std::string& path);

}  // namespace shardscope::traces
