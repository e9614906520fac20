// Tries changed settings on a recorded run: shardscope-train, a separate program, replays the trace as it was
// and with the changes, in the background. Results are kept while the trace is shown. One at a time. Frame
// thread only; no Dear ImGui.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/store/columns/trace.h"
#include "viewer/model/row_simulation.h"

namespace shardscope::viewer::model {

using Changes = std::vector<std::pair<std::string, std::string>>;  // "fsdp.wrap", "root"

// Reads `fsdp.wrap = "path:a,b", data.batch = 16`. A part without a value ("data.batch = ... (larger)") is
// refused: `wrong` becomes a sentence.
Changes parse_changes(std::string_view text, std::string& wrong);
std::string changes_text(const Changes& changes);
// An advice's setting of a job file as changes that can be tried: parts without a value get one (a batch
// twice or half as large) or are left out, and so are keys that no replay can vary, unless there are no
// others.
std::string changes_to_try(std::string_view setting, const traces::store::Trace& trace);

struct TrialFigures {
    double step_us = 0, exposed_us = 0;
    std::int64_t peak_bytes = 0;
};
struct TrialResult {
    std::string error;                  // one sentence: why it cannot be tried; empty: it was
    TrialFigures before, after;         // of the replays: as recorded, and with the changes
    bool times = true;                  // false: the trace has no times, only memory
    std::optional<double> off_percent;  // the unchanged replay's step from the recorded one
    double recorded_step_us = 0;
    std::vector<std::string> unknown;  // sentences: what the replay had to assume
    std::string job, pytorch;          // the changed run as a job file, as lines of PyTorch; empty: none
    std::string trace;                 // the simulated trace
    bool earlier = false;              // the trace has grown since
};
// What `plan TRACE --only --format json` prints, with the change as its second row.
TrialResult read_trial(const std::string& json);

class Trials {
  public:
    // `tool`: the program that replays; empty: shardscope-train, as found by find_tool().
    explicit Trials(std::string tool = {}) : tool_(std::move(tool)) {}
    ~Trials();  // ends the running program and removes the folder
    Trials(const Trials&) = delete;
    Trials& operator=(const Trials&) = delete;

    // Begins to replay the trace of these files with the changes; nothing while another runs.
    void start(const std::shared_ptr<const traces::store::Trace>& trace,
               const std::vector<std::string>& files, const std::string& changes);
    bool busy() const { return child_ != nullptr; }
    bool runs(const traces::store::Trace& trace, const std::string& changes) const {
        return busy() && of_.lock().get() == &trace && changes_ == changes;
    }
    void cancel();
    bool poll();  // called every frame; true: it has ended
    // nullptr: it was not tried.
    const TrialResult* result(const traces::store::Trace& trace, const std::string& changes) const;
    // The trace was closed: its results and its work are dropped.
    void forget(const traces::store::Trace& trace);
    // The trace has grown: its results stay, as those of an earlier state.
    void replaced(const std::shared_ptr<const traces::store::Trace>& before,
                  const std::shared_ptr<const traces::store::Trace>& after);
    std::string progress() const;  // "replaying with fsdp.wrap = root: 3 s"; empty if nothing runs
    bool is_mine(const std::string& path) const;

  private:
    struct Kept {
        std::weak_ptr<const traces::store::Trace> of;
        std::string changes;
        TrialResult result;
    };
    void begin(const std::vector<std::string>& files, const Changes& changes);
    void keep(TrialResult result);

    const std::string tool_;
    std::string folder_;  // empty until the first
    int count_ = 0;
    std::unique_ptr<ChildProcess> child_;
    std::weak_ptr<const traces::store::Trace> of_;
    std::string changes_, trace_, output_;
    bool cancelled_ = false;
    std::chrono::steady_clock::time_point began_;
    std::vector<Kept> kept_;
};

}  // namespace shardscope::viewer::model
