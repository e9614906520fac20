// fork, exec, signals and waiting.
#include "profiler/record/launch.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace shardscope::profiler {
namespace {

sigset_t handled_signals(int own_signal) {
    sigset_t set;
    ::sigemptyset(&set);
    if (own_signal != 0) ::sigaddset(&set, own_signal);
    for (const int signal : {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
        ::sigaddset(&set, signal);
    return set;
}

// In the child: becomes the command, or reports through the pipe why it could not.
[[noreturn]] void execute(const std::vector<std::string>& arguments, const Command::Variables& variables,
                          const sigset_t& mask, const struct sigaction& on_child, int tell) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::sigaction(SIGCHLD, &on_child, nullptr);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    ::execvp(argv[0], argv.data());
    const int reason = errno;
    if (::write(tell, &reason, sizeof reason) != sizeof reason) ::_exit(125);
    ::_exit(127);
}

LaunchError launch_error(const std::string& command, int reason) {
    if (reason == ENOENT) {
        return {fmt::format("{}: command not found; check its name and PATH", command), 127};
    }
    return {fmt::format("{}: cannot be executed: {}", command, std::strerror(reason)), 126};
}

}  // namespace

Command::Command(const std::vector<std::string>& arguments, const Variables& variables, int own_signal)
    : own_signal_(own_signal) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw LaunchError(fmt::format("cannot start {}: {}", arguments[0], std::strerror(errno)), 125);
    }
    traces::store::FileDescriptor told(ends[0]);
    traces::store::FileDescriptor tell(ends[1]);
    const sigset_t handled = handled_signals(own_signal);
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &handled, &before);
    // If our parent left SIGCHLD ignored, waiting could not return the command's status.
    struct sigaction on_child_before, on_child{};
    on_child.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &on_child, &on_child_before);
    signals_ = traces::store::FileDescriptor(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) {
        const int failure = errno;
        // Composing and printing the error may need a descriptor.
        told.close();
        tell.close();
        ::sigaction(SIGCHLD, &on_child_before, nullptr);
        ::sigprocmask(SIG_SETMASK, &before, nullptr);
        throw LaunchError(fmt::format("cannot start {}: no descriptor for its signals: {}; raise ulimit -n",
                                      arguments[0], std::strerror(failure)),
                          125);
    }
    pid_ = ::fork();
    if (pid_ == 0) execute(arguments, variables, before, on_child_before, tell.get());
    const int fork_failure = errno;
    tell.close();
    int reason = pid_ < 0 ? fork_failure : 0;
    ssize_t size = 0;
    // Empty when the pipe was closed by a successful exec.
    if (pid_ > 0) {
        do size = ::read(told.get(), &reason, sizeof reason);
        while (size < 0 && errno == EINTR);
    }
    if (reason == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        ::signal(SIGPIPE, SIG_IGN);
        return;
    }
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (pid_ < 0)
        throw LaunchError(fmt::format("cannot start {}: {}", arguments[0], std::strerror(reason)), 125);
    throw launch_error(arguments[0], reason);
}

std::optional<int> Command::wait(std::chrono::milliseconds time, const std::function<void()>& at_end) {
    if (status_) return status_;
    pollfd what{signals_.get(), POLLIN, 0};
    if (::poll(&what, 1, static_cast<int>(time.count())) > 0) pass_signals_on();
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid != pid_)
        return std::nullopt;
    if (at_end) at_end();
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return status_;
}

bool Command::told_to_end() {
    bool told = false;
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        const auto signal = static_cast<int>(info.ssi_signo);
        told |= signal == SIGINT || signal == SIGTERM || signal == SIGQUIT || signal == SIGHUP;
    }
    return told;
}

void Command::pass_signals_on() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        const auto signal = static_cast<int>(info.ssi_signo);
        if (signal == own_signal_) {
            ++own_signals_;
            continue;
        }
        if (signal == SIGCHLD) continue;
        // A terminal key (^C) has already reached the command, which is in our process group. The loss of
        // the terminal is reported to the leader of its session alone, which may be this process.
        const bool told_by_terminal = info.ssi_code == SI_KERNEL;
        if (told_by_terminal && (signal != SIGHUP || ::getsid(0) != ::getpid())) continue;
        ::kill(pid_, signal);
    }
}

}  // namespace shardscope::profiler
