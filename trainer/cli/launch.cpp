#include "trainer/cli/launch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/cli/exit_status.h"
#include "trainer/cli/stop.h"
#include "trainer/world/listener.h"
#include "trainer/world/own_launcher.h"

namespace shardscope::trainer::cli {

namespace {

constexpr int kPollMicroseconds = 20'000;  // the longest delay before a signal or an exit is noticed
// Ranks that have joined end each other. If one dies before that, the others wait for it, and are asked to
// end after this time. A rank that is finishing its trace is not hurried by it; a stopped one (SIGSTOP)
// cannot react and is killed.
constexpr auto kGrace = std::chrono::seconds(10);

// The words as exec takes them; valid as long as `words`.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

[[noreturn]] void become_mpirun(const std::vector<std::string>& arguments, int processes) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    // There may be more ranks than cores, as with threads.
    std::vector<std::string> words = {"mpirun", "--oversubscribe", "-np", std::to_string(processes), self};
    words.insert(words.end(), arguments.begin(), arguments.end());
    if (geteuid() == 0) {  // whether to run as root is the caller's decision
        ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
        ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    }
    execvp("mpirun", pointers_to(words).data());
    throw world::WorldError(
        fmt::format("run.comm = \"mpi\": mpirun cannot be started ({}); install an MPI, or omit the key: "
                    "the processes then use TCP",
                    std::strerror(errno)));
}

struct Child {
    pid_t pid = 0;
    std::optional<int> status;  // as returned by waitpid
    bool asked = false;         // asked to end, because another has ended
    bool stopped = false;       // by SIGSTOP or the like, and not continued
};

// Runs between fork and exec.
[[noreturn]] void become(char* const* words, char* const* environment, pid_t parent) {
    setpgid(0, 0);  // terminal signals reach it only through its parent
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kNotStarted);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    execve("/proc/self/exe", words, environment);
    _exit(kNotStarted);
}

Child start(const std::vector<std::string>& arguments, const world::Place& place,
            const world::Listener& listener) {
    std::vector<std::string> words = {"shardscope-train"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> variables = environment_for(place);
    for (char** each = environ; *each; ++each) variables.emplace_back(*each);
    const std::vector<char*> word_pointers = pointers_to(words), variable_pointers = pointers_to(variables);
    std::fflush(nullptr);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0)
        throw std::system_error(errno, std::generic_category(), "a rank's process cannot be started");
    if (child == 0) {
        if (place.rank == 0) listener.keep_on_exec();
        become(word_pointers.data(), variable_pointers.data(), parent);
    }
    return {child, {}};
}

void send(const std::vector<Child>& children, int signal) {
    for (const Child& child : children) {
        if (!child.status) kill(child.pid, signal);
    }
}

void kill_rank(std::vector<Child>& children, std::size_t rank) {
    fmt::print(stderr,
               "shardscope-train: rank {} (process {}) is stopped and cannot end on its own; it is killed\n",
               rank, children[rank].pid);
    children[rank].asked = true;
    kill(children[rank].pid, SIGKILL);
}

// Waits until all have ended.
void wait_for(std::vector<Child>& children) {
    using Clock = std::chrono::steady_clock;
    int passed_on = 0;
    bool killed = false;  // a signal has killed some child
    Clock::time_point patience = Clock::time_point::max();
    for (std::size_t left = children.size(); left > 0;) {
        if (StopSignals::count() > passed_on) {
            send(children, StopSignals::received());
            // After a second signal the ranks end immediately, and a stopped one is not waited for.
            patience = std::min(patience, Clock::now() + (++passed_on > 1 ? Clock::duration() : kGrace));
        }
        int status = 0;
        const pid_t ended = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (ended < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), "the end of a rank cannot be determined");
        if (ended <= 0) {
            if (Clock::now() > patience) {
                patience = Clock::now() + kGrace;
                for (std::size_t rank = 0; rank < children.size(); ++rank) {
                    Child& child = children[rank];
                    if (child.status) continue;
                    if (child.stopped) {
                        kill_rank(children, rank);
                    } else if (killed && !child.asked) {
                        child.asked = true;
                        kill(child.pid, SIGTERM);
                    }
                }
            }
            usleep(kPollMicroseconds);
            continue;
        }
        for (Child& child : children) {
            if (child.pid != ended || child.status) continue;
            if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
                child.stopped = WIFSTOPPED(status);
                continue;
            }
            child.status = status;
            --left;
            killed = killed || WIFSIGNALED(status);
            if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0)
                patience = std::min(patience, Clock::now() + kGrace);
        }
    }
}

int exit_status(const std::vector<Child>& children) {
    int first = 0;
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
        const int status = *children[rank].status;
        if (WIFSIGNALED(status) && !children[rank].asked && StopSignals::count() < 2) {
            fmt::print(stderr, "shardscope-train: rank {} was ended by signal {} ({})\n", rank,
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
        }
        const int own = WIFEXITED(status) ? WEXITSTATUS(status)
                        : children[rank].asked && StopSignals::count() > 0
                            ? kSignalled + StopSignals::received()
                        : StopSignals::count() > 0 ? kSignalled + WTERMSIG(status)
                                                   : kFailed;
        if (first == 0) first = own;
    }
    return first;
}

}  // namespace

int launch(const std::vector<std::string>& arguments, const job::Job& job) {
    const int processes = job.run.processes;
    if (job.run.comm == job::CommKind::mpi) become_mpirun(arguments, processes);
    const StopSignals listening(nullptr, StopSignals::Second::is_counted);
    std::vector<Child> children;
    try {
        const world::Listener listener = world::Listener::on_loopback();
        world::Place place;
        place.ranks = place.local_ranks = processes;
        place.master = "127.0.0.1";
        place.port = listener.port();
        place.token = world::random_token();
        for (int rank = 0; rank < processes; ++rank) {
            place.rank = place.local_rank = rank;
            place.listen_fd = rank == 0 ? listener.descriptor() : -1;
            children.push_back(start(arguments, place, listener));
        }
    } catch (...) {
        send(children, SIGTERM);
        wait_for(children);
        throw;
    }
    wait_for(children);
    return exit_status(children);
}

}  // namespace shardscope::trainer::cli
