#include "trainer/executor/cpu_executor.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "trainer/executor/processor.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/kernels/blas.h"

namespace shardscope::trainer {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Collects the ranks' losses; a step is reported when all have told theirs.
class LossBoard {
  public:
    LossBoard(int ranks, std::function<void(std::int64_t step, double loss)> on_step)
        : ranks_(static_cast<std::size_t>(ranks)), on_step_(std::move(on_step)) {}

    void tell(int rank, std::int64_t step, double loss) {
        const std::lock_guard lock(mutex_);
        Row& row = rows_.try_emplace(step, Row{std::vector<double>(ranks_), 0}).first->second;
        row.losses[static_cast<std::size_t>(rank)] = loss;
        if (++row.told < ranks_) return;
        double sum = 0;
        for (const double each : row.losses) sum += each;
        rows_.erase(step);
        on_step_(step, sum / static_cast<double>(ranks_));
    }

  private:
    struct Row {
        std::vector<double> losses;
        std::size_t told = 0;
    };
    std::size_t ranks_;
    std::function<void(std::int64_t, double)> on_step_;
    std::mutex mutex_;
    std::map<std::int64_t, Row> rows_;
};

void describe_rank(profiler::Recorder& recorder, int rank, std::int64_t global_tid) {
    traces::RankRow row;
    row.rank = rank;
    row.device = rank;
    row.global_pid = traces::global_pid(getpid());
    row.global_tid = global_tid;
    row.host = host_name();
    row.device_name = processor_name();
    row.device_memory = physical_memory();
    row.data = rank;
    row.shard = rank;
    recorder.describe(row);
}

}  // namespace

int worker_count(const Job& job) {
    if (job.run.workers > 0) return job.run.workers;
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

RunResult run_on_cpu(const Program& program, const Dataset& dataset, profiler::Recorder* recorder,
                     const std::function<void(const StepReport&)>& on_step) {
    const Job& job = program.job();
    const int ranks = job.run.ranks;
    const int workers = worker_count(job);
    kernels::Blas::get().set_threads(job.run.blas_threads);

    std::optional<Instruments> instruments;
    std::vector<profiler::ThreadLog*> worker_logs(static_cast<std::size_t>(workers), nullptr);
    std::latch workers_ready(workers);
    if (recorder) {
        instruments.emplace(*recorder, program);
        describe_program(*recorder, program);
    }
    Scheduler scheduler(workers, [&](int worker) {
        if (recorder) {
            worker_logs[static_cast<std::size_t>(worker)] =
                recorder->attach_thread(fmt::format("worker {}", worker), -1);
        }
        workers_ready.count_down();
    });
    workers_ready.wait();

    RunResult result;
    const auto start = std::chrono::steady_clock::now();
    auto first_step = start;  // written by rank 0's thread, read after it ended
    LossBoard board(ranks, [&](std::int64_t step, double loss) {
        result.losses.push_back(loss);
        if (recorder) recorder->describe(traces::LossRow{step, loss});
        if (on_step) on_step({step, loss, seconds_since(start)});
    });
    LocalGroup group(ranks);
    Shared shared{scheduler,
                  group,
                  dataset,
                  job.run.seed,
                  job.data.batch,
                  [&](int rank, std::int64_t step, double loss) { board.tell(rank, step, loss); },
                  instruments ? &*instruments : nullptr,
                  worker_logs};

    std::vector<std::unique_ptr<RankRunner>> runners;
    for (int rank = 0; rank < ranks; ++rank) {
        std::array<StreamIndex, kStreams> streams{};
        for (StreamIndex& stream : streams) stream = scheduler.add_stream();
        runners.push_back(std::make_unique<RankRunner>(rank, shared, streams));
    }

    const auto host = [&](int rank) {
        RankRunner& runner = *runners[static_cast<std::size_t>(rank)];
        profiler::ThreadLog* log = nullptr;
        if (recorder) {
            log = recorder->attach_thread(fmt::format("rank {} host", rank), rank);
            describe_rank(*recorder, rank, traces::global_tid(getpid(), gettid()));
        }
        runner.run(program.setup(), 0);
        runner.drain();
        if (rank == 0) first_step = std::chrono::steady_clock::now();
        for (std::int64_t step = 0; step < job.run.steps; ++step) {
            const std::uint64_t begin = log ? profiler::ticks() : 0;
            if (log) log->push(recorder->name(fmt::format("ProfilerStep#{}", step)));
            runner.run(program.step(static_cast<std::size_t>(step)), step);
            if (log) {
                log->pop();
                log->step(rank, step, begin, profiler::ticks());
            }
        }
        runner.run(program.finish(), job.run.steps - 1);
        runner.drain();
    };
    std::vector<std::thread> hosts;
    std::mutex error_mutex;
    std::exception_ptr error;
    const auto give_up = [&] {  // inside a catch
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
        scheduler.fail(error);
    };
    try {
        for (int rank = 0; rank < ranks; ++rank) {
            hosts.emplace_back([&, rank] {
                try {
                    host(rank);
                } catch (...) {
                    give_up();
                }
            });
        }
    } catch (...) {  // no more threads to be had
        give_up();
    }
    for (std::thread& thread : hosts) thread.join();
    scheduler.stop();  // nothing uses the ranks' memory after this
    if (error) std::rethrow_exception(error);
    result.seconds = seconds_since(first_step);
    for (const auto& runner : runners) {
        result.peaks.push_back(runner->peak());
        result.reserved.push_back(runner->reserved_bytes());
    }
    return result;
}

}  // namespace shardscope::trainer
