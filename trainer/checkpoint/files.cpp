#include "trainer/checkpoint/files.h"

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/schema/text.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/foreign.h"
#include "trainer/checkpoint/manifest.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStepPrefix = "step-", kUnfinishedSuffix = ".tmp", kReplacedSuffix = ".old";
constexpr std::string_view kTrialPrefix = ".trial-";
constexpr const char* kLatest = "latest";

[[noreturn]] void fail(const fs::path& path, int error) {
    throw std::system_error(error, std::generic_category(), path.string());
}

bool has_manifest(const fs::path& folder) {
    std::error_code ignored;
    return fs::is_regular_file(folder / kManifestName, ignored);
}

// The step number in ".step-20.old"; nullopt for any other name.
std::optional<std::int64_t> replaced_step_of(std::string_view name) {
    if (!name.starts_with('.') || !name.ends_with(kReplacedSuffix)) return std::nullopt;
    name.remove_prefix(1);
    name.remove_suffix(kReplacedSuffix.size());
    return step_of_folder(name);
}

std::optional<fs::path> highest_step(const fs::path& save) {
    // The highest step, and whether only its replaced folder is left.
    std::optional<std::pair<std::int64_t, bool>> highest;
    std::optional<fs::path> folder;
    std::error_code error;
    for (auto entry = fs::directory_iterator(save, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        const std::optional<std::int64_t> in_place = step_of_folder(name), replaced = replaced_step_of(name);
        if ((!in_place && !replaced) || !has_manifest(entry->path())) continue;
        const std::pair found(in_place ? *in_place : *replaced, in_place.has_value());
        if (highest && found < *highest) continue;
        highest = found;
        folder = entry->path();
    }
    return folder;
}

// Exchanges `from` and `to`, which may be a non-empty folder. What `to` contained is then called `from`.
void exchange(const fs::path& from, const fs::path& to, const fs::path& aside) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
    if (errno != EINVAL && errno != ENOSYS) fail(to, errno);
    // Fallback for file systems that cannot exchange two folders, such as NFS. If this is interrupted after
    // the first rename, find_checkpoint() takes `aside` for what `latest` names.
    fs::remove_all(aside);
    fs::rename(to, aside);
    fs::rename(from, to);
    fs::rename(aside, from);
}

bool is_unfinished(std::string_view name) {
    return (name.starts_with(".step-") || name.starts_with(kTrialPrefix)) &&
           name.ends_with(kUnfinishedSuffix);
}

}  // namespace

File::File(fs::path path, int flags)
    : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0666)), path_(std::move(path)) {
    if (!descriptor_) fail(path_, errno);
}

File File::open_to_read(const fs::path& path) {
    return {path, O_RDONLY};
}

File File::open_to_write(const fs::path& path) {
    return {path, O_WRONLY | O_CREAT};
}

File File::create(const fs::path& path) {
    return {path, O_WRONLY | O_CREAT | O_EXCL};
}

std::int64_t File::bytes() const {
    struct stat status {};
    if (::fstat(descriptor_.get(), &status) != 0) fail(path_, errno);
    if (S_ISDIR(status.st_mode)) fail(path_, EISDIR);
    return status.st_size;
}

File::Identity File::identity() const {
    struct stat status {};
    if (::fstat(descriptor_.get(), &status) != 0) fail(path_, errno);
    return {status.st_dev, status.st_ino};
}

void File::read(std::span<std::byte> bytes, std::int64_t position) const {
    while (!bytes.empty()) {
        const ssize_t got = ::pread(descriptor_.get(), bytes.data(), bytes.size(), position);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(path_, errno);
        if (got == 0) fail(path_, EIO);
        bytes = bytes.subspan(static_cast<std::size_t>(got));
        position += got;
    }
}

void File::write(std::span<const std::byte> bytes, std::int64_t position) const {
    while (!bytes.empty()) {
        const ssize_t put = ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), position);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail(path_, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(put));
        position += put;
    }
}

void File::sync() const {
    if (::fsync(descriptor_.get()) != 0) fail(path_, errno);
}

bool File::lock() const {
    while (::flock(descriptor_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) return false;
        if (errno != EINTR) break;
    }
    return true;
}

std::string read_file(const fs::path& path) {
    const File file = File::open_to_read(path);
    std::string text(static_cast<std::size_t>(file.bytes()), '\0');
    file.read(std::as_writable_bytes(std::span(text)), 0);
    return text;
}

void write_file(const fs::path& path, std::string_view text) {
    const File file = File::open_to_write(path);
    file.write(std::as_bytes(std::span(text)), 0);
    file.sync();
}

void sync_folder(const fs::path& folder) {
    File::open_to_read(folder).sync();
}

std::string step_folder_name(std::int64_t step) {
    return fmt::format("{}{}", kStepPrefix, step);
}

