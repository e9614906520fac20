#include "trainer/cli/train.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "profiler/recorder/recorder.h"
#include "traces/analysis/time/summary.h"
#include "traces/schema/joined.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"
#include "trainer/cli/checkpointing.h"
#include "trainer/cli/dry_run.h"
#include "trainer/cli/environment.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/last_resort.h"
#include "trainer/cli/live_status.h"
#include "trainer/cli/output.h"
#include "trainer/cli/rank_errors.h"
#include "trainer/cli/simulated.h"
#include "trainer/cli/stop.h"
#include "trainer/cli/trace_output.h"
#include "trainer/cli/what_fits.h"
#include "trainer/data/epochs.h"
#include "trainer/data/source.h"
#include "trainer/executor/training_run.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

namespace {

double mean_step_us(const traces::analysis::ExecutionSummary& summary) {
    double sum = 0;
    for (const traces::analysis::RankSummary& rank : summary.ranks) sum += rank.average_step_us;
    return summary.ranks.empty() ? 0 : sum / static_cast<double>(summary.ranks.size());
}

// One training run, from its checks to its report.
class Training {
  public:
    Training(const job::Job& job, const TrainOptions& options)
        : job_(job),
          program_(std::make_unique<const sharding::Program>(job)),
          joined_(options.joined),
          checkpoints_(job_, joined_),
          json_(options.json),
          make_device_(options.make_device),
          status_(options.status) {}

    void open();
    int run();

  private:
    const job::Job& job() const { return job_; }
    const sharding::Program& program() const { return *program_; }
    // Whether this process prints progress and results: if ranks are processes, only rank 0's does.
    bool speaks() const { return !joined_ || joined_->world().rank() == 0; }
    void say(const std::string& line);
    void open_trace();
    void open_status();
    void count_steps();
    void announce() const;
    void carry_out();
    [[noreturn]] void failed(const std::exception& error);
    void tell(const std::exception& error);
    void saved(const checkpoint::SaveReport& report);
    void end_status();
    void close_trace();
    void print() const;
    int status() const;

