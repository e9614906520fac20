// A terminal that is redrawn in place. The user's own screen and cursor come back at the end, also after
// Ctrl-C, SIGTERM and SIGHUP, and while the program is suspended by Ctrl-Z.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/watch/display.h"

namespace shardscope::traces::watch {

// While it lives, signals that would end the program are noted instead. One at a time.
class NotedSignals {
  public:
    // `suspends`: Ctrl-Z is noted, too; else it stops the program as usual.
    explicit NotedSignals(bool suspends);
    ~NotedSignals();
    NotedSignals(const NotedSignals&) = delete;
    NotedSignals& operator=(const NotedSignals&) = delete;

    static int received();       // the first; 0: none
    static bool take_suspend();  // Ctrl-Z since the last call
};

class Screen {
  public:
    explicit Screen(bool colours) : colours_(colours) { enter(); }
    ~Screen() { leave(); }
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    struct Size {
        std::size_t width = 80, height = 24;
    };
    static Size size();  // of standard output

    void draw(const std::vector<DisplayLine>& lines);
    // Leaves the terminal as it was, stops the program, and comes back when it continues.
    void suspend();

  private:
    static void enter();
    static void leave();

    bool colours_;
};

// The lines as text, each with a newline.
std::string text_of(const std::vector<DisplayLine>& lines, bool colours);

}  // namespace shardscope::traces::watch
