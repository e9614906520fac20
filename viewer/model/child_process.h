// A program that runs in the background: started, polled without waiting, ended. Its standard error is read;
// its standard output is not kept. Frame thread only; nothing here waits except for the end of a program that
// was stopped. No Dear ImGui.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace shardscope::viewer {

class ChildProcess {
  public:
    // `command`: the program's path and its arguments. Throws std::runtime_error if it cannot be started.
    explicit ChildProcess(const std::vector<std::string>& command);
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
    int errors_ = -1;  // the pipe's end
    bool ended_ = false;
    int status_ = 0;
    std::string line_, last_line_;
    std::optional<std::chrono::steady_clock::time_point> asked_;
};

// The path of one of our tools: beside this program, else on PATH; empty: not found.
std::string find_tool(const std::string& name);

}  // namespace shardscope::viewer
