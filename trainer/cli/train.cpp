#include "trainer/cli/train.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <time.h>

#include "profiler/recorder.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/summary.h"
#include "traces/report/report.h"
#include "traces/store/loader.h"
#include "traces/store/writer.h"
#include "trainer/cli/checkpointing.h"
#include "trainer/cli/dry_run.h"
#include "trainer/cli/output.h"
#include "trainer/cli/stop.h"
#include "trainer/data/source.h"
#include "trainer/executor/cuda_module.h"
#include "trainer/executor/training_run.h"
#include "trainer/kernels/blas.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {

namespace {

constexpr int kFailed = 1;
constexpr int kSignalled = 128;

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

// Facts that are not in the job file, for the trace, and the line that says them.
struct Environment {
    std::vector<traces::RunInfoRow> facts;
    std::vector<std::string> notes;
    std::string line;
};

// Throws DeviceError where the device cannot be used.
Environment environment_of(const Job& job) {
    Environment found;
    if (job.run.device == DeviceKind::cuda) {
        const cuda::Gpus gpus = find_gpus();
        found.facts = {{"device", "cuda"},
                       {"gpus", gpus.text},
                       {"cuda.driver", gpus.driver},
                       {"cuda.runtime", gpus.runtime}};
        found.line = fmt::format("{}, CUDA {}, driver for CUDA {}", gpus.text, gpus.runtime, gpus.driver);
        return found;
    }
    const kernels::Blas& blas = kernels::Blas::get();
    const int workers = worker_count(job);
    found.facts = {{"device", "cpu"},
                   {"workers", std::to_string(workers)},
                   {"blas.core", blas.core()},
                   {"blas.config", blas.config()}};
    found.notes = blas.notes();
    found.line =
        fmt::format("{} worker{}, OpenBLAS {} kernels, {} thread{} a call", workers, workers == 1 ? "" : "s",
                    blas.core(), job.run.blas_threads, job.run.blas_threads == 1 ? "" : "s");
    return found;
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

// One training run, from its checks to its report.
class Training {
  public:
    Training(const Job& job, bool json) : program_(job), checkpoints_(program_.job()), json_(json) {}

    int run();

  private:
    const Job& job() const { return program_.job(); }
    void open();
    void announce() const;
    void carry_out();
    void saved(const SaveReport& report);
    void close_trace();
    void print() const;
    int status() const;

    const Program program_;
    Checkpointing checkpoints_;
    const bool json_;
    Environment environment_;
    DataSource data_;
    std::unique_ptr<profiler::Recorder> recorder_;
    std::optional<Progress> progress_;
    RunResult run_;
    TrainResult result_;
    std::string tables_;
    bool trace_failed_ = false;
};

// Everything that can be refused is refused here, before anything is printed.
void Training::open() {
    environment_ = environment_of(job());
    data_ = open_data(job(), checkpoints_.tokenizer());
    checkpoints_.prepare(program_, data_.tokenizer.get(),
                         [this](const SaveReport& report) { saved(report); });
    if (job().run.trace.empty()) return;
    recorder_ = open_trace(job());
    for (const traces::RunInfoRow& fact : environment_.facts) recorder_->describe(fact);
}

void Training::announce() const {
    for (const std::string& note : environment_.notes)
        fmt::print(stderr, "shardscope-train: note: {}\n", note);
    fmt::print(stderr, "{}\n{}\n", describe_run(program_), environment_.line);
    if (checkpoints_.first_step() > 0)
        fmt::print(stderr, "going on after step {} of {}\n", checkpoints_.first_step(),
                   job().checkpoint.load);
}

void Training::saved(const SaveReport& report) {
    if (report.error.empty()) {
        result_.checkpoint = report.folder;
        progress_->say(fmt::format("saved {} ({:.1f} MB in {:.2f} s)", report.folder,
                                   static_cast<double>(report.bytes) / (1 << 20), report.seconds));
    } else {
        progress_->say("shardscope-train: warning: " + report.error);
    }
}

void Training::carry_out() {
    RunControl control;
    const StopSignals listening(&control.stop);
    progress_.emplace(job(), checkpoints_.first_step());
    RunOptions options;
    options.recorder = recorder_.get();
    options.validation = data_.validation.get();
    options.on_step = [this](const StepReport& step) { progress_->report(step); };
    options.on_validation = [this](const ValidationReport& report) { progress_->report(report); };
    options.on_warning = [this](const std::string& warning) {
        progress_->say("shardscope-train: warning: " + warning);
    };
    options.control = &control;
    checkpoints_.attach(options);
    try {
        run_ = run_training(program_, *data_.train, options);
    } catch (...) {
        progress_->end();
        // What was recorded until then, and why it ended, is worth reading.
        if (recorder_) recorder_->finish();
        throw;
    }
    progress_->end();
}

void Training::close_trace() {
    if (!recorder_) return;
    result_.trace = job().run.trace;
    try {
        recorder_->finish();
        if (recorder_->dropped() > 0) {
            fmt::print(
                stderr,
                "shardscope-train: warning: {} events found no room in the recorder and are missing in {}\n",
                recorder_->dropped(), job().run.trace);
        }
        const auto trace = traces::load_trace(job().run.trace);
        result_.average_step_us = mean_step_us(traces::summarize(*trace));
        if (!json_) tables_ = rank_zero_tables(*trace);
    } catch (const traces::StoreError& error) {
        fmt::print(stderr, "shardscope-train: warning: the trace is incomplete: {}\n", error.what());
        trace_failed_ = true;
    }
}

void Training::print() const {
    if (json_) {
        fmt::print("{}", train_json(run_, result_));
        return;
    }
    if (!run_.losses.empty()) {
        fmt::print("Loss: first {:.6f}, last {:.6f}\n", run_.losses.front(), run_.losses.back());
        for (const ValidationReport& report : run_.validation)
            fmt::print("Validation loss after step {}: {:.6f}\n", report.step + 1, report.loss);
        fmt::print("Average step: {:.0f} us\n", result_.average_step_us);
    }
    if (tables_.empty()) {
        fmt::print("Peak memory of rank 0: {} bytes\n{}", run_.peaks.front().bytes,
                   peak_table(run_.peaks.front()));
        fmt::print("{}", peaks_line(run_));
        if (!recorder_) fmt::print("--trace OUT.sqlite records a trace; the Execution Summary needs one.\n");
        return;
    }
    fmt::print("{}{}\nTrace: {}\n", tables_, peaks_line(run_), job().run.trace);
    fmt::print("Open it with: shardscope-view {0}    ask it with: shardscope-trace modules {0}\n",
               job().run.trace);
}

int Training::status() const {
    if (run_.stopped_at) {
        const int signal = StopSignals::received();
        fmt::print(
            stderr, "shardscope-train: stopped by {} after step {} of {}{}{}\n", StopSignals::name(signal),
            *run_.stopped_at, job().run.steps, recorder_ && !trace_failed_ ? "; the trace is whole" : "",
            result_.checkpoint.empty() ? ""
                                       : fmt::format("; --checkpoint.load={} goes on", result_.checkpoint));
        return kSignalled + signal;
    }
    return trace_failed_ || checkpoints_.failed() ? kFailed : 0;
}

int Training::run() {
    open();
    announce();
    carry_out();
    if (!run_.losses.empty())
        result_.average_step_us = run_.seconds / static_cast<double>(run_.losses.size()) * 1e6;
    close_trace();
    print();
    return status();
}

}  // namespace

int train(const Job& job, const TrainOptions& options) {
    if (options.dry_run) {
        const Program program(job);
        fmt::print("{}", options.json ? dry_run_json(program) : dry_run_text(program));
        return 0;
    }
    if (!job.run.trace.empty()) traces::DatabaseWriter::check_output(job.run.trace, job.run.overwrite);
    return Training(job, options.json).run();
}

}  // namespace shardscope::trainer
