// A file that gets its name only when it is complete.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::traces::store {

// Ends the name of the file of columns next to a trace (beside/column_file.h).
inline constexpr const char* kColumnsSuffix = ".shardscope-columns";

class TemporaryFile {
  public:
    // Creates the file for its owner only. Throws StoreError, also if it exists.
    explicit TemporaryFile(std::string path);
    ~TemporaryFile();  // removes it and SQLite's files next to it, unless it was renamed
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    const std::string& path() const { return path_; }

    // Renames the file to `target` atomically. Removes the files next to an older `target`.
    void rename_to(const std::string& target, bool replace);

  private:
    std::string path_;
};

// Renames the database `from` to `target` atomically. Removes the files next to an older `target`; on
// failure (StoreError) they stay.
void rename_database(const std::string& from, const std::string& target, bool replace);

// The name under which this process writes before the file becomes `target`:
// "run.sqlite.shardscope-new-4711", a name that no other program gives a file. `kind`: "new" for created,
// "part" for merged files, "import" for a folder.
std::string unfinished_name(const std::string& target, std::string_view kind);
// Removes such files (also those with ".finalizing" appended) that this user's killed processes left while
// they wrote.
void remove_left_ones(const std::string& target, std::string_view kind);
// Removes the files that killed processes left next to `target` while they wrote or finalized it.
void remove_litter(const std::string& target);

// Removes the files that are kept next to a database, SQLite's and that of its columns. Without the database
// they are useless; a new database would take SQLite's for its own.
void remove_side_files(const std::string& path);

}  // namespace shardscope::traces::store
