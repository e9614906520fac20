// See child_process.h.
#include "viewer/model/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace shardscope::viewer {
namespace {

namespace fs = std::filesystem;
constexpr auto kPatience = std::chrono::seconds(2);
constexpr std::size_t kLongestLine = 4096;  // bytes; the rest of a longer line is dropped

// Standard input and output are /dev/null, standard error goes to `errors`, signals are as a shell leaves
// them, and the process has a group of its own, so that Ctrl-C in the viewer's terminal reaches only the
// viewer.
class SpawnSettings {
  public:
    explicit SpawnSettings(int errors) {
        posix_spawn_file_actions_init(&files_);
        posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(&files_, errors, STDERR_FILENO);
        posix_spawnattr_init(&attributes_);
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attributes_, &none);
        posix_spawnattr_setsigdefault(&attributes_, &all);
        posix_spawnattr_setpgroup(&attributes_, 0);
        posix_spawnattr_setflags(&attributes_,
                                 POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~SpawnSettings() {
        posix_spawn_file_actions_destroy(&files_);
        posix_spawnattr_destroy(&attributes_);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;

    const posix_spawn_file_actions_t* files() const { return &files_; }
    const posix_spawnattr_t* attributes() const { return &attributes_; }

  private:
    posix_spawn_file_actions_t files_{};
    posix_spawnattr_t attributes_{};
};

bool is_program(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        throw std::runtime_error(
            fmt::format("{} cannot be started: {}.", command.front(), std::strerror(errno)));
    errors_ = ends[0];
    ::fcntl(errors_, F_SETFL, O_NONBLOCK);
    std::vector<std::string> words = command;
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const SpawnSettings settings(ends[1]);
    const int error = ::posix_spawn(&pid_, command.front().c_str(), settings.files(), settings.attributes(),
                                    pointers.data(), environ);
    ::close(ends[1]);
    if (error == 0) return;
    ::close(errors_);
    throw std::runtime_error(fmt::format("{} cannot be started: {}.", command.front(), std::strerror(error)));
}

ChildProcess::~ChildProcess() {
    if (!ended_) {
        end(SIGKILL);
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
    }
    ::close(errors_);
}

// Signals the whole group: processes that the program has started end too.
void ChildProcess::end(int signal) const {
    if (::kill(-pid_, signal) != 0) ::kill(pid_, signal);
}

void ChildProcess::stop() {
    if (ended_) return;
    end(asked_ ? SIGKILL : SIGTERM);
    if (!asked_) asked_ = std::chrono::steady_clock::now();
}

void ChildProcess::read_errors() {
    std::array<char, 4096> buffer{};
    for (;;) {
        const ssize_t n = ::read(errors_, buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(n))) {
            if (c != '\n' && c != '\r') {
                if (line_.size() < kLongestLine) line_ += c;
            } else {
                if (!line_.empty()) last_line_ = line_;
                line_.clear();
            }
        }
    }
}

bool ChildProcess::poll() {
    if (ended_) return true;
    read_errors();
    int status = 0;
    const pid_t who = ::waitpid(pid_, &status, WNOHANG);
    if (who == 0 || (who < 0 && errno == EINTR)) {
        if (asked_ && std::chrono::steady_clock::now() - *asked_ > kPatience) end(SIGKILL);
        return false;
    }
    read_errors();
    if (!line_.empty()) last_line_ = line_;
    ended_ = true;
    status_ = who < 0 ? 127 : WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

std::string find_tool(const std::string& name) {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    if (!error && is_program(self.parent_path() / name)) return (self.parent_path() / name).string();
    const char* path = std::getenv("PATH");
    std::string_view folders = path == nullptr ? "" : path;
    while (!folders.empty()) {
        const std::string_view folder = folders.substr(0, folders.find(':'));
        if (!folder.empty() && is_program(fs::path(folder) / name)) return (fs::path(folder) / name).string();
        folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
    }
    return "";
}

}  // namespace shardscope::viewer
