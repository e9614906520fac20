#include "traces/cli/long_work.h"

#include <atomic>
#include <cstdio>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace shardscope::traces::cli {

namespace {

std::atomic<bool> stop_asked = false;
std::atomic<int> stop_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler sets them");

}  // namespace

LongWork::LongWork(std::string name) : name_(std::move(name)), watched_(::isatty(STDERR_FILENO) != 0) {
    stop_asked = false;
    stop_signal = 0;
    options_.cancel = &stop_asked;
    options_.progress = [this](double share) { show(share); };
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
        stop_signal = signal;
        stop_asked = true;
    };
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, &interrupt_before_);
    ::sigaction(SIGTERM, &action, &terminate_before_);
}

LongWork::~LongWork() {
    ::sigaction(SIGINT, &interrupt_before_, nullptr);
    ::sigaction(SIGTERM, &terminate_before_, nullptr);
    if (shown_ >= 0) fmt::print(stderr, "\r{:{}}\r", "", name_.size() + 8);
}

int LongWork::stopped_status() {
    return stop_signal != 0 ? 128 + stop_signal : 0;
}

void LongWork::show(double share) {
    const int percent = static_cast<int>(100 * share);
    if (!watched_ || percent == shown_) return;
    shown_ = percent;
    fmt::print(stderr, "\r{}: {} % ", name_, percent);
}

}  // namespace shardscope::traces::cli
