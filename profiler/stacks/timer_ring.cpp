// Makes and reads the ring. What a program can write over is read once and checked.
#include "profiler/stacks/timer_ring.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/base/pid_namespace.h"
#include "profiler/stacks/address_space.h"
#include "profiler/stacks/maps_file.h"
#include "traces/store/file_descriptor.h"

namespace shardscope::profiler {
namespace {

// 64 processors at 1,000 samples per second fill a quarter of a second.
constexpr std::uint32_t kSlotsPerProcessor = 256, kFewestSlots = 64, kMostSlots = 16384;
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kLookAgainNs = kSecondNs;

std::uint32_t wanted_slots() {
    const long processors = std::max(2L, ::sysconf(_SC_NPROCESSORS_ONLN));
    return static_cast<std::uint32_t>(std::min<long>(processors * kSlotsPerProcessor, kMostSlots));
}

}  // namespace

TimerRing::TimerRing(std::string directory, int hertz) : directory_(std::move(directory)) {
    if (!kCanWalkStacks) {
        refusal_ = "stacks of this processor cannot be sampled by timers";
        return;
    }
    const std::string path = directory_ + "/" + kRingFile;
    const traces::store::FileDescriptor file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    // All of it is reserved: a store must not fail in the middle of a program.
    for (slots_ = wanted_slots(); file && slots_ >= kFewestSlots; slots_ /= 2) {
        bytes_ = ring_bytes(slots_);
        if (::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes_)) != 0) continue;
        void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
        if (memory != MAP_FAILED) ring_ = static_cast<RingHeader*>(memory);
        break;
    }
    if (ring_ == nullptr) {
        ::unlink(path.c_str());
        refusal_ = fmt::format("{} has no room for samples", directory_);
        return;
    }
    ring_->slots = slots_;
    ring_->period_ns = kSecondNs / hertz;
    ring_->interval_ns = kSecondNs / std::min(hertz, most_hertz());
    ring_->pid_namespace = own_pid_namespace();
    for (std::uint32_t i = 0; i < slots_; ++i) ring_slots(ring_)[i].turn.store(i, std::memory_order_relaxed);
    ring_->format = kRingFormat;
    ring_->magic = kRingMagic;
}

TimerRing::~TimerRing() {
    if (ring_ == nullptr) return;
    stop();
    ::munmap(ring_, bytes_);
}

void TimerRing::stop() {
    ring_->closed.store(1, std::memory_order_relaxed);
}

int TimerRing::most_hertz() {
    timespec tick{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    return tick.tv_sec == 0 && tick.tv_nsec > 0 ? static_cast<int>(kSecondNs / tick.tv_nsec) : 1;
}

// Whether the next sample will never be filled. Decided after a while, and the slot is then free.
bool TimerRing::is_given_up(std::uint64_t number) {
    if (ring_->next.load(std::memory_order_relaxed) == number) {
        stuck_ = MonotonicTime(0);
        return false;
    }
    const MonotonicTime now = MonotonicTime::now();
    if (stuck_ == MonotonicTime(0)) stuck_ = now;
    if (now - stuck_ < kFillingNs) return false;
    ++given_up_;
    return true;
}

void TimerRing::drain(const Visit& visit) {
    for (std::uint32_t read = 0; read < slots_; ++read) {
        RingSlot& slot = ring_slots(ring_)[next_ % slots_];
        if (slot.turn.load(std::memory_order_acquire) == next_ + 1) {
            take(slot.sample, visit);
        } else if (!is_given_up(next_)) {
            return;
        }
        stuck_ = MonotonicTime(0);
        slot.turn.store(next_ + slots_, std::memory_order_release);
        ++next_;
    }
}

void TimerRing::take(const TimerSample& sample, const Visit& visit) {
    SampledStack stack;
    stack.time = std::min(MonotonicTime(sample.time), MonotonicTime::now());
    stack.pid = sample.pid;
    stack.tid = sample.tid;
    stack.cpu = sample.cpu;
    stack.weight = sample.weight;
    stack.thread.assign(sample.name, ::strnlen(sample.name, sizeof sample.name));
    const std::uint32_t frames = std::min(sample.frames, TimerSample::kMostFrames);
    stack.addresses.assign(sample.addresses, sample.addresses + frames);
    meet(stack.pid, sample.image, visit);
    visit(std::move(stack));
}

// On the first sample of a program: where it has its code. (Its time is before that of all its samples, which
// do not come in order.)
void TimerRing::meet(std::int32_t pid, std::uint64_t image, const Visit& visit) {
    if (programs_.size() >= AddressSpaces::kMost && !programs_.contains(pid)) programs_.clear();
    Program& program = programs_[pid];
    if (program.image == image) return;
    program = {image, MonotonicTime(0)};
    const MonotonicTime began(static_cast<std::int64_t>(image));
    visit(ProgramStart{began, pid});
    const std::string path = fmt::format("{}/{}-{}{}", directory_, pid, image, kMapsSuffix);
    for (CodeMapping& mapping : read_maps_file(path, pid, began)) visit(std::move(mapping));
    ::unlink(path.c_str());
}

std::vector<CodeMapping> TimerRing::mappings(std::int32_t pid, bool certain) {
    const MonotonicTime now = MonotonicTime::now();
    if (!certain) {
        Program& program = programs_[pid];
        if (now - program.looked < kLookAgainNs) return {};
        program.looked = now;
    }
    return read_maps_file(fmt::format("/proc/{}/maps", pid), pid, now);
}

std::int64_t TimerRing::lost() const {
    return static_cast<std::int64_t>(ring_->lost.load(std::memory_order_relaxed)) + given_up_;
}

std::string TimerRing::incomplete() const {
    const std::uint64_t threads = ring_->untimed.load(std::memory_order_relaxed);
    if (threads == 0) return {};
    const int why = ring_->no_timer.load(std::memory_order_relaxed);
    const std::string reason = why == EAGAIN  ? "a higher ulimit -i permits more timers"
                               : why == EXDEV ? "they are in a pid namespace of their own"
                               : why == EBUSY ? "another library handles SIGURG"
                                              : std::strerror(why);
    return fmt::format("{} not sampled: {}",
                       threads == 1 ? "1 thread was" : fmt::format("{} threads were", threads), reason);
}

}  // namespace shardscope::profiler
