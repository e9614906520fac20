#include "trainer/cli/stop.h"

#include <csignal>

#include <unistd.h>

namespace shardscope::trainer {

namespace {

// Read and written by the handler: lock-free atomics only.
std::atomic<std::atomic<bool>*> g_stop{nullptr};
std::atomic<int> g_first{0};
std::atomic<int> g_count{0};
std::atomic<bool> g_second_ends{true};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
    int none = 0;
    g_first.compare_exchange_strong(none, signal);
    if (g_count.fetch_add(1) > 0) {  // asked twice
        if (!g_second_ends.load()) return;
        std::signal(signal, SIG_DFL);
        raise(signal);
        return;
    }
    if (std::atomic<bool>* stop = g_stop.load()) stop->store(true);
}

void listen(void (*handler)(int), int flags) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals(std::atomic<bool>* stop, Second second) {
    g_stop.store(stop);
    g_second_ends.store(second == Second::ends);
    listen(on_signal, SA_RESTART);
}

StopSignals::~StopSignals() {
    listen(SIG_DFL, 0);
    g_stop.store(nullptr);
}

int StopSignals::received() {
    return g_first.load();
}

int StopSignals::count() {
    return g_count.load();
}

const char* StopSignals::name(int signal) {
    return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace shardscope::trainer
