#include "trainer/executor/training_run.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "trainer/data/epochs.h"
#include "trainer/data/loader.h"
#include "trainer/data/own_tokens.h"
#include "trainer/executor/divergence.h"
#include "trainer/executor/gates.h"
#include "trainer/executor/live_board.h"
#include "trainer/executor/loss_board.h"
#include "trainer/executor/peaks_together.h"
#include "trainer/executor/ranks.h"
#include "trainer/executor/step_metrics.h"
#include "trainer/executor/stop_agreement.h"
#include "trainer/world/message.h"

namespace shardscope::trainer::executor {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// A dataset that starts at a later sample.
class From final : public data::Dataset {
  public:
    From(const data::Dataset& all, std::int64_t first) : all_(all), first_(first) {}
    std::int64_t input_bytes() const override { return all_.input_bytes(); }
    std::int64_t target_bytes() const override { return all_.target_bytes(); }
    std::int64_t samples() const override { return all_.samples(); }
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override {
        all_.fill(first_ + first_sample, count, input, target);
    }

  private:
    const data::Dataset& all_;
    std::int64_t first_;
};

// What ranks tell to the process of rank 0.
constexpr const char *kLoss = "loss", *kAccuracy = "accuracy", *kValidation = "validation",
                     *kTestAccuracy = "test accuracy", *kTest = "test";

// Training: what the host threads share, and what each of them does.
class Training {
  public:
    Training(const sharding::Program& program, const data::Dataset& dataset, const RunOptions& options);
    RunResult run();

  private:
    // The state of one rank, used by its host thread.
    struct Rank {
        std::optional<data::OwnTokens> tokens;
        std::unique_ptr<data::DataLoader> loader;  // of `tokens`
        data::DataLoader* validation = nullptr;    // while it validates
        std::vector<double> validation_losses, accuracies;
    };

    void host(int rank, RankRunner& runner);
    void step(int rank, std::int64_t number, RankRunner& runner);
    void read_last_loss(int rank, std::int64_t steps_done, RankRunner& runner);
    void tell(const char* name, int rank, std::int64_t step, std::span<const double> losses,
              std::int32_t module, const StepMemory& memory, std::optional<double> norm = {});
    MetricPlace place_of(std::int64_t step) const;
    double seconds_of(std::int64_t step, double now);
    void hear(LossBoard& board, int rank, std::string_view text);
    void listen();
    Rank& own(int rank) { return ranks_state_[static_cast<std::size_t>(rank - ranks_.here().front())]; }
    void validate(int rank, std::int64_t steps_done, RankRunner& runner);
    void test(int rank, std::int64_t steps_done, RankRunner& runner);
    struct HeldOut {
        const data::Dataset& data;
        std::int64_t batches;  // of each rank
        const char *name, *accuracy;
    };
    void evaluate(const HeldOut& held_out, int rank, std::int64_t steps_done, RankRunner& runner);
    void save(int rank, std::int64_t steps_done, RankRunner& runner);
    HostCalls calls_of(int rank);
    void on_loss(const BoardLoss& loss);
    void on_loss_scale(const LossScaleStep& step);
    void on_validation(const BoardLoss& loss);
    void on_test(const BoardLoss& loss);
    ValidationReport evaluated(const BoardLoss& loss, const MetricPlace& place, const char* loss_name,
                               const char* accuracy_name);
    void mark_divergence(const MetricPlace& place);
    void judge_losses();
    LossBoard& board(std::string_view name) {
        if (name == kLoss) return losses_;
        if (name == kTest) return test_;
        if (name == kTestAccuracy) return test_accuracies_;
        return name == kAccuracy ? accuracies_ : validation_;
    }
    std::string not_finite(const BoardLoss& loss) const;
    // The boards count the ranks of every pipeline place. Only those of the last stage compute losses, and
    // each rank of a context group computes a part of one.
    // Servers are on none.
    int ranks_with_losses() const { return job_.data_ranks() * job_.parallel.context; }
    int board_ranks() const { return ranks_with_losses() * program_.mesh().pipeline; }
    int board_rank(int rank) const {
        const plan::Mesh& mesh = program_.mesh();
        return mesh.pipeline_index(rank) * ranks_with_losses() + mesh.data_rank(rank) * mesh.context +
               mesh.context_index(rank);
    }
    data::OwnTokens own_tokens(const data::Dataset& whole, int rank) const {
        const plan::Mesh& mesh = program_.mesh();
        return {whole, {mesh.context, mesh.context_index(rank), job_.is_causal()}};
    }
    data::LoaderOptions loading(int rank, std::int64_t batches) const;
    bool validates() const { return program_.evaluation() && options_.validation; }
    bool tests() const { return program_.evaluation() && options_.test_data; }
    // Of each rank; 0: there is no such data. Throws DataError if it has less than one.
    std::int64_t batches_of(const data::Dataset* held_out) const {
        return program_.evaluation() && held_out
                   ? whole_batches(*held_out, job_.data_ranks(), job_.data.batch)
                   : 0;
    }
    data::Position position_after(std::int64_t steps) const {
        return {steps, options_.first_sample + (steps - options_.first_step) * job_.samples_per_step()};
    }
    std::optional<double> epoch_after(std::int64_t steps) const {
        if (train_.samples() == 0) return std::nullopt;
        return static_cast<double>(position_after(steps).samples) / static_cast<double>(train_.samples());
    }

