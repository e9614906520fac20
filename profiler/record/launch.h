// Starts the command and waits for it as a shell would: its signals are its own, ours are passed on.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "traces/store/file_descriptor.h"

namespace shardscope::profiler {

// The command could not be started; what() is a sentence, status the shell's: 126 found but not executable,
// 127 not found.
class LaunchError : public std::runtime_error {
  public:
    LaunchError(const std::string& what, int exit_status) : std::runtime_error(what), status(exit_status) {}
    int status;
};

class Command {
  public:
    using Variables = std::vector<std::pair<std::string, std::string>>;

    // Runs arguments[0], looked for in PATH, with these variables added to the environment. From now on the
    // calling thread's terminating signals go to the command, as long as this object lives; `own_signal` (0:
    // none) is counted instead. A full disk or a closed pipe no longer ends this process. Throws LaunchError
    // if the command could not be executed; otherwise the new program is running on return.
    // The signals stay blocked when this object is gone: this process ends as its command did.
    Command(const std::vector<std::string>& arguments, const Variables& variables, int own_signal = 0);
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    pid_t pid() const { return pid_; }

    // Waits at most that long, and passes signals on. Returns the exit status (128 + n after a signal) once
    // the command has ended; `at_end` is called just before, while the system still knows what it has used.
    std::optional<int> wait(std::chrono::milliseconds time, const std::function<void()>& at_end = {});

    // For use once the command has ended: whether a signal since the last call asks this process to end too.
    bool told_to_end();

    // How often own_signal has arrived since the last call.
    int take_own_signals() { return std::exchange(own_signals_, 0); }

  private:
    void pass_signals_on();

    pid_t pid_ = -1;
    traces::store::FileDescriptor signals_;  // a signalfd
    int own_signal_, own_signals_ = 0;
    std::optional<int> status_;
};

}  // namespace shardscope::profiler
