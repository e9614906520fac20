// Finds and opens a text's files; see text_files.h.
#include "trainer/data/text_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "trainer/data/dataset.h"

namespace shardscope::trainer::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "data.path";

std::string what_to_give(const char* kind) {
    return fmt::format("give a {0} file, or a folder of {0} files", kind);
}

[[noreturn]] void fail_to_read(const fs::path& path, const std::error_code& error, const char* kind) {
    const char* cure = error == std::errc::too_many_files_open
                           ? "raise the limit (ulimit -Hn), or join the folder's files"
                           : "check its permissions or name another";
    throw DataError(kKey,
                    fmt::format("cannot read {}: {}; {}{}", path.string(), error.message(), cure,
                                error == std::errc::too_many_files_open ? "" : fmt::format(" {}", kind)));
}

// The regular files directly in a folder, by name.
std::vector<fs::path> text_files_in(const fs::path& folder, const char* kind) {
    std::vector<fs::path> files;
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
        const fs::file_status status = entry->symlink_status(error);
        if (error) break;
        const bool hidden = entry->path().filename().native().front() == '.';
        if (fs::is_regular_file(status) && !hidden) files.push_back(entry->path());
    }
    if (error) fail_to_read(folder, error, kind);
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<fs::path> text_files_at(const fs::path& path, const char* kind) {
    if (path.empty()) throw DataError(kKey, fmt::format("is not set; {}", what_to_give(kind)));
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
        if (error && error != std::errc::no_such_file_or_directory) fail_to_read(path, error, kind);
        throw DataError(kKey, fmt::format("{} does not exist; {}", path.string(), what_to_give(kind)));
    }
    if (fs::is_directory(status)) {
        std::vector<fs::path> files = text_files_in(path, kind);
        if (files.empty()) {
            throw DataError(kKey, fmt::format("the folder {} has no {} file directly in it; {}",
                                              path.string(), kind, what_to_give(kind)));
        }
        return files;
    }
    if (!fs::is_regular_file(status)) {
        throw DataError(
            kKey, fmt::format("{} is neither a file nor a folder; {}", path.string(), what_to_give(kind)));
    }
    return {path};
}

}  // namespace

TextFiles::TextFiles(const std::string& path, const char* kind) : path_(path), starts_{0} {
    for (const fs::path& file : text_files_at(path, kind)) {
        try {
            files_.emplace_back(file.string());
        } catch (const std::system_error& error) {
            fail_to_read(file, error.code(), kind);
        }
        starts_.push_back(starts_.back() + files_.back().size());
    }
}

int TextFiles::file_at(std::int64_t position) const {
    // The last file that starts at or before `position`, because an empty file starts where its successor
    // does.
    return static_cast<int>(std::upper_bound(starts_.begin(), starts_.end(), position) - starts_.begin()) - 1;
}

}  // namespace shardscope::trainer::data
