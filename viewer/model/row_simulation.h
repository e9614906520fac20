// Makes the trace of a planner's row: its job is simulated by shardscope-train, a separate program, in the
// background. The traces are in a folder that is removed when the viewer ends. One at a time. Frame thread
// only.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "viewer/model/child_process.h"

namespace shardscope::viewer {

class RowSimulation {
  public:
    // `tool`: the program that simulates; empty: shardscope-train, as found by find_tool().
    explicit RowSimulation(std::string tool = {}) : tool_(std::move(tool)) {}
    ~RowSimulation();  // ends the running simulation and removes the folder
    RowSimulation(const RowSimulation&) = delete;
    RowSimulation& operator=(const RowSimulation&) = delete;

    // Begins to simulate the job in this text; `name` becomes its trace's name: "row 12 of plan.sqlite". Does
    // nothing while another simulation runs. error() reports failures.
    void start(const std::string& job, const std::string& name);
    bool busy() const { return child_ != nullptr; }
    void cancel();

    // Returned once for each trace that was made: its path and its name. To be called every frame.
    struct Made {
        std::string path, name;
    };
    std::optional<Made> poll();

    // "simulating row 12 of plan.sqlite: 3 s, 41.0 MB written"; empty if nothing runs.
    std::string progress() const;
    const std::string& name() const { return name_; }
    // Why the latest simulation failed or was cancelled: one sentence.
    const std::string& error() const { return error_; }

    // Whether a file was made here; it should not be remembered.
    bool is_mine(const std::string& path) const;
    // Removes a trace that is no longer needed.
    void remove(const std::string& path) const;

  private:
    void begin(const std::string& job);
    std::string failure() const;

    const std::string tool_;
    std::string folder_;  // empty until the first
    int count_ = 0;
    std::unique_ptr<ChildProcess> child_;
    std::string trace_, name_, error_;
    bool cancelled_ = false;
    std::chrono::steady_clock::time_point began_;
};

}  // namespace shardscope::viewer
