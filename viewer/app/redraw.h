// Decides when a window draws: not at all while nothing happens, once a second while a trace that is being
// written says how old it is, ten frames a second while background work shows its progress, sixty while
// something is animated. Pure; frame thread. Times in seconds.
#pragma once

namespace shardscope::viewer::app {

class Redraw {
  public:
    struct Doing {
        bool working = false;  // in the background: reading a file, running an analysis
        bool quietly = false;  // the same, but nothing of it is to be seen before its end
        bool moving = false;   // a script runs or a panel is animated
    };
    // The longest time to wait for input before checking again.
    static double patience(Doing now) {
        return now.moving ? 1.0 / 60 : now.working || now.quietly ? 0.1 : 0.5;
    }

    // After the wait: whether a frame is due. `input`: the window has received input; `news`: a file has
    // changed; `tick`: a text that is shown has. One more frame follows the end of work or news, to show the
    // result.
    bool due(Doing now, bool input, bool news, bool tick = false) {
        const bool outcome = owed_;
        owed_ = now.working || news;
        return input || now.working || now.moving || news || tick || outcome;
    }

  private:
    bool owed_ = true;  // true at first, for the first frame
};

}  // namespace shardscope::viewer::app
