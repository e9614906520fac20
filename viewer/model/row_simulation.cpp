// See row_simulation.h.
#include "viewer/model/row_simulation.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "viewer/draw/format.h"

extern char** environ;

namespace shardscope::viewer::model {
namespace {

namespace fs = std::filesystem;
constexpr auto kPatience = std::chrono::seconds(2);
constexpr std::size_t kLongestLine = 4096;  // bytes; the rest of a longer line is dropped

// Standard input is /dev/null, and so is standard output without a file for it; standard error goes to
// `errors`, signals are as a shell leaves them, and the process has a group of its own, so that Ctrl-C in the
// viewer's terminal reaches only the viewer.
class SpawnSettings {
  public:
    SpawnSettings(int errors, const std::string& output) {
        posix_spawn_file_actions_init(&files_);
        posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO,
                                         output.empty() ? "/dev/null" : output.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
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

ChildProcess::ChildProcess(const std::vector<std::string>& command, const std::string& output) {
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
    const SpawnSettings settings(ends[1], output);
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

std::string make_simulation_folder() {
    std::error_code error;
    const fs::path base = fs::temp_directory_path(error);
    std::string folder = ((error ? fs::path("/tmp") : base) / "shardscope-view-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) {
        throw std::runtime_error(fmt::format(
            "{}: no folder for the simulated trace can be made here ({}); set TMPDIR to one where it can.",
            folder, std::strerror(errno)));
    }
    return folder;
}

RowSimulation::~RowSimulation() {
    child_.reset();
    if (folder_.empty()) return;
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

void RowSimulation::start(const std::string& job, const std::string& name) {
    if (busy()) return;
    name_ = name;
    error_.clear();
    cancelled_ = false;
    try {
        begin(job);
    } catch (const std::exception& failure) {
        error_ = failure.what();
    }
}

void RowSimulation::begin(const std::string& job) {
    if (job.empty()) throw std::runtime_error("This row has no job: such a configuration is impossible.");
    const std::string tool = tool_.empty() ? find_tool(kTrainTool) : tool_;
    if (tool.empty()) {
        throw std::runtime_error(
            fmt::format("{} is neither beside this program nor on PATH; install it, or save the job file and "
                        "simulate it where it is: {} JOB.toml --run.device=sim --trace OUT.sqlite.",
                        kTrainTool, kTrainTool));
    }
    if (folder_.empty()) folder_ = make_simulation_folder();
    const std::string stem = (fs::path(folder_) / fmt::format("row-{}", ++count_)).string();
    const std::string file = stem + ".toml";
    std::ofstream out(file, std::ios::binary);
    out << job;
    out.close();
    if (!out)
        throw std::runtime_error(fmt::format("{}: cannot be written ({}).", file, std::strerror(errno)));
    trace_ = stem + ".sqlite";
    child_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{tool, file, "--run.device=sim", "--trace", trace_, "--format", "json"});
    began_ = std::chrono::steady_clock::now();
}

void RowSimulation::cancel() {
    if (!busy()) return;
    cancelled_ = true;
    child_->stop();
}

std::string RowSimulation::failure() const {
    if (cancelled_) return fmt::format("The simulation of {} was cancelled.", name_);
    std::string said = child_->last_line();
    const std::string prefix = fmt::format("{}: ", kTrainTool);
    if (said.starts_with(prefix)) said.erase(0, prefix.size());
    if (child_->status() < 0)
        return fmt::format("{} was ended by signal {} while it simulated {}.", kTrainTool, -child_->status(),
                           name_);
    return fmt::format(
        "{} cannot be simulated: {}", name_,
        said.empty() ? fmt::format("{} ended with status {}.", kTrainTool, child_->status()) : said);
}

std::optional<RowSimulation::Made> RowSimulation::poll() {
    if (!busy() || !child_->poll()) return std::nullopt;
    const bool done = child_->status() == 0 && !cancelled_;
    if (!done) {
        error_ = failure();
        remove(trace_);
    }
    child_.reset();
    if (!done) return std::nullopt;
    return Made{trace_, name_};
}

std::string RowSimulation::progress() const {
    if (!busy()) return "";
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    std::error_code error;
    const auto bytes = fs::file_size(trace_, error);
    return fmt::format(
        "{} {}: {:.0f} s{}", cancelled_ ? "stopping" : "simulating", name_, seconds,
        error ? "" : fmt::format(", {} written", draw::format_size(static_cast<std::int64_t>(bytes))));
}

bool RowSimulation::is_mine(const std::string& path) const {
    return !folder_.empty() && path.starts_with(folder_ + "/");
}

void RowSimulation::remove(const std::string& path) const {
    if (!is_mine(path)) return;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
        std::error_code ignored;
        fs::remove(path + suffix, ignored);
    }
}

}  // namespace shardscope::viewer::model
