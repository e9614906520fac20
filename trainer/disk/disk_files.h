// Files as memory: each is a range of addresses that cannot be read or written in place but name the bytes of
// a file, so that what adds offsets to addresses need not know of files. The files have no names, so that
// nobody else opens them and the system removes them with the process, however it ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "traces/store/file_descriptor.h"
#include "trainer/plan/disk_block.h"

namespace shardscope::trainer::disk {

using plan::kDiskBlock, plan::whole_blocks;

class DiskFile {
  public:
    // Creates the file with all of its bytes, rounded to whole blocks, reserved on the disk. `direct`: to be
    // read and written past the page cache, where the file system can. Throws std::system_error.
    DiskFile(const std::string& folder, std::int64_t bytes, bool direct);
    ~DiskFile();
    DiskFile(const DiskFile&) = delete;
    DiskFile& operator=(const DiskFile&) = delete;

    std::byte* address() const { return address_; }
    std::int64_t bytes() const { return bytes_; }
    std::int64_t offset_of(const std::byte* address) const { return address - address_; }

    // For a piece: past the page cache if all three are whole blocks.
    int descriptor(const std::byte* memory, std::int64_t offset, std::int64_t bytes) const;
    bool is_direct() const { return direct_; }
    void stop_direct() const { direct_ = false; }  // the file system refuses it after all

    // Whole, on this thread. Throw std::system_error; EIO if the file ends before that.
    void read(std::byte* memory, std::int64_t offset, std::int64_t bytes) const;
    void write(const std::byte* memory, std::int64_t offset, std::int64_t bytes) const;

  private:
    traces::store::FileDescriptor cached_, uncached_;
    std::int64_t bytes_;
    std::byte* address_ = nullptr;
    mutable std::atomic<bool> direct_ = false;
};

// Any thread may call its members.
class DiskFiles {
  public:
    // Throws std::system_error if the folder cannot be used.
    DiskFiles(std::string folder, bool direct);

    const std::string& folder() const { return folder_; }
    std::byte* take(std::int64_t bytes);  // throws std::system_error
    void give_back(const std::byte* address) noexcept;
    // The file that an address is in; null: in none.
    const DiskFile* find(const std::byte* address) const;
    std::int64_t free_bytes() const;  // of the folder's file system

  private:
    std::string folder_;
    bool direct_;
    mutable std::mutex mutex_;
    std::map<const std::byte*, std::unique_ptr<DiskFile>> files_;  // by first address
};

}  // namespace shardscope::trainer::disk
