// A program that runs behind the frames: started, looked at without waiting, ended. What it writes to
// standard error is read; its standard output is not kept. Frame thread only; nothing here waits but the end
// of a program that was told to stop. No Dear ImGui.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace shardscope::viewer {

class ChildProcess {
  public:
    // `command`: the program's path and its arguments. Throws std::runtime_error where it cannot be started.
    explicit ChildProcess(const std::vector<std::string>& command);
    ~ChildProcess();  // ends it
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    // Reads what it has written since; true: it has ended.
    bool poll();
    // Asks it to end (SIGTERM); a second time, or two seconds later in poll(), it is not asked (SIGKILL).
    void stop();

    // Once it has ended: its exit status, or -signal.
    int status() const { return status_; }
    // The last line of its standard error that is not empty.
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

// Where a tool of ours is: beside this program, else on PATH; empty: nowhere.
std::string find_tool(const std::string& name);

}  // namespace shardscope::viewer
