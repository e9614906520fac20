#include "trainer/cli/child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "traces/store/file_descriptor.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/stop.h"

namespace shardscope::trainer::cli {

namespace {

constexpr int kPollMs = 100;  // the longest delay before a signal is passed on

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("a pipe for the run cannot be made");
        read = traces::store::FileDescriptor(ends[0]);
        write = traces::store::FileDescriptor(ends[1]);
    }
    traces::store::FileDescriptor read, write;
};

// Runs in the child, between fork and exec: system calls only.
[[noreturn]] void become(char* const* words, int out, int err, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kNotStarted);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv("/proc/self/exe", words);
    _exit(kNotStarted);
}

// Passes on whole lines of the child's standard error; remembers the last line that is not indented (indented
// lines explain the previous one).
class ErrorLines {
  public:
    void add(std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stderr);
        std::fflush(stderr);
        for (const char c : text) {
            if (c == '\n') {
                if (!line_.empty() && line_.front() != ' ') last_ = line_;
                line_.clear();
            } else {
                line_ += c;
            }
        }
    }
    std::string last() const {
        constexpr std::string_view kName = "shardscope-train: ";
        const std::string& line = line_.empty() || line_.front() == ' ' ? last_ : line_;
        return line.starts_with(kName) ? line.substr(kName.size()) : line;
    }

  private:
    std::string line_, last_;
};

}  // namespace

ChildResult run_again(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {"shardscope-train"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);

    Pipe out, err;
    const pid_t parent = getpid();
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) fail("the run cannot be started");
    if (child == 0) become(pointers.data(), out.write.get(), err.write.get(), parent);
    out.write.close();
    err.write.close();

    ChildResult result;
    ErrorLines errors;
    int passed_on = 0;
    std::array<pollfd, 2> ends = {pollfd{out.read.get(), POLLIN, 0}, pollfd{err.read.get(), POLLIN, 0}};
    std::array<char, 1 << 14> buffer{};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (StopSignals::count() > passed_on) {
            ++passed_on;
            kill(child, StopSignals::received());
        }
        if (poll(ends.data(), ends.size(), kPollMs) <= 0) continue;
        for (pollfd& end : ends) {
            if (end.fd < 0 || end.revents == 0) continue;
            const ssize_t n = read(end.fd, buffer.data(), buffer.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) {
                end.fd = -1;  // poll ignores it
            } else if (&end == ends.data()) {
                result.out.append(buffer.data(), static_cast<std::size_t>(n));
            } else {
                errors.add({buffer.data(), static_cast<std::size_t>(n)});
            }
        }
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) fail("the end of the run cannot be determined");
    }
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
    result.last_error = errors.last();
    return result;
}

}  // namespace shardscope::trainer::cli
