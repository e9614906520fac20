// The pause in a loop that polls.
#pragma once

namespace shardscope::trainer::comm {

// Briefly leaves the core's execution units to its other hardware thread.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

}  // namespace shardscope::trainer::comm
