// Reads and writes pieces of files, many at the same time. There are two ways: io_uring, and where the kernel
// or the build has none, a few threads that read and write one piece each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardscope::trainer::disk {

struct DiskPiece {
    int descriptor = -1;
    bool writes = false;  // memory into the file; else the file into memory
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::int64_t offset = 0;  // in the file
};

struct EndedPiece {
    DiskPiece* piece = nullptr;
    std::int64_t bytes = 0;  // that were read or written, perhaps fewer than wanted; negative: an errno
};

class DiskIo {
  public:
    DiskIo() = default;
    virtual ~DiskIo() = default;  // what is under way has ended when it returns
    DiskIo(const DiskIo&) = delete;
    DiskIo& operator=(const DiskIo&) = delete;

    // One thread calls these two. A piece stays where it is until wait() has returned it, which blocks until
    // there is one or wake() was called. Both may throw a std::system_error.
    virtual void begin(DiskPiece& piece) = 0;
    virtual std::vector<EndedPiece> wait() = 0;
    virtual void wake() = 0;  // any thread
};

inline constexpr unsigned kMostPieces = 256;  // under way at the same time

// Null where this build or the kernel has no io_uring, or does not let this process use it.
std::unique_ptr<DiskIo> make_uring_io();
std::unique_ptr<DiskIo> make_threaded_io(int threads = 8);

}  // namespace shardscope::trainer::disk
