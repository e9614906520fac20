// A program with NVTX ranges that behaves as real jobs do, for tests to record: job_program SCENARIO
// [NUMBER]. Its rank is in RANK, as usual.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/profiler/nvtx_calls.h"

namespace {

using namespace nvtx_calls;
using Clock = std::chrono::steady_clock;

void sleep_ms(int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// Steps of 20 ms, one after another.
void steps(int milliseconds) {
    const auto until = Clock::now() + std::chrono::milliseconds(milliseconds);
    for (int step = 0; Clock::now() < until; ++step) {
        push_a("step");
        push_a(("forward of step " + std::to_string(step)).c_str());
        sleep_ms(20);
        pop();
        pop();
    }
}

// The value of a line of /proc/self/io.
double io_value(const std::string& word) {
    std::ifstream io("/proc/self/io");
    for (std::string key; io >> key;) {
        double value = 0;
        io >> value;
        if (key == word) return value;
    }
    return 0;
}

// Prints seconds of processor time and bytes given to disks.
void uses(int milliseconds, const char* path) {
    const auto until = Clock::now() + std::chrono::milliseconds(milliseconds);
    const std::vector<char> block(1 << 18, 'x');
    std::ofstream file(path, std::ios::binary);
    for (int round = 0; Clock::now() < until; ++round) {
        for (const auto end = Clock::now() + std::chrono::milliseconds(20); Clock::now() < end;) {
        }
        file.write(block.data(), static_cast<std::streamsize>(block.size()));
        file.flush();
        sleep_ms(20);
    }
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    std::printf("%.6f %.0f\n", seconds(usage.ru_utime) + seconds(usage.ru_stime), io_value("write_bytes:"));
}

// Becomes a daemon, as servers do: the parent exits, so that the grandchild is orphaned.
bool become_daemon() {
    if (const pid_t child = ::fork(); child != 0) {
        ::waitpid(child, nullptr, 0);
        return false;
    }
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    return true;
}

int run(const std::string& scenario, int number, const char* file) {
    if (scenario == "steps") {
        steps(number);
        return 0;
    }
    if (scenario == "uses") {  // computes every other 20 ms, writes to a file, and says what it has used
        uses(number, file);
        return 0;
    }
    if (scenario == "fails_in_allreduce") {  // the all-reduce takes `number` ms
        push_a("epoch");
        steps(number);
        push_a("ncclAllReduce");
        sleep_ms(50);
        std::abort();
    }
    if (scenario == "crashes") {
        steps(number);
        push_a("reads what is not there");
        *static_cast<volatile int*>(nullptr) = 1;
    }
    if (scenario == "hangs") {  // recovers after `number` ms
        steps(200);
        push_a("waits for nobody");
        sleep_ms(number);
        pop();
        steps(100);
        return 0;
    }
    if (scenario == "is_killed_after") {  // after `number` marks
        for (int i = 0; i < number; ++i) mark_a("m");
        ::raise(SIGKILL);
    }
    if (scenario == "forks") {
        std::vector<pid_t> children;
        for (int i = 0; i < number; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                push_a("child");
                pop();
                ::_exit(0);
            }
            children.push_back(child);
        }
        int failures = 0;
        for (const pid_t child : children) {
            int status = 1;
            if (::waitpid(child, &status, 0) != child || status != 0) ++failures;
        }
        return failures;
    }
    if (scenario == "daemon") {
        push_a("before the daemon");
        pop();
        if (!become_daemon()) return 0;
        // Records more than a chunk holds, long after the recording has ended.
        for (int i = 0; i < number; ++i) {
            for (int k = 0; k < 2000; ++k) mark_a("the daemon lives");
            sleep_ms(10);
        }
        std::ofstream(file) << "unharmed";
        return 0;
    }
    if (scenario == "writes_when_done") {  // after 2,000 marks, `number` times
        for (int round = 0; round < number; ++round) {
            for (int k = 0; k < 2000; ++k) mark_a("mark");
            sleep_ms(10);
        }
        std::ofstream(file) << "unharmed";
        return 5;
    }
    if (scenario == "burns") {  // for `number` ms of processor time, and at least as long by the clock
        const auto until = Clock::now() + std::chrono::milliseconds(number);
        const std::clock_t ticks = std::clock() + std::clock_t{number} * (CLOCKS_PER_SEC / 1000);
        std::vector<char> memory(std::size_t{64} << 20, 'x');
        volatile int sum = 0;
        while (Clock::now() < until || std::clock() < ticks)
            sum = sum + memory[static_cast<std::size_t>(sum & 0xFFFF)];
        return 0;
    }
    // Counts USR1 and INT until TERM. Each count makes a file, because equal signals that are pending are
    // merged.
    if (scenario == "counts_signals") {
        static volatile sig_atomic_t usr1 = 0, interrupts = 0, ended = 0;
        ::signal(SIGUSR1, [](int) { usr1 = usr1 + 1; });
        ::signal(SIGINT, [](int) { interrupts = interrupts + 1; });
        ::signal(SIGTERM, [](int) { ended = 1; });
        std::ofstream(file) << "ready" << std::flush;
        for (int written = 0; ended == 0; sleep_ms(5)) {
            while (written < usr1 + interrupts)
                std::ofstream(std::string(file) + "." + std::to_string(++written)) << '.';
        }
        return usr1 * 10 + interrupts;
    }
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    return run(argv[1], argc > 2 ? std::atoi(argv[2]) : 0, argc > 3 ? argv[3] : "");
}
