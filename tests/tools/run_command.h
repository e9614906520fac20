// Runs a real program as a user would and returns its output.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/traces/temporary_folder.h"

namespace shardscope::tools {

struct Outcome {
    int status = -1;  // exit status; 128 + n if signal n ended it
    std::string out, err;
};

// `command[0]` is a path, or a name looked up in PATH. Standard input is empty. Fails the test by an
// exception if the program cannot be started.
Outcome run_command(const std::vector<std::string>& command);

// The same, beside the test; killed at the end of the scope if it has not ended. Its output goes to files.
class RunningCommand {
  public:
    explicit RunningCommand(const std::vector<std::string>& command, const std::string& out = "/dev/null",
                            const std::string& err = "/dev/null");
    ~RunningCommand();
    RunningCommand(const RunningCommand&) = delete;
    RunningCommand& operator=(const RunningCommand&) = delete;

    pid_t pid() const { return pid_; }
    // Its exit status; 128 + n if signal n ended it.
    int wait();
    int end(int signal);  // sends the signal first
    // Whether a signal ended it, rather than an exit status of 128 + n. Known after wait().
    bool was_signalled() const { return signalled_; }

  private:
    pid_t pid_ = 0;
    bool signalled_ = false;
};

using traces::TemporaryFolder;

}  // namespace shardscope::tools
