// The ring in which programs leave samples of their threads for shardscope-record: one file of the session's
// directory, which the tool makes and every process maps. Plain data; both ends are built from this header
// and check kRingFormat.
//
// A bounded queue with a turn for each slot. The slot of sample number n (n modulo the number of slots) is
// free at turn n and full at turn n + 1; reading it makes it free for the next lap. Any thread of any
// process puts samples in, also in a signal handler: there is no lock that a killed process could keep. One
// thread reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace shardscope::profiler {

inline constexpr char kRingFile[] = "samples";
inline constexpr char kMapsSuffix[] = ".maps";  // "PID-IMAGE.maps": a process's mappings at its first sample
inline constexpr std::uint64_t kRingMagic = 0x504D4153'44524853;  // "SHRDSAMP"
inline constexpr std::uint32_t kRingFormat = 1;

// Whether the processor's stacks are understood (stack_walk.h).
#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool kCanWalkStacks = true;
#else
inline constexpr bool kCanWalkStacks = false;
#endif

struct TimerSample {
    static constexpr std::uint32_t kMostFrames = 127;  // as many as the kernel gives (perf_event_max_stack)

    std::int32_t pid, tid, cpu;
    std::uint32_t frames;
    std::int64_t time;    // CLOCK_MONOTONIC
    std::int64_t weight;  // ns of the thread's processor time since its last sample
    std::uint64_t image;  // which program of the process: when it began. It differs after fork and exec
    char name[16];        // of the thread, NUL-terminated
    std::uint64_t addresses[kMostFrames];  // innermost first
};

struct alignas(64) RingSlot {  // no two in one cache line
    std::atomic<std::uint64_t> turn;
    TimerSample sample;
};

struct RingHeader {
    std::uint64_t magic;
    std::uint32_t format, slots;
    std::int64_t period_ns;                       // of a thread's processor time, as it was asked for
    std::int64_t interval_ns;                     // the same, or the kernel's tick if that is longer
    std::uint64_t pid_namespace;                  // in which the tool knows processes; 0: unknown
    std::atomic<std::uint32_t> closed;            // 1: the tool takes no more samples
    std::atomic<std::int32_t> no_timer;           // why the last thread without a timer has none (errno)
    std::atomic<std::uint64_t> untimed;           // threads without a timer
    std::atomic<std::uint64_t> lost;              // samples for which there was no room
    alignas(64) std::atomic<std::uint64_t> next;  // number of the next sample
};
static_assert(sizeof(RingHeader) == 128 && sizeof(RingSlot) == 1088);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "the ring is shared between processes");

inline std::size_t ring_bytes(std::uint32_t slots) {
    return sizeof(RingHeader) + std::size_t{slots} * sizeof(RingSlot);
}
inline RingSlot* ring_slots(RingHeader* ring) {
    return reinterpret_cast<RingSlot*>(ring + 1);
}

// A free slot and its turn, to be passed to publish_slot(); null, and a lost sample more, if all are full.
// `slots`: as the header said when it was mapped. Another program may have written over all of it since, so
// that the search ends also when no number fits.
inline RingSlot* take_slot(RingHeader* ring, std::uint32_t slots, std::uint64_t* turn) {
    constexpr int kMostTries = 10'000;
    std::uint64_t number = ring->next.load(std::memory_order_relaxed);
    for (int tries = 0; tries < kMostTries; ++tries) {
        RingSlot* slot = ring_slots(ring) + number % slots;
        const std::uint64_t at = slot->turn.load(std::memory_order_acquire);
        if (at == number) {
            if (ring->next.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) {
                *turn = number;
                return slot;
            }
        } else if (static_cast<std::int64_t>(at - number) < 0) {
            break;  // still full from the previous lap
        } else {
            number = ring->next.load(std::memory_order_relaxed);  // another thread took it
        }
    }
    ring->lost.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

// Fails, harmlessly, if the reader has given the slot up meanwhile.
inline void publish_slot(RingSlot* slot, std::uint64_t turn) {
    slot->turn.compare_exchange_strong(turn, turn + 1, std::memory_order_release);
}

}  // namespace shardscope::profiler
