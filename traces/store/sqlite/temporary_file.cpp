#include "traces/store/sqlite/temporary_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/store/error.h"
#include "traces/store/file_descriptor.h"
#include "traces/store/sqlite/in_use.h"

namespace shardscope::traces::store {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSideFiles[] = {"-wal", "-shm", "-journal", kColumnsSuffix};

// Renames the files that are kept next to a database until the database itself is replaced: the new database
// would take SQLite's for its own, and if the old one stays it needs them.
class SideFilesApart {
  public:
    explicit SideFilesApart(const std::string& database) : database_(database) {
        for (const char* suffix : kSideFiles) {
            const std::string name = database_ + suffix;
            if (::rename(name.c_str(), (name + kAside).c_str()) == 0) moved_.push_back(name);
        }
    }
    ~SideFilesApart() {
        for (const std::string& name : moved_) ::rename((name + kAside).c_str(), name.c_str());
    }
    SideFilesApart(const SideFilesApart&) = delete;
    SideFilesApart& operator=(const SideFilesApart&) = delete;

    void remove() {
        for (const std::string& name : moved_) ::unlink((name + kAside).c_str());
        moved_.clear();
    }

  private:
    static constexpr const char* kAside = ".replaced";
    const std::string& database_;
    std::vector<std::string> moved_;
};

}  // namespace

void remove_side_files(const std::string& path) {
    for (const char* suffix : kSideFiles) ::unlink((path + suffix).c_str());
}

void rename_database(const std::string& from, const std::string& target, bool replace) {
    SideFilesApart old(target);
    int failed =
        ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, target.c_str(), replace ? 0 : RENAME_NOREPLACE);
    // Some file systems do not support this flag; then only the caller's earlier check protects the target.
    if (failed != 0 && errno == EINVAL && !replace) failed = ::rename(from.c_str(), target.c_str());
    if (failed != 0) {
        throw StoreError(
            fmt::format("{} cannot be created: {}; choose another path", target, std::strerror(errno)));
    }
    old.remove();
}

namespace {

// Suffix of the finished copy of a file while it is made.
constexpr std::string_view kFinalizing = ".finalizing";

// Another host, whose processes cannot be seen here, may be writing: recently changed files may be its own.
constexpr std::chrono::minutes kQuiet{1};

bool is_quiet(const fs::path& path) {
    std::error_code error;
    fs::file_time_type latest = fs::last_write_time(path, error);
    if (fs::is_directory(fs::symlink_status(path, error))) {
        for (fs::recursive_directory_iterator each(path, error), end; !error && each != end;
             each.increment(error))
            latest = std::max(latest, each->last_write_time(error));
    }
    return !error && fs::file_time_type::clock::now() - latest > kQuiet;
}

std::string marker(std::string_view kind) {
    return fmt::format(".shardscope-{}-", kind);
}

// The process id at the end of an unfinished name; 0 if it is not such a name.
int process_of(std::string_view number) {
    int process = 0;
    const auto [stop, fault] = std::from_chars(number.data(), number.data() + number.size(), process);
    const auto rest = number.substr(static_cast<std::size_t>(stop - number.data()));
    const bool whole = fault == std::errc() && (rest.empty() || rest == kFinalizing);
    return whole && number.front() != '0' ? process : 0;
}

bool is_ours(const fs::path& path) {
    struct stat facts {};
    return ::lstat(path.c_str(), &facts) == 0 && facts.st_uid == ::geteuid();
}

}  // namespace

std::string unfinished_name(const std::string& target, std::string_view kind) {
    return fmt::format("{}{}{}", target, marker(kind), ::getpid());
}

void remove_left_ones(const std::string& target, std::string_view kind) {
    const fs::path whole(target + marker(kind));
    const std::string begin = whole.filename().string();
    std::error_code error;
    for (fs::directory_iterator each(whole.has_parent_path() ? whole.parent_path() : ".", error), end;
         !error && each != end; each.increment(error)) {
        const std::string name = each->path().filename().string();
        if (name.size() <= begin.size() || !name.starts_with(begin)) continue;
        const int process = process_of(std::string_view(name).substr(begin.size()));
        if (process <= 0 || !is_ours(each->path())) continue;
        if (::kill(process, 0) == 0 || errno != ESRCH || !is_quiet(each->path())) continue;
        std::error_code ignored;
        fs::remove_all(each->path(), ignored);
        remove_side_files(each->path().string());
    }
}

void remove_litter(const std::string& target) {
    for (const char* kind : {"new", "part"}) remove_left_ones(target, kind);
    const std::string unfinished = target + std::string(kFinalizing);
    if (process_that_uses(unfinished) != 0) return;
    remove_side_files(unfinished);
    ::unlink(unfinished.c_str());
}

TemporaryFile::TemporaryFile(std::string path) : path_(std::move(path)) {
    if (!FileDescriptor(::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR))) {
        throw StoreError(
            fmt::format("{} cannot be created: {}; choose another path", path_, std::strerror(errno)));
    }
}

TemporaryFile::~TemporaryFile() {
    if (path_.empty()) return;
    remove_side_files(path_);
    ::unlink(path_.c_str());
}

void TemporaryFile::rename_to(const std::string& target, bool replace) {
    // The journal of a running process must not be removed.
    if (!replace && ::access(target.c_str(), F_OK) == 0) {
        throw StoreError(
            fmt::format("{} was created by another program just now; choose another path", target));
    }
    rename_database(path_, target, replace);
    path_.clear();
}

}  // namespace shardscope::traces::store
