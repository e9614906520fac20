// The pid namespace of this process, which two processes compare before one trusts the other's pids.
#pragma once

#include <cstdint>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shardscope::profiler {

// The number in "pid:[4026531836]"; 0: unknown. Also in a child that was forked just now. (Not by stat(): its
// symbol would ask for glibc 2.33.)
inline std::uint64_t own_pid_namespace() {
    char link[64] = {};
    if (::syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/ns/pid", link, sizeof link - 1) <= 0) return 0;
    std::uint64_t number = 0;
    for (const char* at = link; *at != '\0'; ++at)
        if (*at >= '0' && *at <= '9') number = number * 10 + static_cast<std::uint64_t>(*at - '0');
    return number;
}

}  // namespace shardscope::profiler
