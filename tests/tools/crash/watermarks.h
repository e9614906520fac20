// The progress of a job that is going to be killed, with times, in a file that both it and the test map: the
// job's threads write it as they go, so that it survives the kill.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace shardscope::tools {

inline constexpr int kJobThreads = 2;

// Events of a thread are numbered from 1. `count` of them had ended at `time_ns` (CLOCK_MONOTONIC).
struct Moment {
    std::int64_t time_ns = 0, count = 0;
};

struct ThreadMoments {
    std::atomic<std::uint32_t> size{0};
    std::array<Moment, 1 << 16> moments;

    void add(std::int64_t time_ns, std::int64_t count) {
        const std::uint32_t at = size.load(std::memory_order_relaxed);
        if (at == moments.size()) return;
        moments[at] = {time_ns, count};
        size.store(at + 1, std::memory_order_release);
    }
    Moment last() const {
        const std::uint32_t all = size.load(std::memory_order_acquire);
        return all == 0 ? Moment{} : moments[all - 1];
    }
    // A lower bound for the number of events that had ended at `time_ns`.
    std::int64_t count_at(std::int64_t time_ns) const {
        const std::uint32_t all = size.load(std::memory_order_acquire);
        std::int64_t count = 0;
        for (std::uint32_t i = 0; i < all && moments[i].time_ns <= time_ns; ++i) count = moments[i].count;
        return count;
    }
};

struct JobMoments {
    std::atomic<pid_t> pid{0};
    std::array<ThreadMoments, kJobThreads> threads;

    bool started() const {
        for (const ThreadMoments& thread : threads) {
            if (thread.size.load(std::memory_order_acquire) == 0) return false;
        }
        return true;
    }
};

class Watermarks {
  public:
    explicit Watermarks(const std::string& path) {
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0 || ::ftruncate(file, sizeof(JobMoments)) != 0) fail(path);
        memory_ = ::mmap(nullptr, sizeof(JobMoments), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        ::close(file);
        if (memory_ == MAP_FAILED) fail(path);
    }
    ~Watermarks() { ::munmap(memory_, sizeof(JobMoments)); }
    Watermarks(const Watermarks&) = delete;
    Watermarks& operator=(const Watermarks&) = delete;

    // A new file is filled with zeros, which is an empty JobMoments.
    JobMoments& operator*() const { return *std::launder(static_cast<JobMoments*>(memory_)); }
    JobMoments* operator->() const { return &**this; }

  private:
    [[noreturn]] static void fail(const std::string& path) {
        throw std::system_error(errno, std::generic_category(), path);
    }
    void* memory_ = nullptr;
};

}  // namespace shardscope::tools
