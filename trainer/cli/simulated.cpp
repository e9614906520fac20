#include "trainer/cli/simulated.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/text_table.h"
#include "traces/schema/json_text.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"
#include "trainer/cli/dry_run.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/output.h"
#include "trainer/cli/plan_files.h"
#include "trainer/cli/what_fits.h"
#include "trainer/data/epochs.h"
#include "trainer/data/source.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/sim_trace.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::cli {

namespace {

using traces::store::grouped;

constexpr std::size_t kExposuresShown = 5;

// Runs `call`, which may find an error in the cost model.
template <class Call>
auto checked(const job::Job& job, const Call& call) {
    try {
        return call();
    } catch (const sim::ClusterError& error) {
        refuse(job, error);
    }
}

std::unique_ptr<traces::store::DatabaseWriter> open_trace(const job::Job& job) {
    if (job.run.trace.empty()) return nullptr;
    traces::store::DatabaseWriter::check_output(job.run.trace, job.run.overwrite);
    return std::make_unique<traces::store::DatabaseWriter>(writer_options(job.run.trace, job.run.overwrite));
}

// The job's settings that a simulation cannot carry out.
std::vector<std::string> notes_of(const job::Job& job) {
    std::vector<std::string> notes = job.notes;
    const auto note = [&](const std::string& key, const char* what) {
        notes.push_back(fmt::format("{}{}: a simulation {}", where(job, key), key, what));
    };
    if (!job.checkpoint.save.empty()) note("checkpoint.save", "saves nothing, and counts no time for it");
    if (!job.checkpoint.load.empty())
        note("checkpoint.load",
             "loads nothing; the optimizer's state is there from the start, as after a load");
    if (!job.checkpoint.initial_load.empty()) note("checkpoint.initial_load", "loads nothing");
    if (job.validates()) {
        note(job.data.validation > 0 ? "data.validation" : "data.validation_path",
             "computes no loss, and counts no time for the validation");
    }
    if (job.tests()) {
        note(job.data.test > 0 ? "data.test" : "data.test_path",
             "computes no loss, and counts no time for the test");
    }
    return notes;
}

// "h100_ib (128 nodes of 8 × NVIDIA H100 80GB HBM3)"
std::string cluster_words(const sim::Cluster& cluster, int ranks) {
    const int nodes = cluster.node_of(ranks - 1) + 1;
    return fmt::format(
        "{} ({} node{} of up to {} × {}{})", cluster.name, grouped(nodes), nodes == 1 ? "" : "s",
        cluster.devices, cluster.device.name,
        cluster.ranks_per_device > 1 ? fmt::format(", {} ranks on each", cluster.ranks_per_device) : "");
}

class Simulated {
  public:
    // `samples`: of an epoch; 0: nothing counts them.
    Simulated(const job::Job& job, std::int64_t samples, const TrainOptions& options)
        : json_(options.json),
          samples_(samples),
          cluster_(checked(job, [&] { return sim::load_cluster(job); })),
          program_(sim::placed_on(job, cluster_)) {}

    const sharding::Program& program() const { return program_; }
    std::int64_t memory() const { return sim::options_of(job(), cluster_).memory_limit; }  // per rank
    int run();

  private:
    const job::Job& job() const { return program_.job(); }
    void announce() const;
    void simulate();
    void close_trace();
    executor::RunResult as_run() const;
    void print() const;
    struct SteadyPeak {
        std::int64_t bytes = 0;  // 0: this run reaches the peak
        int step = 0;            // the first step that reaches it, from 1
    };
    SteadyPeak steady_peak() const;
    std::string steady_line() const;
    std::string json() const;
    std::string communication_table() const;
    double usd_per_step() const {  // for all devices, by the cost model's price
        return result_.average_step_s / 3600 * cluster_.device.price_per_hour * devices();
    }
    int devices() const { return job().run.ranks / cluster_.ranks_per_device; }

