// What a folder holds, as the file window shows it: folders first, then files that may be traces, by name.
// Reads the file system; any thread. No Dear ImGui.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::viewer {

struct FolderEntry {
    std::string name;
    bool folder = false;
    std::int64_t bytes = 0;
};

struct FolderListing {
    std::string path;  // absolute
    std::vector<FolderEntry> entries;
    std::string error;  // why it cannot be read; empty where it can
};

// Whether a name looks like a trace: .sqlite, .sqlite3, .db, .json, .pickle, .pkl, also packed (.gz).
bool looks_like_trace(const std::string& name);

// What the file window shows, by the endings of file names.
enum class FileKind { trace, database, json, snapshot, any };
bool is_of_kind(const std::string& name, FileKind kind);

// Hidden entries are left out; so are other files unless `all_files` is set.
FolderListing list_folder(const std::string& path, bool all_files);

}  // namespace shardscope::viewer
