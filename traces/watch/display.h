// A run's status as text: a screen of a terminal, or one line in a log. Draws nothing itself.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/status/run_status.h"
#include "traces/watch/history.h"

namespace shardscope::traces::watch {

struct Course {
    History loss, rate;
    // Adds the status if its step is a new one.
    void add(const status::RunStatus& status);

  private:
    std::int64_t steps_done_ = -1;
};

enum class Emphasis : std::uint8_t { none, heading, alarm };

struct DisplayLine {
    std::string text;
    Emphasis emphasis = Emphasis::none;
};

// What a screen of that size shows, each line at most `width` columns, at most `height` lines: the run, its
// progress, the courses of loss and speed, who waits for whom, and the ranks. Where there is no room for all
// ranks, those that do not simply run come first, and the last line says how many are left out. `note`: one
// sentence of the watcher's own; may be empty.
std::vector<DisplayLine> display(const status::RunStatus& status, const Course& course,
                                 const std::string& note, std::size_t width, std::size_t height);

// "0:02:31 step 452 of 1000 (45.2 %), loss 2.3145, 12,345 tokens/s, 6 min 12 s left": one line for a log.
std::string log_line(const status::RunStatus& status);

// "12 s", "6 min 12 s", "1 h 02 min", "3 d 04 h".
std::string duration_words(double seconds);

}  // namespace shardscope::traces::watch
