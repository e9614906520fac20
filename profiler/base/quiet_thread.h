// Threads of ours that leave the program's signals to the program's own threads.
#pragma once

#include <thread>
#include <utility>

#include <pthread.h>
#include <signal.h>

namespace shardscope::profiler {

// Starts a thread that receives no signals. Throws std::system_error.
template <typename Work>
std::thread start_quietly(Work work) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    struct Restore {
        const sigset_t& mask;
        ~Restore() { ::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
    };
    const Restore restore{before};
    return std::thread(std::move(work));
}

}  // namespace shardscope::profiler
