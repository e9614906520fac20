// Runs this program again as a child process and reads its output: the child has its own memory, and its
// crash harms no other run.
#pragma once

#include <string>
#include <vector>

namespace shardscope::trainer::cli {

struct ChildResult {
    int status = 0;          // exit status; 0 if a signal ended it
    int signal = 0;          // the signal that ended it; 0: none
    std::string out;         // its standard output
    std::string last_error;  // the last line of its standard error that is not indented, without the program
                             // name in front
};

// `arguments` follow the program's name. The child's standard error is passed on as it arrives. The child is
// in a process group of its own, so that a key pressed at the terminal reaches it only through `interrupted`:
// a signal that a StopSignals (stop.h) of this process receives is sent on. The child ends when this process
// does. Throws std::system_error if it cannot be started.
ChildResult run_again(const std::vector<std::string>& arguments);

}  // namespace shardscope::trainer::cli
