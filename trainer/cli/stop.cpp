#include "trainer/cli/stop.h"

#include <csignal>

#include <unistd.h>

namespace shardscope::trainer::cli {

namespace {

// Read and written by the handler: lock-free atomics only.
std::atomic<std::atomic<bool>*> g_stop{nullptr};
std::atomic<int> g_first{0};
std::atomic<int> g_count{0};
std::atomic<bool> g_second_ends{true};
std::atomic<bool> g_listening{false};
std::atomic<const std::string*> g_last_words{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<const std::string*>::is_always_lock_free);

void end_at_once(int signal) {
    if (const std::string* words = g_last_words.exchange(nullptr)) {
        [[maybe_unused]] const auto written = write(STDERR_FILENO, words->data(), words->size());
    }
    std::signal(signal, SIG_DFL);
    raise(signal);
}

void on_signal(int signal) {
    int none = 0;
    g_first.compare_exchange_strong(none, signal);
    if (g_count.fetch_add(1) > 0) {  // the second signal
        if (!g_second_ends.load()) return;
        end_at_once(signal);
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
    g_listening.store(true);
    listen(on_signal, SA_RESTART);
}

StopSignals::~StopSignals() {
    listen(SIG_DFL, 0);
    g_listening.store(false);
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

LastWords::LastWords(const std::string& sentence)
    : line_("shardscope-train: " + sentence + "\n"), listens_(!g_listening.load()) {
    g_last_words.store(&line_);
    if (listens_) listen(end_at_once, SA_RESTART);
}

LastWords::~LastWords() {
    if (listens_) listen(SIG_DFL, 0);
    g_last_words.store(nullptr);
}

}  // namespace shardscope::trainer::cli
