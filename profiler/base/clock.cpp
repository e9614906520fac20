// Decides once, before main, whether the processor's counter can be trusted as a clock.
#include "profiler/base/clock.h"

#include <cstring>

#include <fcntl.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace shardscope::profiler {
namespace {

#if defined(__x86_64__)
// Linux removes "tsc" from this list when the cores' counters disagree or their rate changes. If the file
// cannot be read (some sandboxes), the processor's own report is trusted.
bool kernel_trusts_the_counter() {
    const int fd =
        ::open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true;
    char text[256];
    const ssize_t size = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (size <= 0) return true;
    text[size] = '\0';
    return std::strstr(text, "tsc") != nullptr;
}

bool counter_is_invariant() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(0x80000007u, &a, &b, &c, &d)) return false;
    return (d & (1u << 8)) != 0;
}
#endif

ClockSource detect() {
#if defined(__x86_64__)
    return counter_is_invariant() && kernel_trusts_the_counter() ? ClockSource::counter
                                                                 : ClockSource::monotonic;
#elif defined(__aarch64__)
    return ClockSource::counter;
#else
    return ClockSource::monotonic;
#endif
}

}  // namespace

namespace detail {
DetectedClock::DetectedClock() : source(detect()) {}
__attribute__((init_priority(101))) const DetectedClock detected_clock;
}  // namespace detail

}  // namespace shardscope::profiler
