// The folder of a checkpoint on disk: files that are synced to the disk, and folders that appear as a whole.
//
//     SAVE/latest              the name of the newest checkpoint and a line feed
//     SAVE/best                the name of the one with the lowest validation loss, and the loss (keep.h)
//     SAVE/step-20/            a checkpoint; its manifest.json is written last
//     SAVE/.lock               held by the run that saves there
//     SAVE/.step-30.tmp/       a checkpoint that is being written; never read
//     SAVE/.step-20.old/       a complete checkpoint that is about to be replaced (on file systems that
//                              cannot exchange two folders atomically)
//
// All functions throw std::system_error with the path and the system's reason unless they say otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/store/file_descriptor.h"

namespace shardscope::trainer::checkpoint {

// An open file; positions are in bytes. Any number of threads may read and write at the same time.
class File {
  public:
    static File open_to_read(const std::filesystem::path& path);
    // Creates the file if it does not exist; never truncates it.
    static File open_to_write(const std::filesystem::path& path);
    // Creates a new file; EEXIST if it exists already.
    static File create(const std::filesystem::path& path);

    std::int64_t bytes() const;
    // Identifies the file itself, whatever its name: the device and the inode number.
    using Identity = std::pair<std::uint64_t, std::uint64_t>;
    Identity identity() const;
    // Reads the whole span; EIO if the file ends before that.
    void read(std::span<std::byte> bytes, std::int64_t position) const;
    void write(std::span<const std::byte> bytes, std::int64_t position) const;
    void sync() const;  // returns when the data is on the disk
    // Locks the file for this object until the object or its process ends; false if another holds the lock.
    // True also on file systems without locks.
    bool lock() const;

  private:
    File(std::filesystem::path path, int flags);

    traces::store::FileDescriptor descriptor_;
    std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);

// Writes a new file and syncs it.
void write_file(const std::filesystem::path& path, std::string_view text);

void sync_folder(const std::filesystem::path& folder);

inline constexpr const char* kLockName = ".lock";
std::string step_folder_name(std::int64_t step);        // "step-20"
std::string unfinished_folder_name(std::int64_t step);  // ".step-20.tmp"
std::string replaced_folder_name(std::int64_t step);    // ".step-20.old"
// The step number in "step-20"; none for any other name.
std::optional<std::int64_t> step_of_folder(std::string_view name);

// ".trial-NAME.tmp": a file that is written only to test whether the folder is writable.
std::string trial_file_name(std::string_view name);

// Moves the complete checkpoint of a step from its unfinished folder to its final place, then lets `latest`
// name it. An earlier checkpoint of that step is replaced atomically and then removed.
void publish_step(const std::filesystem::path& save, std::int64_t step);

// Writes a file that names a checkpoint; whoever reads it finds the old text or the new one.
void replace_file(const std::filesystem::path& path, std::string_view text);

// The complete checkpoints in the folder, in any order.
std::vector<std::int64_t> saved_steps(const std::filesystem::path& save);

// Removes a checkpoint, which is not complete for anyone from the first moment on.
void remove_step(const std::filesystem::path& save, std::int64_t step);

// Removes what interrupted saves left behind. A checkpoint that was moved aside and not yet replaced is moved
// back.
void remove_unfinished(const std::filesystem::path& save);

// The checkpoint's folder that `path` refers to: `path` itself if it holds a manifest or is another library's
// (foreign.h); else the folder that
// its `latest` names (or, if that was moved aside, the one moved aside); else (a first save was interrupted
// before it wrote `latest`) the step with the highest number. CheckpointError if there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

// Whether the folder, which may not exist, contains checkpoints.
bool holds_checkpoints(const std::filesystem::path& save);

}  // namespace shardscope::trainer::checkpoint
