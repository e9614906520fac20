// The cost of a trace to the training that it records: one job runs twice in this process, with a trace into
// a database and without, and the two take turns, a block of steps each. The total processor time is
// compared: that of the ranks, the workers and the recorder's writer, whose time counts for the traced run
// whenever it is spent.
//
//   bench_tracing JOB.toml [BLOCKS [STEPS_PER_BLOCK]]     at least 100 blocks of each; a quiet machine
//
// Printed: the median of the ratios of neighbouring blocks and its upper 95 % bound, by the sign test: the
// smallest of the ordered ratios such that more than (n + 1.645 sqrt(n)) / 2 of n are below it. A mean would
// be dominated by blocks that something else on the machine disturbed. The part of the metrics, which the
// writer adds once a step, is too small to be seen so: it is measured alone.
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "jobs.h"
#include "profiler/recorder/recorder.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"
#include "trainer/executor/step_metrics.h"
#include "trainer/kernels/blas.h"

namespace shardscope::trainer::executor {
namespace {

double process_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The turns of the two runs. Each rank of a run waits here between its blocks; the last of them hands over.
class Turns {
  public:
    Turns(int ranks, int blocks, profiler::Recorder& recorder)
        : ranks_(ranks), blocks_(blocks), recorder_(recorder) {}

    enum Side { plain = 0, traced = 1 };

    void between_blocks(Side side) {
        std::unique_lock lock(mutex_);
        if (++arrived_[side] < ranks_) {
            const int block = done_[side];
            changed_.wait(lock, [&] { return done_[side] > block && may_go(side); });
            return;
        }
        arrived_[side] = 0;
        const double now = process_seconds();
        const double writer = 1e-9 * static_cast<double>(recorder_.writer_cpu_ns());
        if (begun_) {
            const double own = now - then_ - (writer - writer_then_);
            blocks_of_[side].push_back(own);
            writer_seconds_.push_back(writer - writer_then_);
        }
        ++done_[side];
        begun_ = done_[plain] > 0 && done_[traced] > 0;  // both runs are warm
        // plain traced traced plain …: a machine that slows down or warms up favours neither.
        const int turn = done_[plain] + done_[traced];
        next_ = turn % 4 == 1 || turn % 4 == 2 ? traced : plain;
        if (done_[next_] >= blocks_) next_ = next_ == plain ? traced : plain;
        then_ = process_seconds();
        writer_then_ = 1e-9 * static_cast<double>(recorder_.writer_cpu_ns());
        changed_.notify_all();
        changed_.wait(lock, [&] { return may_go(side); });
    }

    // A run that failed lets the other continue to its end.
    void leave() {
        const std::lock_guard lock(mutex_);
        left_ = true;
        changed_.notify_all();
    }

    const std::vector<double>& blocks(Side side) const { return blocks_of_[side]; }
    double writer_seconds() const {
        double sum = 0;
        for (const double s : writer_seconds_) sum += s;
        return sum;
    }

  private:
    bool may_go(Side side) const { return left_ || next_ == side || done_[side] >= blocks_; }

