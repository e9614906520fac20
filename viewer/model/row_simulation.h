// Makes the trace of a planner's row: its job is simulated by shardscope-train, a program of its own, behind
// the frames. The traces lie in a folder that goes when the viewer does. One at a time. Frame thread only.
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
    // `tool`: the program that simulates; empty: shardscope-train, wherever find_tool() finds it.
    explicit RowSimulation(std::string tool = {}) : tool_(std::move(tool)) {}
    ~RowSimulation();  // ends what runs and removes the folder
    RowSimulation(const RowSimulation&) = delete;
    RowSimulation& operator=(const RowSimulation&) = delete;

    // Begins to simulate this job file's text; `name` is what its trace will be called: "row 12 of
    // plan.sqlite". While one runs it does nothing. What goes wrong is said by error().
    void start(const std::string& job, const std::string& name);
    bool busy() const { return child_ != nullptr; }
    void cancel();

    // Once for each trace that was made: where it is, and its name. Call it every frame.
    struct Made {
        std::string path, name;
    };
    std::optional<Made> poll();

    // "simulating row 12 of plan.sqlite: 3 s, 41.0 MB written"; empty while nothing runs.
    std::string progress() const;
    const std::string& name() const { return name_; }
    // Of the latest one, where it failed or was cancelled: one sentence.
    const std::string& error() const { return error_; }

    // Whether a file is one of those made here, which nothing should remember.
    bool is_mine(const std::string& path) const;
    // One of them is no longer needed.
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
