// Counters of processes: this one, really; their memory, swap and disks from a /proc that the test plays.
#include "profiler/sampler/process_counters.h"

#include <chrono>
#include <cmath>
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/profiler/sampler/played_files.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::HasSubstr;

double cpu_seconds() {
    timespec t;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void burn(double seconds) {
    const double until = cpu_seconds() + seconds;
    while (cpu_seconds() < until) {
    }
}

void play_process(const PlayedFiles& played, pid_t pid, int pages, int swapped_kib, int read, int written) {
    const std::string folder = "/proc/" + std::to_string(pid);
    played.write(folder + "/statm", "1000 " + std::to_string(pages) + " 10 1 0 20 0\n");
    played.write(folder + "/status",
                 "Name:\tx\nVmSwap:\t  " + std::to_string(swapped_kib) + " kB\nThreads:\t1\n");
    played.write(folder + "/io",
                 "rchar: 77\nwchar: 78\nsyscr: 1\nsyscw: 1\nread_bytes: " + std::to_string(read) +
                     "\nwrite_bytes: " + std::to_string(written) + "\ncancelled_write_bytes: 5\n");
}

// A child that waits until it is killed.
class Child {
  public:
    Child() : pid_(::fork()) {
        if (pid_ == 0)
            for (;;) ::pause();
    }
    ~Child() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_;
};

// Rates times their time are what getrusage() says, whatever else the machine does.
TEST(ProcessCounters, sum_to_what_a_process_has_used) {
    const SystemFiles files;
    ProcessCounters counters(files, std::nullopt);
    const WatchedProcess self{::getpid(), 3};
    Samples samples;
    counters.sample({&self, 1}, samples);
    const MonotonicTime from = samples.counters.at(0).time;
    const double before = cpu_seconds();
    double used = 0;
    MonotonicTime last = from;
    for (int i = 0; i < 5; ++i) {
        burn(0.02);
        samples = {};
        counters.sample({&self, 1}, samples);
        for (const Sample& sample : samples.counters) {
            EXPECT_EQ(sample.rank, 3);
            if (sample.name != "process_cpu_cores") continue;
            used += sample.value * static_cast<double>(sample.time - last) * 1e-9;
            last = sample.time;
        }
    }
    const double after = cpu_seconds();
    EXPECT_GE(used, 0.0999);
    EXPECT_NEAR(used, after - before, 0.02 * used);
    EXPECT_GT(value_of(samples, "process_resident_bytes"), 1 << 20);
    EXPECT_GE(value_of(samples, "process_swap_bytes"), 0);
}

TEST(ProcessCounters, are_sums_over_the_processes_of_a_rank) {
    const PlayedFiles played;
    const Child child;
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    ProcessCounters counters(played.files(), std::nullopt);
    const WatchedProcess both[] = {{::getpid(), 0}, {child.pid(), 0}, {child.pid(), 0}};
    play_process(played, ::getpid(), 100, 4, 1000, 0);
    play_process(played, child.pid(), 200, 8, 2000, 500);
    Samples samples;
    counters.sample(both, samples);
    EXPECT_EQ(value_of(samples, "process_resident_bytes"), 300 * page);
    EXPECT_EQ(value_of(samples, "process_swap_bytes"), 12 * 1024);
    EXPECT_TRUE(std::isnan(value_of(samples, "process_read_bytes_per_second")));
    counters.sample(both, samples);
    play_process(played, ::getpid(), 100, 4, 41000, 0);
    play_process(played, child.pid(), 200, 8, 2000, 10500);
    counters.sample(both, samples);
    EXPECT_NEAR(counted(samples, "process_read_bytes_per_second"), 40000, 1e-3);
    EXPECT_NEAR(counted(samples, "process_written_bytes_per_second"), 10000, 1e-3);
    EXPECT_TRUE(samples.notes.empty());
}

TEST(ProcessCounters, of_a_process_that_has_ended_are_its_last) {
    const MonotonicTime began = MonotonicTime::now();
    const pid_t pid = ::fork();
    if (pid == 0) {
        burn(0.05);
        ::_exit(0);
    }
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
    const SystemFiles files;
    ProcessCounters counters(files, began);  // it has started since, so all that it has used counts
    const WatchedProcess process{pid, -1};
    Samples samples;
    counters.sample({&process, 1}, samples);
    rusage usage{};
    ASSERT_EQ(::wait4(pid, nullptr, 0, &usage), pid);
    const double used = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    const Sample* cores = nullptr;
    for (const Sample& sample : samples.counters)
        if (sample.name == "process_cpu_cores") cores = &sample;
    ASSERT_NE(cores, nullptr);
    EXPECT_NEAR(cores->value * static_cast<double>(cores->time - began) * 1e-9, used, 0.02 * used);
    samples = {};
    counters.sample({&process, 1}, samples);  // it is gone
    EXPECT_TRUE(samples.counters.empty());
    EXPECT_TRUE(samples.notes.empty());
}

TEST(ProcessCounters, say_once_what_they_may_not_read) {
    const PlayedFiles played;
    const std::string folder = "/proc/" + std::to_string(::getpid());
    played.write(folder + "/statm/is a folder", "");
    played.write(folder + "/io/is a folder", "");
    ProcessCounters counters(played.files(), std::nullopt);
    const WatchedProcess self{::getpid(), 0};
    Samples samples;
    for (int i = 0; i < 3; ++i) counters.sample({&self, 1}, samples);
    ASSERT_EQ(samples.notes.size(), 2u);
    EXPECT_THAT(samples.notes[0].text, HasSubstr("what it reads from disks and writes to them"));
    EXPECT_THAT(samples.notes[0].text, HasSubstr("/io cannot be read: Is a directory"));
    EXPECT_THAT(samples.notes[1].text, HasSubstr("/statm cannot be read"));
    EXPECT_GE(value_of(samples, "process_cpu_cores"), 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
