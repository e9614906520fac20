#include "trainer/cli/train.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <time.h>

#include "profiler/recorder.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/summary.h"
#include "traces/report/report.h"
#include "traces/store/loader.h"
#include "traces/store/writer.h"
#include "trainer/cli/output.h"
#include "trainer/data/synthetic.h"
#include "trainer/data/text.h"
#include "trainer/executor/cpu_executor.h"
#include "trainer/kernels/blas.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {

namespace {

std::unique_ptr<Dataset> open_dataset(const Job& job) {
    if (job.data.type == DataType::text) {
        try {
            return std::make_unique<TextDataset>(job.data.path, job.run.seed, job.model.context);
        } catch (const DataError& error) {
            throw DataError(where(job, "data.path") + error.what());
        }
    }
    return std::make_unique<SyntheticDataset>(job.run.seed, job.model.width);
}

std::int64_t clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::unique_ptr<profiler::Recorder> open_trace(const Job& job) {
    traces::WriterOptions options;
    options.path = job.run.trace;
    options.overwrite = job.run.overwrite;
    options.start_utc_ns = clock_ns(CLOCK_REALTIME);
    options.start_system_ns = clock_ns(CLOCK_MONOTONIC);
    profiler::RecorderOptions recorder;
    recorder.start_system_ns = options.start_system_ns;
    return std::make_unique<profiler::Recorder>(
        std::make_unique<traces::DatabaseWriter>(options),
        [](traces::EventSink& sink, std::int64_t duration_ns, std::int64_t dropped) {
            static_cast<traces::DatabaseWriter&>(sink).finish(duration_ns, dropped);
        },
        recorder);
}

// Facts that are not in the job file.
void describe_environment(profiler::Recorder& recorder, const kernels::Blas& blas, const Job& job) {
    recorder.describe(traces::RunInfoRow{"device", "cpu"});
    recorder.describe(traces::RunInfoRow{"workers", std::to_string(worker_count(job))});
    recorder.describe(traces::RunInfoRow{"blas.core", blas.core()});
    recorder.describe(traces::RunInfoRow{"blas.config", blas.config()});
}

double mean_step_us(const traces::ExecutionSummary& summary) {
    double sum = 0;
    for (const traces::RankSummary& rank : summary.ranks) sum += rank.average_step_us;
    return summary.ranks.empty() ? 0 : sum / static_cast<double>(summary.ranks.size());
}

// The tables of rank 0; the others do the same work, and shardscope-trace prints them all.
std::string rank_zero_tables(const traces::Trace& trace) {
    traces::Selection rank_zero;
    rank_zero.rank = 0;
    return "\n" + render(traces::summarize(trace, rank_zero), traces::Format::table) + "\n" +
           render(traces::memory_report(trace, rank_zero), traces::Format::table);
}

}  // namespace

int train(const Job& job, const TrainOptions& options) {
    if (!job.run.trace.empty() && !options.dry_run) {
        traces::DatabaseWriter::check_output(job.run.trace, job.run.overwrite);
    }
    const Program program(job);
    if (options.dry_run) {
        fmt::print("{}", options.json ? dry_run_json(program) : dry_run_text(program));
        return 0;
    }
    const std::unique_ptr<Dataset> dataset = open_dataset(job);
    kernels::Blas& blas = kernels::Blas::get();
    // Before anything is printed: a trace that cannot be created is one sentence on standard error.
    std::unique_ptr<profiler::Recorder> recorder;
    if (!job.run.trace.empty()) {
        recorder = open_trace(job);
        describe_environment(*recorder, blas, job);
    }
    for (const std::string& note : blas.notes()) fmt::print(stderr, "shardscope-train: note: {}\n", note);
    fmt::print(stderr, "{}\n{} worker{}, OpenBLAS {} kernels, {} thread{} a call\n", describe_run(program),
               worker_count(job), worker_count(job) == 1 ? "" : "s", blas.core(), job.run.blas_threads,
               job.run.blas_threads == 1 ? "" : "s");

    Progress progress(job);
    std::optional<RunResult> run;
    try {
        run = run_on_cpu(program, *dataset, recorder.get(),
                         [&](const StepReport& step) { progress.report(step); });
    } catch (...) {
        progress.end();
        throw;
    }
    progress.end();

    int status = 0;
    TrainResult result{run->seconds / static_cast<double>(job.run.steps) * 1e6, job.run.trace};
    std::string tables;
    if (recorder) {
        try {
            recorder->finish();
            if (recorder->dropped() > 0) {
                fmt::print(stderr,
                           "shardscope-train: warning: {} events found no room in the recorder and are "
                           "missing in {}\n",
                           recorder->dropped(), job.run.trace);
            }
            const auto trace = traces::load_trace(job.run.trace);
            const traces::ExecutionSummary summary = traces::summarize(*trace);
            result.average_step_us = mean_step_us(summary);
            if (!options.json) {
                tables = rank_zero_tables(*trace);
            }
        } catch (const traces::StoreError& error) {
            fmt::print(stderr, "shardscope-train: warning: the trace is incomplete: {}\n", error.what());
            status = 1;
        }
    }
    if (options.json) {
        fmt::print("{}", train_json(*run, result));
        return status;
    }
    fmt::print("Loss: first {:.6f}, last {:.6f}\nAverage step: {:.0f} us\n", run->losses.front(),
               run->losses.back(), result.average_step_us);
    if (tables.empty()) {
        fmt::print("Peak memory of rank 0: {} bytes\n{}", run->peaks.front().bytes,
                   peak_table(run->peaks.front()));
        if (!recorder) fmt::print("--trace OUT.sqlite records a trace; the Execution Summary needs one.\n");
    } else {
        fmt::print("{}\nTrace: {}\n", tables, job.run.trace);
        fmt::print("Open it with: shardscope-view {0}    ask it with: shardscope-trace modules {0}\n",
                   job.run.trace);
    }
    return status;
}

}  // namespace shardscope::trainer
