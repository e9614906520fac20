// The contents of a folder, as the file window shows them: folders first, then files that may be traces, by
// name. Reads the file system; any thread. No Dear ImGui.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::viewer::app {

struct FolderEntry {
    std::string name;
    bool folder = false;
    std::int64_t bytes = 0;
};

struct FolderListing {
    std::string path;  // absolute
    std::vector<FolderEntry> entries;
    std::string error;  // why it cannot be read; empty if it can
};

// Whether a name looks like a trace: .sqlite, .sqlite3, .db, .json, .pickle, .pkl, also packed (.gz).
bool looks_like_trace(const std::string& name);

// The kinds of files that the file window can show, by the endings of their names.
enum class FileKind { trace, database, json, snapshot, any };
bool is_of_kind(const std::string& name, FileKind kind);

// Omits hidden entries and, unless `all_files` is set, files that do not look like traces.
FolderListing list_folder(const std::string& path, bool all_files);

}  // namespace shardscope::viewer::app
