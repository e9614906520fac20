// The progress of a search.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

namespace shardscope::trainer::cli {

// A bar on a terminal, otherwise a line every few seconds.
class SearchBar {
  public:
    // `what` names the things counted: "configurations".
    explicit SearchBar(const char* what) : what_(what) {}
    void show(std::size_t done, std::size_t all) {
        const double now = std::chrono::duration<double>(Clock::now() - start_).count();
        const double pause = terminal_ ? 0.1 : 5;
        if ((done < all || !open_) && now - last_ < pause) return;
        last_ = now;
        const double left = now / static_cast<double>(done) * static_cast<double>(all - done);
        const std::string line = fmt::format("{} of {} {}, {:.0f} s left", done, all, what_, left);
        if (terminal_) {
            const std::size_t filled = kWidth * done / all;
            fmt::print(stderr, "\r[{}{}] {:<44}", std::string(filled, '#'), std::string(kWidth - filled, '.'),
                       line);
            open_ = true;
        } else {
            fmt::print(stderr, "{}\n", line);
        }
        std::fflush(stderr);
    }
    void end() {
        if (open_) fmt::print(stderr, "\n");
        open_ = false;
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::size_t kWidth = 30;
    const char* what_;
    const Clock::time_point start_ = Clock::now();
    const bool terminal_ = isatty(STDERR_FILENO) == 1;
    double last_ = 0;
    bool open_ = false;
};

}  // namespace shardscope::trainer::cli
