// The processes of one job of shardscope-train. The test starts each as torchrun would, each with its own
// lifetime, exit status and outputs.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "tests/tools/run_command.h"
#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {

class ProcessRun {
  public:
    // `command`: a program and its arguments. The constructor starts no process.
    ProcessRun(int ranks, Words command);
    // Kills what is still running.
    ~ProcessRun();
    ProcessRun(const ProcessRun&) = delete;
    ProcessRun& operator=(const ProcessRun&) = delete;

    void start(int rank, const Words& more_arguments = {});
    void start_all();
    // Starts a process that belongs to another job and connects to this one's port.
    void start_stranger(int rank, const Words& more_arguments);

    pid_t pid(int rank) const { return processes_.at(rank).pid; }
    void signal(int rank, int signal) const;
    // Waits until rank 0 has reported a step, or has ended. Fails the test after a minute.
    void await_step() const;
    // The outcomes of all processes by rank (the stranger as -1), once they have ended. A process that is
    // still running after `seconds` fails the test, is killed, and gets status -1.
    std::map<int, Outcome> ends(double seconds);
    bool ended(int rank);  // whether it has ended by now

  private:
    struct Process {
        pid_t pid = 0;
        int status = -1;
        bool over = false;
        std::string out, err;  // paths
    };
    void start(int name, int rank, const Words& more_arguments, const std::string& token);
    bool reap(Process& process);

    TemporaryFolder folder_;
    int ranks_;
    Words command_;
    int port_;
    std::map<int, Process> processes_;
};

// Whether the condition became true in time.
template <class Condition>
bool within(double seconds, const Condition& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) return false;
        ::usleep(10'000);
    }
    return true;
}

}  // namespace shardscope::tools
