// What a loop that only looks does in between.
#pragma once

namespace shardscope::trainer {

// Leaves the core's units to its other thread for a moment.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

}  // namespace shardscope::trainer