    const int ranks_, blocks_;
    profiler::Recorder& recorder_;
    std::mutex mutex_;
    std::condition_variable changed_;
    int arrived_[2] = {0, 0}, done_[2] = {0, 0};
    Side next_ = plain;
    bool begun_ = false, left_ = false;
    double then_ = 0, writer_then_ = 0;
    std::vector<double> blocks_of_[2], writer_seconds_;
};

// Processor time that the writer needs for the metrics of one step.
double metrics_seconds(const job::Job& job, const std::string& path) {
    constexpr int kSteps = 50'000, kStepsOfACommit = 100;
    double seconds = 0;
    {
        traces::store::WriterOptions options;
        options.path = path;
        traces::store::DatabaseWriter writer(options);
        const double start = process_seconds();
        for (int step = 0; step < kSteps; ++step) {
            StepMetrics(job, step, 0.1, {step, step}).add_to(writer, {step, step, step});
            if (step % kStepsOfACommit == 0) writer.commit();
        }
        seconds = process_seconds() - start;
        writer.finish(kSteps, 0);
    }
    std::filesystem::remove(path);
    return seconds / kSteps;
}

void report(const Turns& turns, const std::string& path, int steps_per_block, double metrics) {
    const auto& plain = turns.blocks(Turns::plain);
    const auto& traced = turns.blocks(Turns::traced);
    const std::size_t pairs = std::min(plain.size(), traced.size());
    double plain_sum = 0;
    for (const double s : plain) plain_sum += s;
    const double mean_plain = plain_sum / static_cast<double>(plain.size());
    // The writer's time has no block of its own: each traced block gets an equal part of it.
    const double writer = turns.writer_seconds() / static_cast<double>(traced.size());
    std::vector<double> ratios;
    for (std::size_t i = 0; i < pairs; ++i) ratios.push_back((traced[i] + writer) / plain[i]);
    std::sort(ratios.begin(), ratios.end());
    const auto n = static_cast<double>(pairs);
    const auto at = static_cast<std::size_t>(std::ceil((n + 1.645 * std::sqrt(n)) / 2));
    const double bound = ratios[std::min(at, pairs - 1)];
    const auto trace = traces::store::load_trace(path);
    const std::size_t events = trace->device.size() + trace->ranges.size() + trace->runtime.size() +
                               trace->memory.size() + trace->counters.size() + trace->collectives.size();
    const double steps = static_cast<double>(steps_per_block) * static_cast<double>(traced.size() + 1);
    fmt::print("{:<52} {:>10}\n", "blocks of each, steps in a block",
               fmt::format("{} x {}", pairs, steps_per_block));
    fmt::print("{:<52} {:>7.1f} ms\n", "a step, untraced (processor time)",
               1e3 * mean_plain / steps_per_block);
    fmt::print("{:<52} {:>10.0f}\n", "events of a step", static_cast<double>(events) / steps);
    fmt::print("{:<52} {:>7.2f} µs\n", "writer thread for each event",
               1e6 * turns.writer_seconds() / (static_cast<double>(events) * n / (n + 1)));
    fmt::print("{:<52} {:>7.2f} µs\n", "metrics of a step", 1e6 * metrics);
    fmt::print("{:<52} {:>8.4f} %\n", "of the untraced step (goal: at most 0.1)",
               100 * metrics * steps_per_block / mean_plain);
    fmt::print("{:<52} {:>10.4f}\n", "traced / untraced, median", ratios[pairs / 2]);
    fmt::print("{:<52} {:>10.4f}\n", "its upper 95 % bound (goal: at most 1.01)", bound);
}

int bench(const std::string& job_file, int blocks, int steps_per_block) {
    job::Job job = job::load_job(job_file);
    job.checkpoint.save.clear();
    job.checkpoint.every = steps_per_block;
    job.train.validate_every = 0;
    job.run.steps = (blocks + 1) * steps_per_block;  // the first block is the warm-up
    kernels::Blas::get().set_threads(1);

    const std::string path = fmt::format("{}/bench_tracing-{}.sqlite",
                                         std::filesystem::temp_directory_path().string(), ::getpid());
    traces::store::WriterOptions writer;
    writer.path = path;
    profiler::Recorder recorder(
        std::make_unique<traces::store::DatabaseWriter>(writer),
        [](traces::store::EventSink& sink, std::int64_t duration_ns, std::int64_t dropped) {
            static_cast<traces::store::DatabaseWriter&>(sink).finish(duration_ns, dropped);
        });
    Turns turns(job.run.ranks, blocks + 1, recorder);
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto run = [&](Turns::Side side) {
        try {
            RunOptions options;
            if (side == Turns::traced) options.recorder = &recorder;
            options.hooks.at_step_end = [&, side](int, std::int64_t, RankRunner&) {
                turns.between_blocks(side);
            };
            testing::run(job, options);
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            failure = std::current_exception();
        }
        turns.leave();
    };
    std::thread traced(run, Turns::traced);
    run(Turns::plain);
    traced.join();
    if (failure) std::rethrow_exception(failure);
    recorder.finish();
    report(turns, path, steps_per_block, metrics_seconds(job, path + ".metrics"));
    std::filesystem::remove(path);
    return 0;
}

}  // namespace
}  // namespace shardscope::trainer::executor

int main(int argc, char** argv) try {
    if (argc < 2 || argc > 4) {
        std::fputs("usage: bench_tracing JOB.toml [BLOCKS [STEPS_PER_BLOCK]]\n", stderr);
        return 2;
    }
    return shardscope::trainer::executor::bench(argv[1], argc > 2 ? std::max(2, std::atoi(argv[2])) : 100,
                                                argc > 3 ? std::max(1, std::atoi(argv[3])) : 2);
} catch (const std::exception& error) {
    fmt::print(stderr, "bench_tracing: {}\n", error.what());
    return 1;
}
