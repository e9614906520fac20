// When a window draws: nothing while nothing happens, ten frames a second while work goes on behind them and
// its progress shows, sixty while something moves by itself. Pure; frame thread. Times in seconds.
#pragma once

namespace shardscope::viewer {

class Redraw {
  public:
    struct Doing {
        bool working = false;  // behind the frames: a file is read, an analysis runs
        bool moving = false;   // a script or a panel moves by itself
    };
    // How long to wait for input at most before the next look.
    static double patience(Doing now) { return now.moving ? 1.0 / 60 : now.working ? 0.1 : 0.5; }

    // After the wait: whether a frame is due. `input`: the window has something to answer; `news`: a file has
    // changed. What work came to, and what news said, is drawn once more after it.
    bool due(Doing now, bool input, bool news) {
        const bool outcome = owed_;
        owed_ = now.working || news;
        return input || now.working || now.moving || news || outcome;
    }

  private:
    bool owed_ = true;  // the first frame
};

}  // namespace shardscope::viewer
