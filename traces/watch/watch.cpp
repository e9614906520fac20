#include "traces/watch/watch.h"

#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include "traces/store/grouped.h"
#include "traces/watch/display.h"
#include "traces/watch/screen.h"

namespace shardscope::traces::watch {

namespace {

using Clock = std::chrono::steady_clock;
using status::RunStatus;

constexpr int kTurnMs = 250;    // the longest time until a signal or a new size is seen
constexpr double kNoNewsS = 3;  // without a line for that long, the server itself does not run
constexpr std::chrono::seconds kBetweenLines{5};  // of a log
constexpr std::chrono::seconds kFirstLine{10};    // a server answers within this time

double seconds_since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
}

void put(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
}

// What the watcher itself has to say.
std::string note_on(const RunStatus& run, double quiet_s) {
    if (quiet_s < kNoNewsS) return {};
    return fmt::format("no news for {:.0f} s: {}", quiet_s,
                       run.pid > 0
                           ? fmt::format("process {} on {}, which serves the status, is stopped, or the "
                                         "connection is",
                                         run.pid, run.host)
                           : "the run is stopped, or the connection is");
}

std::string ending_of(const RunStatus& run) {
    std::string text = fmt::format("the run {}", run.state == status::RunState::finished  ? "has finished"
                                                 : run.state == status::RunState::stopped ? "was stopped"
                                                                                          : "has failed");
    if (run.steps_done) {
        text += " after step " + store::grouped(*run.steps_done);
        if (run.steps) text += " of " + store::grouped(*run.steps);
    }
    return text + fmt::format(", {} after its start", duration_words(run.time_s));
}

class Watch {
  public:
    Watch(Source& source, const WatchOptions& options) : source_(source), options_(options) {}

    int run() {
        const NotedSignals signals(options_.screen && !options_.once && !options_.json);
        source_.add_to(course_);
        if (options_.screen && !options_.once && !options_.json) screen_.emplace(options_.colours);
        int status = 0;
        while (!end_reached(status)) turn();
        screen_.reset();
        if (options_.screen && !options_.json && !options_.once && run_)
            put(text_of(lines_of_all(), options_.colours));
        if (!last_words_.empty()) put(last_words_ + "\n");
        return status;
    }

  private:
    // One status, or a turn without one.
    void turn() {
        const std::optional<RunStatus> next = source_.next(kTurnMs);
        if (next) {
            heard_ = Clock::now();
            run_ = next;
            course_.add(*next);
        }
        if (options_.json) {
            if (next) put(to_line(*next));
        } else if (options_.once) {
            if (next) put(text_of(lines_of_all(), options_.colours));
        } else if (screen_) {
            if (NotedSignals::take_suspend()) screen_->suspend();
            if (run_) draw();
        } else if (next) {
            log();
        }
        shown_ = shown_ || next;
    }

    // Sets the exit status and the last line.
    bool end_reached(int& status) {
        if (const int signal = NotedSignals::received(); signal != 0) {
            status = 128 + signal;
            return true;
        }
        if (options_.once && shown_) return true;
        if (run_ && is_over(run_->state)) {
            if (!options_.json && !options_.once) last_words_ = ending_of(*run_);
            return true;
        }
        if (source_.closed()) {
            if (!run_)
                throw status::StatusError(fmt::format("{}: the connection was closed", source_.name()));
            status = 1;
            fmt::print(
                stderr,
                "shardscope-trace: {}: the run is gone without having said how it ended; it was killed\n",
                source_.name());
            return true;
        }
        if (!run_ && Clock::now() - heard_ > kFirstLine) {
            throw status::StatusError(fmt::format(
                "{} does not answer: it is no status server, its run is stopped, or it asks for a token "
                "({})",
                source_.name(), "SHARDSCOPE_STATUS_TOKEN"));
        }
        return false;
    }

    // With all ranks, below each other.
    std::vector<DisplayLine> lines_of_all() const {
        const std::size_t width = options_.screen ? Screen::size().width : kLogWidth;
        return display(*run_, course_, {}, width, std::numeric_limits<std::size_t>::max());
    }

    void draw() {
        const Screen::Size size = Screen::size();
        screen_->draw(
            display(*run_, course_, note_on(*run_, seconds_since(heard_)), size.width, size.height));
    }

    // A line every few seconds, and whenever the state or the one who is waited for has changed.
    void log() {
        const bool news = run_->state != logged_state_ || (run_->reason.empty() != logged_reason_.empty());
        if (shown_ && !news && Clock::now() - logged_ < kBetweenLines) return;
        logged_ = Clock::now();
        logged_state_ = run_->state;
        logged_reason_ = run_->reason;
        put(log_line(*run_) + "\n");
    }

    static constexpr std::size_t kLogWidth = 120;

    Source& source_;
    const WatchOptions options_;
    std::optional<Screen> screen_;
    std::optional<RunStatus> run_;
    Course course_;
    Clock::time_point heard_ = Clock::now(), logged_;
    status::RunState logged_state_ = status::RunState::starting;
    std::string logged_reason_, last_words_;
    bool shown_ = false;
};

}  // namespace

int watch(Source& source, const WatchOptions& options) {
    return Watch(source, options).run();
}

}  // namespace shardscope::traces::watch
