// How fast the files of memory.nvme are read and written through a ring of pinned memory, as a step does it:
// a file is written once, then read, then both at the same time. Not a test; run
// bin/bench_files FOLDER [MIB [cached] [threads]]: a file of MIB (2048), through the page cache, without
// io_uring.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "trainer/executor/cpu_device.h"
#include "trainer/executor/file_device.h"

namespace shardscope::trainer::executor {
namespace {

constexpr std::int64_t kSlotBytes = 16 << 20, kSlots = 4;

// The file and the ring; each slot is used again when what used it last is done.
class Ring {
  public:
    Ring(std::int64_t slots_of_file, const FileDeviceOptions& options)
        : device_(std::make_unique<CpuDevice>(plan::Mesh(), CpuDeviceOptions{}), options),
          count_(slots_of_file),
          streams_{device_.add_stream(0, plan::Stream::disk_read),
                   device_.add_stream(0, plan::Stream::disk_write)},
          disk_(device_.take(0, plan::MemorySpace::disk, count_ * kSlotBytes, false)),
          ring_(device_.take(0, plan::MemorySpace::pinned, 2 * kSlots * kSlotBytes, false)) {
        op_.kind = plan::OpKind::memcpy;
        op_.args = {{0, 0, kSlotBytes}, {1, 0, kSlotBytes}};
        std::minstd_rand random;  // what a disk can compress would be faster
        if (disk_) std::generate_n(ring_, 2 * kSlots * kSlotBytes, [&] { return std::byte(random() >> 16); });
    }
    ~Ring() {
        device_.stop();
        if (disk_) device_.give_back(0, plan::MemorySpace::disk, disk_);
        device_.give_back(0, plan::MemorySpace::pinned, ring_);
    }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    bool fits() const { return disk_ != nullptr; }
    // Bytes per second of each direction that moves the whole file.
    double rate(bool reads, bool writes) {
        using Clock = std::chrono::steady_clock;
        const Clock::time_point begin = Clock::now();
        for (std::int64_t i = 0; i < count_; ++i) {
            if (reads) move(0, i);
            if (writes) move(1, (i + count_ / 2) % count_);
        }
        for (const auto& slots : last_)
            for (const device::StreamEvent event : slots) device_.wait(event);
        return static_cast<double>(count_ * kSlotBytes) /
               std::chrono::duration<double>(Clock::now() - begin).count();
    }

  private:
    void move(std::size_t direction, std::int64_t i) {
        auto& last = last_[direction][static_cast<std::size_t>(i % kSlots)];
        device_.wait(last);
        std::byte* in_file = disk_ + i * kSlotBytes;
        std::byte* in_ring =
            ring_ + (static_cast<std::int64_t>(direction) * kSlots + i % kSlots) * kSlotBytes;
        device::Launch launch;
        launch.op = &op_;
        launch.data = direction == 0 ? std::vector{in_ring, in_file} : std::vector{in_file, in_ring};
        last = device_.enqueue(streams_[direction], {}, launch);
    }

    FileDevice device_;
    std::int64_t count_;
    std::array<device::StreamIndex, 2> streams_;
    std::byte *disk_, *ring_;
    plan::Op op_;
    std::array<std::array<device::StreamEvent, kSlots>, 2> last_{};  // by direction and slot
};

int main_of(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "bench_files: say in which folder; see the head of its source\n");
        return 2;
    }
    FileDeviceOptions options;
    options.folder = argv[1];
    const long mib = argc > 2 ? std::atol(argv[2]) : 2048;
    for (int i = 3; i < argc; ++i) {
        if (std::string_view(argv[i]) == "cached") options.direct = false;
        if (std::string_view(argv[i]) == "threads") options.uring = false;
    }
    Ring ring(std::max<std::int64_t>(2 * kSlots, (std::int64_t{mib} << 20) / kSlotBytes), options);
    if (!ring.fits()) {
        fmt::print(stderr, "bench_files: {} has no room for the file; give less MIB\n", argv[1]);
        return 1;
    }
    fmt::print("write {:.4g}\n", ring.rate(false, true));
    fmt::print("read {:.4g}\n", ring.rate(true, false));
    fmt::print("both {:.4g}\n", ring.rate(true, true));
    return 0;
}

}  // namespace
}  // namespace shardscope::trainer::executor

int main(int argc, char** argv) {
    return shardscope::trainer::executor::main_of(argc, argv);
}