    const bool json_;
    const std::int64_t samples_;
    const sim::Cluster cluster_;
    const sharding::Program program_;
    std::unique_ptr<traces::store::DatabaseWriter> writer_;
    std::unique_ptr<sim::SimTrace> trace_;
    sim::SimResult result_;
    double took_s_ = 0;  // wall-clock time
    std::string tables_;
    bool trace_failed_ = false;
};

void Simulated::announce() const {
    for (const std::string& note : notes_of(job())) fmt::print(stderr, "shardscope-train: note: {}\n", note);
    fmt::print(stderr, "{}\nsimulated on {}: nothing is computed, {}\n", describe_run(program_),
               cluster_words(cluster_, job().run.ranks),
               job().train.epochs > 0 ? fmt::format("the data is only counted: {} steps", job().run.steps)
                                      : "no data is opened");
}

void Simulated::simulate() {
    const auto start = std::chrono::steady_clock::now();
    sim::SimOptions options = sim::options_of(job(), cluster_);
    options.every_step = writer_ != nullptr;
    if (writer_)
        trace_ =
            std::make_unique<sim::SimTrace>(*writer_, program_, cluster_, job().sim.trace_ranks, samples_);
    try {
        result_ = checked(job(), [&] { return sim::simulate(program_, cluster_, options, trace_.get()); });
    } catch (const std::exception& error) {
        if (writer_) {  // keeps the part before the failure, and its reason
            writer_->add(traces::schema::DiagnosticRow{trace_->duration(), traces::schema::Severity::warning,
                                                       error.what()});
            writer_->finish(trace_->duration(), 0);
        }
        throw;
    }
    if (trace_) trace_->summarise(result_);
    took_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Simulated::close_trace() {
    if (!writer_) return;
    try {
        writer_->finish(trace_->duration(), 0);
        if (json_) return;
        const auto trace = traces::store::load_trace(job().run.trace);
        tables_ = rank_zero_tables(*trace);
    } catch (const traces::store::StoreError& error) {
        fmt::print(stderr, "shardscope-train: warning: the trace is incomplete: {}\n", error.what());
        trace_failed_ = true;
    }
}

// The result as a training run's, without losses.
executor::RunResult Simulated::as_run() const {
    executor::RunResult run;
    run.steps_done = result_.steps;
    if (samples_ > 0) {
        run.epochs =
            static_cast<double>(result_.steps * job().samples_per_step()) / static_cast<double>(samples_);
    }
    run.seconds = result_.seconds;
    for (int rank = 0; rank < job().run.ranks; ++rank) {
        const sim::SimRanks& own = result_.of(rank);
        run.peaks.push_back({own.peak.bytes, own.peak.at_peak, {}, {}, own.peak.where});
        run.active.push_back(own.active);
        run.reserved.push_back(own.reserved);
    }
    return run;
}

// The peak that this run is too short to reach: the optimizer's state exists only from the second step on.
Simulated::SteadyPeak Simulated::steady_peak() const {
    const sharding::MemoryPrediction prediction = program_.predict();
    if (prediction.peak.bytes <= result_.classes.front().peak.bytes) return {};
    SteadyPeak steady{prediction.peak.bytes, 0};
    for (std::size_t s = 0; s < prediction.steps.size() && steady.step == 0; ++s)
        if (prediction.steps[s] == steady.bytes) steady.step = static_cast<int>(s) + 1;
    return steady;
}

std::string Simulated::steady_line() const {
    const SteadyPeak steady = steady_peak();
    if (steady.bytes == 0) return "";
    return fmt::format("With more steps: {} bytes from step {} on, as predicted; this run has {}\n",
                       steady.bytes, steady.step, result_.steps);
}

std::string Simulated::json() const {
    TrainResult train;
    train.average_step_us = result_.average_step_s * 1e6;
    train.trace = job().run.trace;
    auto json = traces::schema::parse_ordered_json(train_json(as_run(), train));
    nlohmann::ordered_json& more = json["simulation"];
    if (const SteadyPeak steady = steady_peak(); steady.bytes > 0) {
        more["steady_peak_bytes"] = steady.bytes;
        more["steady_peak_from_step"] = steady.step;
    }
    more["cluster"] = cluster_.name;
    more["nodes"] = cluster_.node_of(job().run.ranks - 1) + 1;
    more["device"] = cluster_.device.name;
    more["devices"] = devices();
    more["utilization_percent"] = 100 * result_.utilization;
    more["rank_classes"] = result_.classes.size();
    more["exposed_communication_us"] = result_.exposed_communication_s * 1e6;
    if (cluster_.device.price_per_hour > 0) more["usd_per_step"] = usd_per_step();
    const sim::SimRanks& first = result_.classes.front();
    more["last_step"] = {{"us", first.steady.seconds * 1e6},
                         {"kernel_us", first.steady.kernel_s * 1e6},
                         {"copy_us", first.steady.copy_s * 1e6},
                         {"communication_us", first.steady.communication_s * 1e6},
                         {"exposed_communication_us", first.steady.exposed_communication_s * 1e6}};
    return traces::schema::dump_json(json) + "\n";
}

// The units whose collectives are exposed in rank 0's last step.
std::string Simulated::communication_table() const {
    const sim::SimRanks& first = result_.classes.front();
    if (first.exposures.empty()) return "";
    using traces::report::Align;
    traces::report::TextTable table(
        {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right});
    table.header({"unit", "phase", "operation", "bytes", "µs", "exposed µs"});
    for (std::size_t i = 0; i < std::min(kExposuresShown, first.exposures.size()); ++i) {
        const sim::UnitExposure& own = first.exposures[i];
        table.row({own.unit < 0 ? "-" : program_.units()[static_cast<std::size_t>(own.unit)].name,
                   std::string(traces::schema::name(own.phase)),
                   std::string(traces::schema::name(own.operation)), grouped(own.bytes),
                   fmt::format("{:.1f}", own.seconds * 1e6), fmt::format("{:.1f}", own.exposed_s * 1e6)});
    }
    const std::size_t more = first.exposures.size() - std::min(kExposuresShown, first.exposures.size());
    return "\nCollectives of rank 0 in the last step, the most exposed first\n" + table.text() +
           (more > 0 ? fmt::format("and {} more\n", more) : "");
}

void Simulated::print() const {
    if (json_) {
        fmt::print("{}", json());
        return;
    }
    const executor::RunResult run = as_run();
    const sim::SimStep& last = result_.classes.front().steady;
    fmt::print("Average step: {:.0f} µs, of which {:.0f} µs are exposed communication\n",
               result_.average_step_s * 1e6, result_.exposed_communication_s * 1e6);
    fmt::print(
        "{} of rank 0: {:.0f} µs; kernels {:.0f} µs, copies {:.0f} µs, communication {:.0f} µs\n",
        program_.cycle() == 1 ? "Last step" : fmt::format("Mean of the last {} steps", program_.cycle()),
        last.seconds * 1e6, last.kernel_s * 1e6, last.copy_s * 1e6, last.communication_s * 1e6);
    if (cluster_.ranks_per_device > 1) {
        fmt::print("Devices: {}, each with {} ranks; a kernel of theirs runs for {:.1f} % of the step\n",
                   grouped(devices()), cluster_.ranks_per_device, 100 * result_.utilization);
    }
    if (cluster_.device.price_per_hour > 0)
        fmt::print("Price: {:.4f} USD per step on {} devices\n", usd_per_step(), grouped(devices()));
    for (const sim::SimRanks& own : result_.classes) {
        if (result_.classes.size() == 1) break;
        fmt::print("As rank {}: {} rank{}, exposed communication {:.0f} µs per step\n", own.representative,
                   own.ranks, own.ranks == 1 ? "" : "s", own.steady.exposed_communication_s * 1e6);
    }
    fmt::print("{}", communication_table());
    if (tables_.empty()) {
        fmt::print("\nPeak memory of rank 0: {} bytes\n{}{}{}", run.peaks.front().bytes,
                   peak_table(run.peaks.front()), peaks_line(run), steady_line());
        fmt::print("Simulated in {:.2f} s\n", took_s_);
        return;
    }
    fmt::print("{}{}{}Simulated in {:.2f} s\n\nTrace: {}\n", tables_, peaks_line(run), steady_line(), took_s_,
               job().run.trace);
    fmt::print("Open it with: shardscope-view {0}    query it with: shardscope-trace modules {0}\n",
               job().run.trace);
}

int Simulated::run() {
    announce();
    writer_ = open_trace(job());
    simulate();
    close_trace();
    print();
    return trace_failed_ ? kFailed : 0;
}

}  // namespace

void refuse(const job::Job& job, const sim::ClusterError& error) {
    const std::string message = error.what();
    throw job::JobError(where(job, message.substr(0, message.find(':'))) + message);
}

int train_simulated(const job::Job& job, const TrainOptions& options) {
    if (!job.run.trace.empty() && !options.dry_run)
        traces::store::DatabaseWriter::check_output(job.run.trace, job.run.overwrite);
    const bool counts = job.train.epochs > 0 && !options.dry_run;
    job::Job counted = job;
    std::int64_t samples = 0;
    if (counts) {
        const data::DataSource data = data::open_data(job);
        counted = with_steps(job, *data.train, {});
        samples = data.train->samples();
    }
    Simulated simulated(counted, samples, options);
    if (options.dry_run) {
        const sharding::Program& program = simulated.program();
        fmt::print("{}", options.json ? dry_run_json(program) : dry_run_text(program));
        warn_of_memory(program, simulated.memory());
        return 0;
    }
    try {
        return simulated.run();
    } catch (const executor::OutOfMemory& error) {
        fmt::print(stderr, "shardscope-train: {}\n", error.what());
        tell_what_fits(simulated.program().job(), error.room());
        throw FailureReported(error.what());
    }
}

}  // namespace shardscope::trainer::cli
