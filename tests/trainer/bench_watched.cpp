// The cost of --status to the training that is watched: a job runs with a status that it serves at SOCKET,
// and what its ranks do is taken down in every other block of steps. Compared are the times of neighbouring
// blocks: processor time of all threads but the one that serves, and time that passes.
//
//   bench_watched JOB.toml SOCKET [BLOCKS [STEPS_PER_BLOCK]]     while `shardscope-trace watch SOCKET` runs
//
// Printed: the mean of the middle half of the ratios, with its standard error by the halves' spread over ten
// parts of the run, and the serving thread's part alone.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "jobs.h"
#include "trainer/cli/live_status.h"
#include "trainer/kernels/blas.h"

namespace shardscope::trainer {
namespace {

struct Times {
    double processor = 0, passed = 0, serving = 0;  // seconds
};

// The thread that serves the status, in /proc; empty: there is none.
std::string status_thread() {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        if (name == "status") return task.path();
    }
    return {};
}

Times now() {
    static std::string thread;
    if (thread.empty()) thread = status_thread();
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    double ns = 0;
    std::ifstream(thread + "/schedstat") >> ns;
    const auto clock = std::chrono::steady_clock::now().time_since_epoch();
    const double serving = 1e-9 * ns;
    return {static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec) - serving,
            std::chrono::duration<double>(clock).count(), serving};
}

// The blocks of a run: off on on off off …, so that a machine that slows down or warms up favours neither.
class Blocks {
  public:
    Blocks(int ranks, executor::LiveBoard& board) : ranks_(ranks), board_(board) {}

    // Each rank's, between its blocks; the last one begins the next.
    void end() {
        const std::lock_guard lock(mutex_);
        if (++arrived_ < ranks_) return;
        arrived_ = 0;
        const Times here = now();
        if (done_ > 0) {
            Times& block = (on_ ? watched : plain).emplace_back();
            block = {here.processor - then_.processor, here.passed - then_.passed,
                     here.serving - then_.serving};
        }
        ++done_;
        on_ = done_ % 4 >= 2;
        board_.listen(on_);
        then_ = now();
    }

    std::vector<Times> plain, watched;

  private:
    const int ranks_;
    executor::LiveBoard& board_;
    std::mutex mutex_;
    int arrived_ = 0, done_ = 0;
    bool on_ = true;  // the first block warms up
    Times then_;
};

double middle_mean(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto quarter = static_cast<std::ptrdiff_t>(values.size() / 4);
    const double sum = std::accumulate(values.begin() + quarter, values.end() - quarter, 0.0);
    return sum / static_cast<double>(values.size() - 2 * static_cast<std::size_t>(quarter));
}

void print_difference(const char* name, const Blocks& blocks, double Times::*field) {
    constexpr std::size_t kParts = 10;
    const std::size_t pairs = std::min(blocks.plain.size(), blocks.watched.size());
    std::vector<double> all, parts;
    for (std::size_t part = 0; part < kParts; ++part) {
        std::vector<double> ratios;
        for (std::size_t i = part * pairs / kParts; i < (part + 1) * pairs / kParts; ++i)
            ratios.push_back(100 * (blocks.watched[i].*field / blocks.plain[i].*field - 1));
        parts.push_back(middle_mean(ratios));
        all.insert(all.end(), ratios.begin(), ratios.end());
    }
    const double mean = std::accumulate(parts.begin(), parts.end(), 0.0) / kParts;
    double squares = 0;
    for (const double part : parts) squares += (part - mean) * (part - mean);
    fmt::print("{:<52} {:>+8.3f} % +- {:.3f}\n", name, middle_mean(all),
               std::sqrt(squares / (kParts - 1) / kParts));
}

int bench(const std::string& job_file, const std::string& socket, int blocks, int steps_per_block) {
    job::Job job = job::load_job(job_file);
    job.checkpoint.save.clear();
    job.checkpoint.every = steps_per_block;
    job.train.validate_every = 0;
    job.run.steps = (2 * blocks + 1) * steps_per_block;
    kernels::Blas::get().set_threads(1);
    const sharding::Program program(job);
    cli::LiveStatus status(job, program.mesh(), {.address = socket, .job_file = job_file, .world = nullptr});
    Blocks all(job.run.ranks, status.board());
    executor::RunOptions options;
    options.live = &status.board();
    options.hooks.at_step_end = [&](int, std::int64_t, executor::RankRunner&) { all.end(); };
    const Times begin = now();
    testing::run(job, options);
    const Times end = now();
    double plain = 0;
    for (const Times& block : all.plain) plain += block.passed;
    fmt::print("{:<52} {:>10}\n", "blocks of each, steps in a block",
               fmt::format("{} x {}", all.plain.size(), steps_per_block));
    fmt::print("{:<52} {:>7.3f} ms\n", "a step, nothing taken down",
               1e3 * plain / static_cast<double>(all.plain.size()) / steps_per_block);
    fmt::print("{:<52} {:>8.4f} %\n", "serving the status, of the time that passed",
               100 * (end.serving - begin.serving) / (end.passed - begin.passed));
    print_difference("taken down over not: processor time (goal: +0.1)", all, &Times::processor);
    print_difference("taken down over not: time that passed", all, &Times::passed);
    status.end(traces::status::RunState::finished, "");
    return 0;
}

}  // namespace
}  // namespace shardscope::trainer

int main(int argc, char** argv) try {
    if (argc < 3 || argc > 5) {
        std::fputs("usage: bench_watched JOB.toml SOCKET [BLOCKS [STEPS_PER_BLOCK]]\n", stderr);
        return 2;
    }
    return shardscope::trainer::bench(argv[1], argv[2], argc > 3 ? std::max(20, std::atoi(argv[3])) : 400,
                                      argc > 4 ? std::max(1, std::atoi(argv[4])) : 10);
} catch (const std::exception& error) {
    fmt::print(stderr, "bench_watched: {}\n", error.what());
    return 1;
}