std::string unfinished_folder_name(std::int64_t step) {
    return fmt::format(".{}{}{}", kStepPrefix, step, kUnfinishedSuffix);
}

std::string replaced_folder_name(std::int64_t step) {
    return fmt::format(".{}{}{}", kStepPrefix, step, kReplacedSuffix);
}

std::string trial_file_name(std::string_view name) {
    return fmt::format("{}{}{}", kTrialPrefix, name, kUnfinishedSuffix);
}

std::optional<std::int64_t> step_of_folder(std::string_view name) {
    if (!name.starts_with(kStepPrefix)) return std::nullopt;
    name.remove_prefix(kStepPrefix.size());
    const auto step = traces::schema::number_of<std::int64_t>(name);
    return step.value_or(-1) < 0 ? std::nullopt : step;
}

void replace_file(const fs::path& path, std::string_view text) {
    const fs::path fresh = path.parent_path() / ("." + path.filename().string() + ".tmp");
    fs::remove(fresh);
    write_file(fresh, text);
    fs::rename(fresh, path);
    sync_folder(path.parent_path());
}

std::vector<std::int64_t> saved_steps(const fs::path& save) {
    std::vector<std::int64_t> steps;
    for (const fs::directory_entry& entry : fs::directory_iterator(save)) {
        const auto step = step_of_folder(entry.path().filename().string());
        if (step && has_manifest(entry.path())) steps.push_back(*step);
    }
    return steps;
}

void remove_step(const fs::path& save, std::int64_t step) {
    // What is left of an interrupted removal looks like an interrupted save.
    const fs::path going = save / unfinished_folder_name(step);
    fs::remove_all(going);
    fs::rename(save / step_folder_name(step), going);
    fs::remove_all(going);
}

void publish_step(const fs::path& save, std::int64_t step) {
    const fs::path unfinished = save / unfinished_folder_name(step), place = save / step_folder_name(step);
    sync_folder(unfinished);
    const bool replaces = fs::exists(fs::symlink_status(place));
    if (replaces) {
        exchange(unfinished, place, save / replaced_folder_name(step));
    } else {
        fs::rename(unfinished, place);
    }
    sync_folder(save);
    replace_file(save / kLatest, step_folder_name(step) + "\n");
    if (replaces) fs::remove_all(unfinished);
}

void remove_unfinished(const fs::path& save) {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(save)) {
        names.push_back(entry.path().filename().string());
    }
    for (const std::string& name : names) {
        const std::optional<std::int64_t> replaced = replaced_step_of(name);
        if (replaced && !fs::exists(save / step_folder_name(*replaced))) {
            fs::rename(save / name, save / step_folder_name(*replaced));
        } else if (replaced || is_unfinished(name)) {
            fs::remove_all(save / name);
        }
    }
}

fs::path find_checkpoint(const fs::path& path) {
    if (has_manifest(path) || is_foreign(path)) return path;
    const fs::path latest = path / kLatest;
    std::error_code error;
    if (!fs::is_directory(path, error)) {
        throw CheckpointError(fmt::format(
            "{}: {}; name a folder that checkpoint.save filled, or a *.safetensors file", path.string(),
            fs::exists(path, error) ? "this file is not a checkpoint" : "there is no such file or folder"));
    }
    if (!fs::exists(latest, error)) {
        if (const std::optional<fs::path> highest = highest_step(path)) return *highest;
        throw CheckpointError(
            fmt::format("{}: contains no complete checkpoint (neither {} nor {} is in it); name a folder "
                        "that checkpoint.save filled",
                        path.string(), kManifestName, kLatest));
    }
    std::string name;
    try {
        name = read_file(latest);
    } catch (const std::system_error& unreadable) {
        throw CheckpointError(
            fmt::format("{}: cannot be read: {}", latest.string(), unreadable.code().message()));
    }
    while (!name.empty() && (name.back() == '\n' || name.back() == '\r')) name.pop_back();
    const std::optional<std::int64_t> step = step_of_folder(name);
    if (!step) {
        throw CheckpointError(
            fmt::format("{}: does not name a checkpoint (\"step-\" and a number); name its folder "
                        "itself, {}/step-N",
                        latest.string(), path.string()));
    }
    fs::path replaced = path / replaced_folder_name(*step);
    if (!has_manifest(path / name) && has_manifest(replaced)) return replaced;
    if (!has_manifest(path / name)) {
        throw CheckpointError(
            fmt::format("{}: names {}, which contains no {}; name another checkpoint's folder itself, "
                        "{}/step-N",
                        latest.string(), name, kManifestName, path.string()));
    }
    return path / name;
}

bool holds_checkpoints(const fs::path& save) {
    std::error_code error;
    return fs::exists(save / kLatest, error) || highest_step(save).has_value();
}

}  // namespace shardscope::trainer::checkpoint
