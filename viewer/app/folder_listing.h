// The contents of a folder, as the file window shows them: folders first, then files that may be traces.
// Reads the file system; any thread. No Dear ImGui.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::viewer::app {

struct FolderEntry {
    std::string name;
    bool folder = false;
    std::int64_t bytes = 0;
    std::int64_t modified = 0;  // seconds since 1970, UTC; 0: not known
};

struct FolderListing {
    std::string path;  // absolute
    std::vector<FolderEntry> entries;
    std::string error;  // why it cannot be read; empty if it can
};

// Whether a name looks like a trace: .sqlite, .sqlite3, .db, .json, .pickle, .pkl, also packed (.gz).
bool looks_like_trace(const std::string& name);

// The kinds of files that the file window can show, by the endings of their names.
enum class FileKind { trace, database, json, snapshot, session, any };
bool is_of_kind(const std::string& name, FileKind kind);

enum class EntryOrder { name, modified, bytes };

// Folders stay first. Entries that are equal are sorted by name.
void sort_entries(std::vector<FolderEntry>& entries, EntryOrder order, bool descending);

// Whether a name contains what was typed, whatever the case of its letters.
bool has_typed(const std::string& name, const std::string& typed);

// By name. Omits hidden entries and, unless `all_files` is set, files that do not look like traces.
FolderListing list_folder(const std::string& path, bool all_files);

}  // namespace shardscope::viewer::app
