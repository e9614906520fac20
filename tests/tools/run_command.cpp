// Spawns programs with standard output and error in files, so that neither can fill a pipe.
#include "tests/tools/run_command.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char** environ;

namespace shardscope::tools {

namespace {

std::string read_all(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// Where Open MPI keeps the files that its jobs on a host share. Each test program has its own folder: a job
// fails if another makes the common folder at the same time.
struct MpiFolder {
    MpiFolder() { ::setenv("OMPI_MCA_orte_tmpdir_base", folder.path().c_str(), 0); }
    const TemporaryFolder folder;
};
const MpiFolder kMpiFolder;

}  // namespace

Outcome run_command(const std::vector<std::string>& command) {
    const TemporaryFolder folder;
    const std::string out = folder / "out", err = folder / "err";
    const int status = RunningCommand(command, out, err).wait();
    return {status, read_all(out), read_all(err)};
}

RunningCommand::RunningCommand(const std::vector<std::string>& command, const std::string& out,
                               const std::string& err) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int failed = posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::system_error(failed, std::generic_category(), command[0]);
}

RunningCommand::~RunningCommand() {
    if (pid_ > 0) end(SIGKILL);
}

int RunningCommand::wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    }
    pid_ = 0;
    signalled_ = WIFSIGNALED(status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int RunningCommand::end(int signal) {
    if (pid_ <= 0) throw std::logic_error("the program has ended already");  // kill(0) would end the tests
    ::kill(pid_, signal);
    return wait();
}

}  // namespace shardscope::tools
