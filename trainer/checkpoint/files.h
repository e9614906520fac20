// The folder of a checkpoint on disk: files that are written through to the disk, folders that appear as a
// whole.
//
//     SAVE/latest              the name of the newest checkpoint and a line feed
//     SAVE/step-20/            a checkpoint; manifest.json in it was written last
//     SAVE/.lock               held by the run that saves there
//     SAVE/.step-30.tmp/       one that is being written; never read
//     SAVE/.step-20.old/       one whose successor is about to take its place (on file systems that cannot
//                              exchange two folders in one act); whole
//
// All functions throw std::system_error with the path and the system's reason unless they say otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "traces/store/file_descriptor.h"

namespace shardscope::trainer {

// An open file; positions are bytes. Any number of threads may read and write at once.
class File {
  public:
    static File open_to_read(const std::filesystem::path& path);
    // Creates it where it is not there; never shortens it.
    static File open_to_write(const std::filesystem::path& path);
    // A new file: EEXIST where somebody else has made it.
    static File create(const std::filesystem::path& path);

    std::int64_t bytes() const;
    // Of the file itself, whatever its name: device and number on it.
    using Identity = std::pair<std::uint64_t, std::uint64_t>;
    Identity identity() const;
    // All of the span; an end of the file before that is EIO.
    void read(std::span<std::byte> bytes, std::int64_t position) const;
    void write(std::span<const std::byte> bytes, std::int64_t position) const;
    void sync() const;  // returns when the disk has it
    // Takes the file for this object alone, until it or its process ends; false: another has it. True also on
    // file systems that know no such thing.
    bool lock() const;

  private:
    File(std::filesystem::path path, int flags);

    traces::FileDescriptor descriptor_;
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

// ".trial-NAME.tmp": a file that is written only to see whether it can be.
std::string trial_file_name(std::string_view name);

// Puts the whole checkpoint of a step that stands in its unfinished folder into its place, then lets `latest`
// name it. A checkpoint of that step that was there before is replaced in one act and removed then.
void publish_step(const std::filesystem::path& save, std::int64_t step);

// Removes what interrupted saves left. A checkpoint that one of them had put aside, and nothing in its place
// yet, is put back.
void remove_unfinished(const std::filesystem::path& save);

// The checkpoint's folder that `path` means: itself where it holds a manifest, else the one that its `latest`
// names (or, where that was put aside, the one put aside), else (a first save that was interrupted before
// `latest`) its step with the highest number. CheckpointError: there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

// Whether checkpoints stand in a folder that may not exist.
bool holds_checkpoints(const std::filesystem::path& save);

}  // namespace shardscope::trainer
