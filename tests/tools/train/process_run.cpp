#include "tests/tools/train/process_run.h"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

extern char** environ;

namespace shardscope::tools {

namespace {

// A port on which no process listens, and neither on the next few.
int free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
        throw std::system_error(errno, std::generic_category(), "a free port");
    ::close(socket);
    return ntohs(address.sin_port);
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace

ProcessRun::ProcessRun(int ranks, Words command)
    : ranks_(ranks), command_(std::move(command)), port_(free_port()) {}

ProcessRun::~ProcessRun() {
    for (auto& [rank, process] : processes_) {
        if (process.over) continue;
        ::kill(process.pid, SIGKILL);
        ::waitpid(process.pid, nullptr, 0);
    }
}

void ProcessRun::start(int name, int rank, const Words& more_arguments, const std::string& token) {
    Words words = command_;
    words.insert(words.end(), more_arguments.begin(), more_arguments.end());
    Words variables = {"RANK=" + std::to_string(rank),
                       "WORLD_SIZE=" + std::to_string(ranks_),
                       "LOCAL_RANK=" + std::to_string(rank),
                       "LOCAL_WORLD_SIZE=" + std::to_string(ranks_),
                       "MASTER_ADDR=127.0.0.1",
                       "MASTER_PORT=" + std::to_string(port_),
                       "SHARDSCOPE_JOB_TOKEN=" + token};
    for (char** each = environ; *each; ++each) variables.emplace_back(*each);
    Process process;
    process.out = folder_ / ("out-" + std::to_string(name));
    process.err = folder_ / ("err-" + std::to_string(name));
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, process.out.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&files, 2, process.err.c_str(), O_WRONLY | O_CREAT, 0600);
    const int failed = ::posix_spawnp(&process.pid, words[0].c_str(), &files, nullptr,
                                      pointers_to(words).data(), pointers_to(variables).data());
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw std::system_error(failed, std::generic_category(), command_[0]);
    processes_[name] = process;
}

void ProcessRun::start(int rank, const Words& more_arguments) {
    start(rank, rank, more_arguments, "the job's");
}

void ProcessRun::start_all() {
    for (int rank = 0; rank < ranks_; ++rank) start(rank);
}

void ProcessRun::start_stranger(int rank, const Words& more_arguments) {
    start(-1, rank, more_arguments, "another's");
}

void ProcessRun::signal(int rank, int signal) const {
    ASSERT_EQ(::kill(pid(rank), signal), 0);
}

void ProcessRun::await_step() const {
    const std::string err = processes_.at(0).err;
    EXPECT_TRUE(within(60, [&] { return read_file(err).find("step 1/") != std::string::npos; }))
        << read_file(err);
}

bool ProcessRun::reap(Process& process) {
    int status = 0;
    if (process.over || ::waitpid(process.pid, &status, WNOHANG) != process.pid) return process.over;
    process.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return process.over = true;
}

bool ProcessRun::ended(int rank) {
    return reap(processes_.at(rank));
}

std::map<int, Outcome> ProcessRun::ends(double seconds) {
    within(seconds, [&] {
        bool all = true;
        for (auto& [rank, process] : processes_) all = reap(process) && all;
        return all;
    });
    std::map<int, Outcome> outcomes;
    for (auto& [rank, process] : processes_) {
        if (!process.over) {
            ADD_FAILURE() << "rank " << rank << " runs after " << seconds << " s";
            ::kill(process.pid, SIGKILL);
            ::waitpid(process.pid, nullptr, 0);
            process.over = true;
        }
        outcomes[rank] = {process.status, read_file(process.out), read_file(process.err)};
    }
    return outcomes;
}

}  // namespace shardscope::tools