    job::Job job_;
    std::unique_ptr<const sharding::Program> program_;
    Joined* const joined_;  // null: this process runs all ranks
    Checkpointing checkpoints_;
    const bool json_;
    const executor::MakeDevice make_device_;
    const std::optional<StatusRequest> status_;
    RunEnvironment environment_;
    data::DataSource data_;
    std::optional<TraceOutput> trace_;
    std::unique_ptr<LiveStatus> live_;  // null: nobody can watch the run
    std::optional<Progress> progress_;  // set in the process that prints
    executor::RunResult run_;
    TrainResult result_;
    std::string tables_;
    bool trace_failed_ = false;
};

// Makes every check that can fail before anything is printed. Collective.
void Training::open() {
    checkpoints_.open();
    together(joined_, [&] {
        environment_ = environment_of(job(), joined_ ? &joined_->processes() : nullptr);
        data_ = open_data(job(), checkpoints_.tokenizer());
    });
    if (job().counts_epochs()) count_steps();
    // What their steps do depends on how many went before.
    if (checkpoints_.first_step() > 0 && (is_onebit(job_.optimizer.type) || job_.train.local_steps > 1))
        program_ = std::make_unique<const sharding::Program>(job_, sharding::Purpose::train,
                                                             checkpoints_.first_step());
    checkpoints_.prepare(program(), data_.tokenizer.get(),
                         [this](const checkpoint::SaveReport& report) { saved(report); });
    together(joined_, [&] { open_trace(); });
    together(joined_, [&] { open_status(); });
}

// Last, so that what it serves has all the job's facts. Listens on rank 0's process.
void Training::open_status() {
    if (!status_) return;
    LiveStatusOptions options;
    options.address = status_->address;
    options.job_file = status_->job_file;
    options.world = joined_ ? &joined_->world() : nullptr;
    live_ = std::make_unique<LiveStatus>(job(), program().mesh(), options);
    const std::string address = live_->address();
    if (!address.empty() && trace_->recorder())
        trace_->recorder()->describe(traces::schema::RunInfoRow{"status_address", address});
}

// Sets the steps that the epochs of the data are. Collective.
void Training::count_steps() {
    together(joined_, [&] { job_ = with_steps(job_, *data_.train, checkpoints_.start()); });
    if (joined_) {
        const std::string own = fmt::format("{} samples", data_.train->samples());
        const std::string first = joined_->world().broadcast(own);
        together(joined_, [&] {
            if (own == first) return;
            throw job::JobError(
                fmt::format("data.path: {} has {} here, and {} on rank 0; give all ranks the "
                            "same data",
                            job().data.path, own, first));
        });
    }
    program_ = std::make_unique<const sharding::Program>(job_);
}

void Training::open_trace() {
    trace_.emplace(job(), joined_ ? &joined_->world() : nullptr);
    profiler::Recorder* recorder = trace_->recorder();
    if (!recorder) return;
    for (const traces::schema::RunInfoRow& fact : environment_.facts) recorder->describe(fact);
    if (!joined_) return;
    for (const traces::schema::RunInfoRow& fact : joined_->facts()) recorder->describe(fact);
}

void Training::announce() const {
    if (!speaks()) return;
    for (const std::string& note : job().notes) fmt::print(stderr, "shardscope-train: note: {}\n", note);
    for (const std::string& note : environment_.notes)
        fmt::print(stderr, "shardscope-train: note: {}\n", note);
    if (const std::string note = joined_ ? token_note(joined_->world().place()) : ""; !note.empty())
        fmt::print(stderr, "shardscope-train: note: {}\n", note);
    fmt::print(stderr, "{}\n{}\n", describe_run(program()), environment_.line);
    if (joined_) fmt::print(stderr, "{}\n", joined_->line());
    if (live_) fmt::print(stderr, "status at {0}; shardscope-trace watch {0} shows it\n", live_->address());
    if (checkpoints_.first_step() > 0)
        fmt::print(stderr, "continuing after step {} of {}\n", checkpoints_.first_step(),
                   job().checkpoint.load);
    if (!job().checkpoint.initial_load.empty())
        fmt::print(stderr, "starting with the parameters of {}\n", job().checkpoint.initial_load);
    if (const std::vector<std::string> unused = checkpoints_.unused(); !unused.empty()) {
        fmt::print(stderr, "shardscope-train: note: the job's model has no {}, which the checkpoint has\n",
                   traces::schema::joined(unused, ", "));
    }
}

void Training::say(const std::string& line) {
    if (progress_) {
        progress_->say(line);
    } else {
        fmt::print(stderr, "{}\n", line);
    }
}

// Handles a run that cannot continue.
void Training::failed(const std::exception& error) {
    if (live_) live_->end(traces::status::RunState::failed, sentence_of(error));
    const ErrorReporter reporter = joined_ ? joined_->reporter(error) : ErrorReporter::first;
    // This comes first: if another process was killed, the launcher soon kills this one.
    if (reporter != ErrorReporter::other) tell(error);
    trace_->give_up();
    const auto* memory = dynamic_cast<const executor::OutOfMemory*>(&error);
    if (memory && reporter == ErrorReporter::first) tell_what_fits(job(), memory->room(), joined_ != nullptr);
    throw FailureReported(error.what());
}

// Reports why the run ended, and where the recording up to that point is.
void Training::tell(const std::exception& error) {
    if (progress_) progress_->end();
    const std::string where = trace_->parts_kept();
    if (!where.empty()) fmt::print(stderr, "{}\n", where);
    fmt::print(stderr, "shardscope-train: {}\n", sentence_of(error));
    std::fflush(stderr);
}

void Training::saved(const checkpoint::SaveReport& report) {
    if (report.error.empty()) {
        result_.checkpoint = report.folder;
        say(fmt::format("saved {} ({:.1f} MiB in {:.2f} s)", report.folder,
                        static_cast<double>(report.bytes) / (1 << 20), report.seconds));
    } else {
        say("shardscope-train: warning: " + report.error);
    }
}

void Training::carry_out() {
    executor::RunControl control;
    const StopSignals listening(&control.stop);
    if (speaks()) progress_.emplace(job(), checkpoints_.first_step());
    if (live_) live_->watch_stop(&control.stop);
    executor::RunOptions options;
    options.recorder = trace_->recorder();
    if (joined_) options.processes = &joined_->processes();
    options.validation = data_.validation.get();
    options.test_data = data_.test.get();
    options.on_step = [this](const executor::StepReport& step) { progress_->report(step); };
    options.on_validation = [this](const executor::ValidationReport& report) {
        progress_->report(report);
        checkpoints_.validated(report);
    };
    options.on_test = [this](const executor::ValidationReport& report) { progress_->report(report, "test"); };
    options.on_warning = [this](const std::string& warning) { say("shardscope-train: warning: " + warning); };
    options.on_overflow = [this](const std::string& line) { say(line); };
    options.control = &control;
    if (live_) options.live = &live_->board();
    options.make_device = make_device_;
    checkpoints_.attach(options);
    std::optional<LastResort> last_resort;
    if (joined_) last_resort.emplace(joined_->world());
    try {
        trace_->measure_clock();
        run_ = run_training(program(), *data_.train, options);
        trace_->measure_clock();
    } catch (const executor::RunError& error) {
        last_resort.reset();
        failed(error);
    } catch (const std::exception& error) {
        last_resort.reset();
        if (joined_ && status_of(error) == kFailed) failed(error);
        if (progress_) progress_->end();
        if (live_) live_->end(traces::status::RunState::failed, sentence_of(error));
        trace_->give_up();
        throw;
    }
    if (progress_) progress_->end();
    if (live_) end_status();
}

void Training::end_status() {
    using traces::status::RunState;
    if (!run_.stopped_at) return live_->end(RunState::finished, "");
    const int signal = StopSignals::received();
    live_->end(RunState::stopped,
               fmt::format("stopped by {}", signal ? StopSignals::name(signal) : "a signal to another rank"));
}

void Training::close_trace() {
    TraceOutput::End end = trace_->finish();
    trace_failed_ = end.failed;
    if (!speaks()) return;
    for (const std::string& warning : end.warnings)
        fmt::print(stderr, "shardscope-train: warning: {}\n", warning);
    if (!end.note.empty()) fmt::print(stderr, "shardscope-train: note: {}\n", end.note);
    if (end.trace.empty()) return;
    result_.trace = job().run.trace;
    try {
        const auto trace = traces::store::load_trace(end.trace);
        result_.average_step_us = mean_step_us(traces::analysis::summarize(*trace));
        if (!json_) tables_ = rank_zero_tables(*trace);
    } catch (const traces::store::StoreError& error) {
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
        for (const executor::ValidationReport& report : run_.validation)
            fmt::print("Validation after step {}: loss {:.6f}{}\n", report.step + 1, report.loss,
                       accuracy_words(report));
        if (const std::string best = checkpoints_.best(); !best.empty())
            fmt::print("Checkpoint with the lowest validation loss: {}\n", best);
        if (run_.test)
            fmt::print("Test with the parameters after step {}: loss {:.6f}{}\n", run_.test->step + 1,
                       run_.test->loss, accuracy_words(*run_.test));
        if (run_.diverged_at) fmt::print("Note: {}\n", run_.divergence);
        fmt::print("Average step: {:.0f} µs\n", result_.average_step_us);
    }
    if (tables_.empty()) {
        fmt::print("Peak memory of rank 0: {} bytes\n{}", run_.peaks.front().bytes,
                   peak_table(run_.peaks.front()));
        fmt::print("{}{}", peaks_line(run_), files_line(job(), run_));
        if (!trace_->recorder())
            fmt::print("--trace OUT.sqlite records a trace; the Execution Summary needs one.\n");
        return;
    }
    fmt::print("{}{}{}\nTrace: {}\n", tables_, peaks_line(run_), files_line(job(), run_), job().run.trace);
    fmt::print("Open it with: shardscope-view {0}    query it with: shardscope-trace modules {0}\n",
               job().run.trace);
}

int Training::status() const {
    if (run_.stopped_at) {
        const int signal = StopSignals::received();
        if (speaks()) {
            fmt::print(stderr, "shardscope-train: stopped by {} after step {} of {}{}{}\n",
                       signal ? StopSignals::name(signal) : "a signal to another rank", *run_.stopped_at,
                       job().run.steps, trace_->recorder() && !trace_failed_ ? "; the trace is complete" : "",
                       result_.checkpoint.empty()
                           ? ""
                           : fmt::format("; --checkpoint.load={} continues", result_.checkpoint));
        }
        return kSignalled + (signal ? signal : SIGTERM);
    }
    return trace_failed_ || checkpoints_.failed() ? kFailed : 0;
}

int Training::run() {
    announce();
    carry_out();
    if (!run_.losses.empty())
        result_.average_step_us = run_.seconds / static_cast<double>(run_.losses.size()) * 1e6;
    close_trace();
    if (speaks()) print();
    return status();
}

}  // namespace

int train(const job::Job& job, const TrainOptions& options) {
    if (job.run.device == job::DeviceKind::sim) {
        if (options.status)
            throw job::JobError("command line: --status: a simulated job computes nothing to watch; omit it");
        return train_simulated(job, options);
    }
    if (options.dry_run) {
        if (options.joined && options.joined->world().rank() > 0) return 0;
        const sharding::Program program(job);
        fmt::print("{}", options.json ? dry_run_json(program) : dry_run_text(program));
        warn_of_memory(program, job.run.memory_limit);
        return 0;
    }
    std::optional<Training> training;
    together(options.joined, [&] {
        // Checks the trace first, as data and models take a while. No process opens its file before all can.
        if (options.status) check_status_address(options.status->address);
        TraceOutput::check(job, options.joined ? &options.joined->world() : nullptr);
        training.emplace(job, options);
    });
    training->open();
    return training->run();
}

}  // namespace shardscope::trainer::cli
