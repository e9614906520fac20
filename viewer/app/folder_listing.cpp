// See folder_listing.h.
#include "viewer/app/folder_listing.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <tuple>

#include <sys/stat.h>

#include "viewer/app/session_file.h"

namespace shardscope::viewer::app {

namespace fs = std::filesystem;

bool looks_like_trace(const std::string& name) {
    for (const std::string_view ending :
         {".sqlite", ".sqlite3", ".db", ".sqlite.gz", ".json", ".json.gz", ".pickle", ".pickle.gz", ".pkl"}) {
        if (std::string_view(name).ends_with(ending)) return true;
    }
    return false;
}

bool is_of_kind(const std::string& name, FileKind kind) {
    const auto ends = [&](std::initializer_list<std::string_view> endings) {
        return std::any_of(endings.begin(), endings.end(),
                           [&](std::string_view e) { return std::string_view(name).ends_with(e); });
    };
    switch (kind) {
        case FileKind::trace:
            return looks_like_trace(name);
        case FileKind::database:
            return ends({".sqlite", ".sqlite3", ".db", ".sqlite.gz"});
        case FileKind::json:
            return ends({".json", ".json.gz"});
        case FileKind::snapshot:
            return ends({".pickle", ".pickle.gz", ".pkl"});
        case FileKind::session:
            return ends({kSessionEnding});
        case FileKind::any:
            break;
    }
    return true;
}

FolderListing list_folder(const std::string& path, bool all_files) {
    FolderListing listing;
    std::error_code error;
    fs::path absolute = fs::absolute(path.empty() ? "." : path, error).lexically_normal();
    if (!absolute.has_filename() && absolute.has_relative_path()) absolute = absolute.parent_path();
    listing.path = absolute.string();
    fs::directory_iterator it(absolute, fs::directory_options::skip_permission_denied, error);
    if (error) {
        listing.error = listing.path + ": " + error.message();
        return listing;
    }
    for (const fs::directory_iterator end; it != end; it.increment(error)) {
        if (error) break;
        FolderEntry entry;
        entry.name = it->path().filename().string();
        if (entry.name.starts_with('.')) continue;
        std::error_code ignored;
        entry.folder = it->is_directory(ignored);
        if (!entry.folder && !all_files && !looks_like_trace(entry.name)) continue;
        if (!entry.folder) {
            const auto size = it->file_size(ignored);
            entry.bytes = ignored ? 0 : static_cast<std::int64_t>(size);
        }
        struct stat status {};
        if (::stat(it->path().c_str(), &status) == 0) entry.modified = status.st_mtime;
        listing.entries.push_back(std::move(entry));
    }
    sort_entries(listing.entries, EntryOrder::name, false);
    return listing;
}

void sort_entries(std::vector<FolderEntry>& entries, EntryOrder order, bool descending) {
    const auto by = [order](const FolderEntry& entry) {
        return order == EntryOrder::modified ? entry.modified : order == EntryOrder::bytes ? entry.bytes : 0;
    };
    std::sort(entries.begin(), entries.end(), [&](const FolderEntry& a, const FolderEntry& b) {
        if (a.folder != b.folder) return a.folder;
        const FolderEntry &first = descending ? b : a, &second = descending ? a : b;
        return by(a) == by(b) && order != EntryOrder::name
                   ? a.name < b.name
                   : std::tuple(by(first), first.name) < std::tuple(by(second), second.name);
    });
}

bool has_typed(const std::string& name, const std::string& typed) {
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
    return std::search(name.begin(), name.end(), typed.begin(), typed.end(), same) != name.end();
}

}  // namespace shardscope::viewer::app
