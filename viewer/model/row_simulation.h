// Makes the trace of a planner's row: its job is simulated by shardscope-train, a separate program, in the
// background. The traces are in a folder that is removed when the viewer ends. One at a time. Frame thread
// only.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace shardscope::viewer::model {

// --- A program that runs in the background: started, polled without waiting, ended. Its standard error is
// read; its standard output goes to a file, or is discarded. Frame thread only; nothing here waits except for
// the end of a program that was stopped. No Dear ImGui.

class ChildProcess {
  public:
    // `command`: the program's path and its arguments. Throws std::runtime_error if it cannot be started.
    // `output`: the file for its standard output; empty: none.
    explicit ChildProcess(const std::vector<std::string>& command, const std::string& output = {});
    ~ChildProcess();  // ends it
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    // Reads its new output; true: it has ended.
    bool poll();
    // Asks it to end (SIGTERM); a second call, or poll() two seconds later, kills it (SIGKILL).
    void stop();

    // Once it has ended: its exit status, or -signal.
    int status() const { return status_; }
    // The last line of its standard error that is not blank.
    const std::string& last_line() const { return last_line_; }

  private:
    void read_errors();
    void end(int signal) const;

    pid_t pid_ = -1;
    int errors_ = -1;  // the read end of the pipe
    bool ended_ = false;
    int status_ = 0;
    std::string line_, last_line_;
    std::optional<std::chrono::steady_clock::time_point> asked_;
};

inline constexpr const char* kTrainTool = "shardscope-train";

// The path of one of our tools: beside this program, else on PATH; empty: not found.
std::string find_tool(const std::string& name);

// Makes a folder for simulated traces, accessible to its owner only. Throws std::runtime_error.
std::string make_simulation_folder();

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

    // Returned once for each trace that was made: its path and its name. Called every frame.
    struct Made {
        std::string path, name;
    };
    std::optional<Made> poll();

    // "simulating row 12 of plan.sqlite: 3 s, 41.0 MiB written"; empty if nothing runs.
    std::string progress() const;
    const std::string& name() const { return name_; }
    // Why the latest simulation failed or was cancelled: one sentence.
    const std::string& error() const { return error_; }

    // Whether a file was made here, and so should not be remembered for the next start.
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

}  // namespace shardscope::viewer::model
