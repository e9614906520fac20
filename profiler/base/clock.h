// Raw time stamps: the processor's time-stamp counter if it is invariant, else CLOCK_MONOTONIC in ns. Only
// the recorder turns them into nanoseconds (calibration.h). Any thread; no state but a constant.
#pragma once

#include <compare>
#include <cstdint>
#include <ctime>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace shardscope::profiler {

// Where ticks come from. The numbers are stored in mapped record files: never renumber.
enum class ClockSource : std::uint32_t { monotonic = 0, counter = 1 };

// A time of one clock in nanoseconds. Times of two clocks do not mix; the difference of two times of one is a
// plain number, as is a time of the trace, which is CLOCK_MONOTONIC since the start of the capture.
template <clockid_t kClock>
struct ClockTime {
    std::int64_t ns;

    ClockTime() = default;  // not set
    constexpr explicit ClockTime(std::int64_t time) : ns(time) {}
    static ClockTime now() {
        timespec t;
        ::clock_gettime(kClock, &t);
        return ClockTime(std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec);
    }
    constexpr bool operator==(const ClockTime&) const = default;
    friend constexpr auto operator<=>(ClockTime a, ClockTime b) { return a.ns <=> b.ns; }
    friend constexpr std::int64_t operator-(ClockTime a, ClockTime b) { return a.ns - b.ns; }
};
using MonotonicTime = ClockTime<CLOCK_MONOTONIC>;
using RealTime = ClockTime<CLOCK_REALTIME>;  // CUPTI's clock

// A reading of ticks(). Only the recorder turns it into a time.
struct Ticks {
    std::uint64_t count;

    Ticks() = default;  // not set
    constexpr explicit Ticks(std::uint64_t reading) : count(reading) {}
    constexpr bool operator==(const Ticks&) const = default;
    friend constexpr auto operator<=>(Ticks a, Ticks b) { return a.count <=> b.count; }
    friend constexpr std::uint64_t operator-(Ticks a, Ticks b) { return a.count - b.count; }
    friend constexpr Ticks operator+(Ticks a, std::uint64_t more) { return Ticks(a.count + more); }
};

inline std::int64_t monotonic_ns() {
    return MonotonicTime::now().ns;
}

namespace detail {
// Kept out of line, so that the counter's path needs no stack.
[[gnu::noinline, gnu::cold]] inline Ticks monotonic_ticks() {
    return Ticks(static_cast<std::uint64_t>(monotonic_ns()));
}
}  // namespace detail

// One reading of the given source. `counter` is valid only if clock_source() returns it.
inline Ticks read_ticks(ClockSource source) {
#if defined(__x86_64__)
    if (source == ClockSource::counter) return Ticks(__rdtsc());
#elif defined(__aarch64__)
    if (source == ClockSource::counter) {
        std::uint64_t value;
        asm volatile("mrs %0, cntvct_el0" : "=r"(value));
        return Ticks(value);
    }
#else
    (void)source;
#endif
    return detail::monotonic_ticks();
}

namespace detail {
struct DetectedClock {
    DetectedClock();
    ClockSource source;
};
extern const DetectedClock detected_clock;  // constructed before any other object of this program
}  // namespace detail

// The source of ticks() in this process: the counter if all cores share one that runs at a constant rate.
inline ClockSource clock_source() {
    return detail::detected_clock.source;
}

inline Ticks ticks() {
    return read_ticks(clock_source());
}

}  // namespace shardscope::profiler
