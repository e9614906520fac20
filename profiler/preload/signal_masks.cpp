// Threads that block all signals, as most libraries do for their own, would never be sampled: a mask of
// nearly all signals loses the timers' signal here. One that names a few signals is kept, whatever they are.
#include "profiler/preload/signal_masks.h"

#include <errno.h>

#include "profiler/preload/next_function.h"
#include "profiler/preload/thread_timers.h"

namespace shardscope::profiler::preload {
namespace {

constinit NextFunction<int(int, const sigset_t*, sigset_t*)> next_thread_mask{"pthread_sigmask"};
constinit NextFunction<int(int, const sigset_t*, sigset_t*)> next_process_mask{"sigprocmask"};

bool means_all(const sigset_t& set) {
    int members = 0;
    for (int signal = 1; signal <= 31; ++signal) members += ::sigismember(&set, signal);
    return members >= 24;
}

// `set`, or a copy in `*changed` without the timers' signal.
const sigset_t* without_timer_signal(int how, const sigset_t* set, sigset_t* changed) {
    if (set == nullptr || how == SIG_UNBLOCK || !sampling() || !means_all(*set)) return set;
    *changed = *set;
    ::sigdelset(changed, kTimerSignal);
    return changed;
}

}  // namespace

void unblock_timer_signal() {
    auto* mask = next_process_mask.get();
    sigset_t blocked;
    if (mask == nullptr || mask(SIG_BLOCK, nullptr, &blocked) != 0 || !means_all(blocked)) return;
    ::sigdelset(&blocked, kTimerSignal);
    mask(SIG_SETMASK, &blocked, nullptr);
}

void prepare_signal_masks() {
    next_thread_mask.get();
    next_process_mask.get();
}

}  // namespace shardscope::profiler::preload

namespace preload = shardscope::profiler::preload;

#define SHARDSCOPE_EXPORT extern "C" __attribute__((visibility("default")))

SHARDSCOPE_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    sigset_t changed;
    auto* next = preload::next_thread_mask.get();
    return next == nullptr ? EAGAIN : next(how, preload::without_timer_signal(how, set, &changed), old);
}

SHARDSCOPE_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    sigset_t changed;
    auto* next = preload::next_process_mask.get();
    return next == nullptr ? -1 : next(how, preload::without_timer_signal(how, set, &changed), old);
}