    const sharding::Program& program_;
    const job::Job& job_;
    const RunOptions& options_;
    const From train_;
    const std::int64_t validation_batches_, test_batches_;
    const Clock::time_point start_ = Clock::now();
    // When training began or went on after a pause, in seconds since the start, and the step whose loss the
    // pause reads: of this process's first rank.
    std::atomic<double> resumed_{0};
    // Of the parameters that are tested, where a hook put them in place; written between two meetings.
    std::optional<std::int64_t> tested_samples_;
    std::atomic<std::int64_t> paused_after_{-1};
    double known_ = -1;               // when the latest loss was known, in seconds since the start
    std::int64_t since_pause_ = 0;    // losses that were known since training went on
    RunResult result_;                // the boards' locks guard what several threads write
    bool flagged_ = false;            // an output was not finite in this step or the next
    std::optional<double> accuracy_;  // of the evaluation whose loss the ranks tell next
    Divergence divergence_;
    LossBoard losses_, accuracies_, validation_, test_accuracies_, test_;
    StopGate gate_;
    std::optional<StopAgreement> agreement_;
    std::vector<Rank> ranks_state_;  // of this process
    Ranks ranks_;
    Lifeline<Training> lifeline_{this};
};

std::function<void()> asks(const RunOptions& options) {
    if (!options.processes) return {};
    return [&world = *options.processes->world] { StopAgreement::ask(world); };
}

Training::Training(const sharding::Program& program, const data::Dataset& dataset, const RunOptions& options)
    : program_(program),
      job_(program.job()),
      options_(options),
      train_(dataset, options.first_sample),
      validation_batches_(batches_of(options.validation)),
      test_batches_(batches_of(options.test_data)),
      divergence_(job_.train.diverged_above),
      losses_({board_ranks(), ranks_with_losses(), job_.parallel.context},
              [this](const BoardLoss& loss) { on_loss(loss); }),
      accuracies_({board_ranks(), ranks_with_losses(), job_.parallel.context},
                  [this](const BoardLoss& accuracy) { accuracy_ = accuracy.loss; }),
      validation_({board_ranks(), ranks_with_losses(), job_.parallel.context},
                  [this](const BoardLoss& loss) { on_validation(loss); }),
      test_accuracies_({board_ranks(), ranks_with_losses(), job_.parallel.context},
                       [this](const BoardLoss& accuracy) { accuracy_ = accuracy.loss; }),
      test_({board_ranks(), ranks_with_losses(), job_.parallel.context},
            [this](const BoardLoss& loss) { on_test(loss); }),
      gate_(options.control ? &options.control->stop : nullptr, options.first_step, asks(options)),
      ranks_state_(options.processes ? 1 : static_cast<std::size_t>(job_.run.ranks)),
      ranks_(program,
             {options.recorder,
              options.test,
              options.make_device,
              options.processes,
              {},
              [this] { gate_.fail(); },
              options.live},
             [this](int rank) { return calls_of(rank); }) {
    if (options_.recorder) describe_program(*options_.recorder, program_, ranks_.here());
    if (options_.processes) listen();
}

// Sets the handlers for the other processes' losses.
void Training::listen() {
    world::World& world = *options_.processes->world;
    agreement_.emplace(world, gate_);
    if (world.rank() > 0) return;
    for (const char* name : {kLoss, kAccuracy, kValidation, kTestAccuracy, kTest}) {
        world.on(name, lifeline_.guard([name](Training& own, int rank, std::string_view text) {
            own.hear(own.board(name), rank, text);
        }));
    }
}

// The process of rank 0 collects the losses, of a tensor group its first rank's: the others have the same.
void Training::tell(const char* name, int rank, std::int64_t step, std::span<const double> losses,
                    std::int32_t module, const StepMemory& memory, std::optional<double> norm) {
    if (program_.mesh().tensor_index(rank) > 0 || program_.mesh().serves(rank)) return;
    if (options_.processes) {
        options_.processes->world->tell(
            name, world::MessageWriter()
                      .add(step)
                      .add(module)
                      .add(memory.allocated)
                      .add(memory.peak)
                      .add_all(norm ? std::vector<double>{*norm} : std::vector<double>())
                      .add_all(losses)
                      .text());
    } else {
        board(name).tell(board_rank(rank), step, losses, module, memory, norm);
    }
}

// Called on the World's thread.
void Training::hear(LossBoard& board, int rank, std::string_view text) {
    try {
        world::MessageReader message(text);
        const auto step = message.number<std::int64_t>();
        const auto module = message.number<std::int32_t>();
        StepMemory memory;
        memory.allocated = message.number<std::int64_t>();
        memory.peak = message.number<std::int64_t>();
        const std::vector<double> norm = message.numbers<double>();
        board.tell(board_rank(rank), step, message.numbers<double>(), module, memory,
                   norm.empty() ? std::nullopt : std::optional(norm.front()));
    } catch (...) {
        ranks_.fail(std::current_exception());
    }
}

RunResult Training::run() {
    if (!ranks_.trace_problem().empty() && options_.on_warning) options_.on_warning(ranks_.trace_problem());
    ranks_.run([this](int rank, RankRunner& runner) { host(rank, runner); });
    for (const int rank : ranks_.here()) {
        const RankRunner& runner = ranks_.runner(rank);
        result_.peaks.push_back(runner.peak());
        result_.active.push_back(runner.allocator().peak_active_bytes(plan::MemorySpace::device));
        result_.file_wait_s.push_back(runner.file_wait_s());
        result_.reserved.push_back(runner.allocator().peak_reserved_bytes(plan::MemorySpace::device));
    }
    // The losses that the others have sent have been received by then.
    if (options_.processes) bring_together(*options_.processes->world, result_);
    judge_losses();
    return std::move(result_);
}

data::LoaderOptions Training::loading(int rank, std::int64_t batches) const {
    data::LoaderOptions loading;
    loading.ranks = job_.data_ranks();
    loading.rank = program_.mesh().data_rank(rank);
    loading.batch = job_.data.batch;
    loading.workers = job_.data.workers;
    loading.end_micro_step = batches;
    return loading;
}

void Training::host(int rank, RankRunner& runner) {
    const std::int64_t first = options_.first_step, steps = job_.run.steps;
    runner.run(program_.of(rank).setup(), first);
    runner.drain();
    if (options_.hooks.after_setup) options_.hooks.after_setup(rank, runner);
    if (!program_.mesh().serves(rank)) {
        own(rank).tokens.emplace(own_tokens(train_, rank));
        own(rank).loader = std::make_unique<data::DataLoader>(
            *own(rank).tokens, loading(rank, (steps - first) * job_.train.accumulation));
    }

    const Clock::time_point begin = Clock::now();
    const bool is_first = rank == ranks_.here().front();
    if (is_first) resumed_ = seconds_since(start_);
    double aside = 0;  // seconds that are not training
    const auto put_aside = [&](const auto& work) {
        const Clock::time_point since = Clock::now();
        work();
        aside += seconds_since(since);
        if (is_first) resumed_ = seconds_since(start_);
    };
    std::int64_t done = first, validated = -1, saved = -1;
    const auto validate_now = [&] {
        if (!validates() || validated == done) return;
        read_last_loss(rank, done, runner);
        put_aside([&] { validate(rank, done, runner); });
        validated = done;
    };
    const auto save_now = [&] {
        if (!options_.hooks.at_step_end || saved == done) return;
        if (job_.checkpoint.keep.best) validate_now();
        read_last_loss(rank, done, runner);
        put_aside([&] { save(rank, done, runner); });
        saved = done;
    };
    const auto is_time = [&](const job::Every& every) {
        return data::is_time(every, position_after(done - 1), position_after(done), train_.samples());
    };
    while (done < steps && gate_.enter(done)) {
        step(rank, done, runner);
        ++done;
        if (is_time(job_.train.validate_every)) validate_now();
        if (is_time(job_.checkpoint.every)) save_now();
    }
    if (done > first) {
        read_last_loss(rank, done, runner);
        if (done == steps) validate_now();
        save_now();
        if (done == steps && tests()) put_aside([&] { test(rank, done, runner); });
    }
    own(rank).loader.reset();
    if (rank != ranks_.here().front()) return;
    result_.seconds = seconds_since(begin) - aside;
    result_.steps_done = done;
    result_.epochs = epoch_after(done);
    if (done < steps) result_.stopped_at = done;
}

void Training::step(int rank, std::int64_t number, RankRunner& runner) {
    const profiler::Ticks since = runner.trace().now();
    runner.trace().push_range(trace_names::step_range(number));
    // The Plans of a run begin with its own first step, also where it resumes.
    runner.run(program_.of(rank).step(static_cast<std::size_t>(number - options_.first_step)), number);
    runner.trace().pop_range();
    runner.trace().step(number, since);
    if (options_.live) options_.live->stepped(rank, number + 1, runner.live_bytes(), runner.peak().bytes);
}

// Called when training pauses: otherwise a loss is read one step late. The board ignores the second report.
void Training::read_last_loss(int rank, std::int64_t steps_done, RankRunner& runner) {
    if (rank == ranks_.here().front()) paused_after_ = steps_done - 1;
    runner.run(program_.of(rank).finish(), steps_done - 1);
    runner.drain();
}

void Training::validate(int rank, std::int64_t steps_done, RankRunner& runner) {
    evaluate({*options_.validation, validation_batches_, kValidation, kAccuracy}, rank, steps_done, runner);
}

void Training::test(int rank, std::int64_t steps_done, RankRunner& runner) {
    data::Position tested = position_after(steps_done);
    if (options_.hooks.before_test) {
        ranks_.meet();
        tested = options_.hooks.before_test(rank, tested, runner);
        if (rank == ranks_.here().front()) tested_samples_ = tested.samples;
        ranks_.meet();
    }
    evaluate({*options_.test_data, test_batches_, kTest, kTestAccuracy}, rank, tested.steps, runner);
}

void Training::evaluate(const HeldOut& held_out, int rank, std::int64_t steps_done, RankRunner& runner) {
    Rank& state = own(rank);
    runner.trace().push_range(held_out.name);
    const data::OwnTokens tokens = own_tokens(held_out.data, rank);
    data::DataLoader loader(tokens, loading(rank, held_out.batches));
    state.validation = &loader;
    state.validation_losses.clear();
    state.accuracies.clear();
    for (std::int64_t i = 0; i < held_out.batches; ++i)
        runner.run(*program_.of(rank).evaluation(), steps_done - 1);
    runner.drain();
    state.validation = nullptr;
    runner.trace().pop_range();
    // First, so that it is known when the last loss arrives.
    if (!state.accuracies.empty()) tell(held_out.accuracy, rank, steps_done - 1, state.accuracies, -1, {});
    tell(held_out.name, rank, steps_done - 1, state.validation_losses, -1, {});
}

void Training::save(int rank, std::int64_t steps_done, RankRunner& runner) {
    ranks_.meet();
    options_.hooks.at_step_end(rank, steps_done, runner);
    ranks_.meet();
}

HostCalls Training::calls_of(int rank) {
    Rank& state = ranks_state_[options_.processes ? 0 : static_cast<std::size_t>(rank)];
    HostCalls calls;
    calls.next_batch = [&state](void* input, void* target) {
        (state.validation ? *state.validation : *state.loader).next(input, target);
    };
    calls.read_loss = [this, rank](std::int64_t step, std::span<const double> losses, std::int32_t module,
                                   std::optional<double> norm) {
        // What a stage before the last has copied is no loss.
        const RankRunner& runner = ranks_.runner(rank);
        tell(kLoss, rank, step, program_.of(rank).has_loss() ? losses : std::span<const double>(), module,
             {runner.live_bytes(), runner.peak().bytes}, norm);
    };
    calls.read_validation_loss = [&state](std::span<const double> values) {
        state.validation_losses.push_back(values[0]);
        if (values.size() > 1) state.accuracies.push_back(values[1]);
    };
    if (rank == 0) calls.scaled_loss = [this](const LossScaleStep& step) { on_loss_scale(step); };
    return calls;
}

// Of a step whose loss is not known yet.
void Training::on_loss_scale(const LossScaleStep& step) {
    if (options_.recorder) {
        options_.recorder->describe_with([step, place = place_of(step.step)](traces::store::EventSink& sink) {
            add_loss_scale(sink, place, step);
        });
    }
    if (step.skipped && options_.on_overflow)
        options_.on_overflow(fmt::format("step {}: {}", step.step, overflow_line(0, step)));
}

void Training::on_loss(const BoardLoss& loss) {
    // With a finite loss, the flag may already be that of the next step, which is under way: that step
    // reports it.
    const bool last = loss.step + 1 == job_.run.steps;
    const bool flagged = loss.module >= 0 && (std::exchange(flagged_, loss.module >= 0) || last);
    const MetricPlace place = place_of(loss.step);
    if (!std::isfinite(loss.loss) || flagged) {
        mark_divergence(place);
        throw RunError(not_finite(loss));
    }
    divergence_.add(place, loss.loss);
    result_.losses.push_back(loss.loss);
    const double now = seconds_since(start_);
    result_.known_at.push_back(now);
    const double seconds = seconds_of(loss.step, now);
    if (options_.recorder) {
        options_.recorder->describe_with(
            [metrics = StepMetrics(job_, loss.step, seconds, loss.memory, loss.gradient_norm,
                                   epoch_after(loss.step + 1)),
             place, loss](traces::store::EventSink& sink) {
                sink.add(traces::schema::LossRow{loss.step, loss.loss});
                metrics.add_to(sink, place);
            });
    }
    const StepReport report = {loss.step, loss.loss, now, seconds, epoch_after(loss.step + 1), loss.memory};
    if (options_.live) options_.live->known(report);
    if (options_.on_step) options_.on_step(report);
}

void Training::mark_divergence(const MetricPlace& place) {
    if (!options_.recorder) return;
    options_.recorder->describe_with(
        [place](traces::store::EventSink& sink) { add_metric(sink, place, "diverged", 1); });
}

// Only the process that hears the losses knows.
void Training::judge_losses() {
    if (!divergence_.since()) return;
    result_.diverged_at = divergence_.since()->step;
    result_.divergence = divergence_.sentence();
    mark_divergence(*divergence_.since());
    if (!options_.recorder) return;
    options_.recorder->describe(traces::schema::DiagnosticRow{
        options_.recorder->now_ns(), traces::schema::Severity::warning, result_.divergence});
}

// How long a step took, 0 if that is unknown. A loss is known one step late but before a pause: then the mean
// of the steps since training went on is exact, and the first of several has no time of its own.
double Training::seconds_of(std::int64_t step, double now) {
    const double resumed = resumed_;
    if (resumed >= known_) since_pause_ = 0;
    ++since_pause_;
    const double before = std::exchange(known_, now);
    if (paused_after_ == step) return (now - resumed) / static_cast<double>(since_pause_);
    return since_pause_ > 1 ? now - before : 0;
}

MetricPlace Training::place_of(std::int64_t step) const {
    return {.step = step,
            .sample = position_after(step + 1).samples,
            .time = options_.recorder ? options_.recorder->now_ns() : 0};
}

// What the ranks found in held-out data, and its metrics.
ValidationReport Training::evaluated(const BoardLoss& loss, const MetricPlace& place, const char* loss_name,
                                     const char* accuracy_name) {
    const ValidationReport report{loss.step, loss.loss, loss.pieces, accuracy_};
    if (options_.recorder) {
        options_.recorder->describe_with(
            [place, report, loss_name, accuracy_name](traces::store::EventSink& sink) {
                add_metric(sink, place, loss_name, report.loss);
                if (report.accuracy) add_metric(sink, place, accuracy_name, *report.accuracy);
            });
    }
    return report;
}

void Training::on_validation(const BoardLoss& loss) {
    result_.validation.push_back(evaluated(loss, place_of(loss.step), "validation_loss", "accuracy"));
    if (options_.on_validation) options_.on_validation(result_.validation.back());
}

void Training::on_test(const BoardLoss& loss) {
    MetricPlace place = place_of(loss.step);
    if (tested_samples_) place.sample = *tested_samples_;  // a checkpoint's, perhaps of a run before this one
    result_.test = evaluated(loss, place, "test_loss", "test_accuracy");
    if (options_.on_test) options_.on_test(*result_.test);
}

std::string Training::not_finite(const BoardLoss& loss) const {
    std::string sentence = fmt::format("step {}: ", loss.step);
    if (!std::isfinite(loss.loss))
        sentence += fmt::format("the loss is not finite ({}); ", std::isnan(loss.loss) ? "nan" : "infinity");
    const auto& modules = program_.modules().modules;
    if (loss.module >= 0 && static_cast<std::size_t>(loss.module) < modules.size()) {
        const model::Module& module = *modules[static_cast<std::size_t>(loss.module)];
        sentence += fmt::format("the first output that is not finite is that of {}{}; ", module.name,
                                module.path.empty() ? "" : " (" + module.path + ")");
    }
    return sentence + fmt::format("lower optimizer.lr, which is {}, or clip the gradients (train.clip_norm)",
                                  job_.optimizer.lr);
}

// The run has failed, but its trace is complete.
void tell_why(profiler::Recorder& recorder, const std::exception& error) {
    recorder.describe(
        traces::schema::DiagnosticRow{recorder.now_ns(), traces::schema::Severity::warning, error.what()});
}

}  // namespace

RunResult run_training(const sharding::Program& program, const data::Dataset& dataset,
                       const RunOptions& options) {
    if (options.first_step >= program.job().run.steps) {
        throw RunError(
            fmt::format("{} steps are done already and run.steps is {}; raise run.steps to continue",
                        options.first_step, program.job().run.steps));
    }
    try {
        return Training(program, dataset, options).run();
    } catch (const std::exception& error) {
        if (options.recorder) tell_why(*options.recorder, error);
        throw;
    }
}

}  // namespace shardscope::trainer::executor
