#include "trainer/lift/lift.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/memory/memory.h"
#include "traces/store/columns/trace.h"
#include "trainer/lift/host_collective_costs.h"
#include "trainer/lift/host_points.h"
#include "trainer/lift/host_replay.h"
#include "trainer/lift/host_trace.h"
#include "trainer/lift/mean_step.h"
#include "trainer/lift/recorded_costs.h"
#include "trainer/lift/resident_memory.h"
#include "trainer/lift/settings.h"
#include "trainer/lift/shared_cores.h"
#include "trainer/lift/step_lifter.h"
#include "trainer/plan/account.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::lift {

namespace {

using traces::analysis::StepWindow;
using traces::store::RankIndex;
using traces::store::Trace;

constexpr std::size_t kMostSteps = 32;  // to analyse; more would not change the median

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
    throw LiftError(file + ": " + why);
}

// The steps to analyse: the kept ones, without the first (a warm-up) if there are more than two.
std::vector<StepWindow> steady_steps(const Trace& trace, RankIndex rank) {
    const traces::analysis::TraceSteps all = traces::analysis::find_steps(trace);
    const traces::analysis::RankSteps& own = all.ranks[rank.at()];
    std::vector<StepWindow> steps(own.steps.begin(), own.steps.begin() + own.kept());
    if (steps.size() > 2) steps.erase(steps.begin());
    // Keeps the last steps: early ones may still be warming up.
    if (steps.size() > kMostSteps) steps.erase(steps.begin(), steps.end() - kMostSteps);
    return steps;
}

class Lifting {
  public:
    // `hosts`: the trace is one that as_device_trace() has made.
    explicit Lifting(const Trace& trace, bool hosts = false)
        : trace_(trace), roles_(trace, hosts), cores_(trace, traces::analysis::match_communications(trace)) {
        out_.file = trace.path;
        out_.ours = is_ours(trace);
        out_.times = trace.config_value("times") != "none";
        out_.hosts = hosts;
    }

    Lifted run();

  private:
    void check() const;
    void read_steps();
    std::int64_t start_before(std::int64_t step) const;
    void know_settings();
    void know_buckets(const std::vector<std::int64_t>& recorded);
    void know_memory();
    bool updates_together() const;
    void know_costs();
    void know_hosts(RecordedFigures figures);
    std::vector<traces::analysis::Interval> middle_windows() const;
    void know_unseen_waiting(const sharding::Program& recorded);
    void know_host_peak(const sharding::Program& recorded);
    void spread_waiting();
    void tell_what_is_missing();
    StepLifterOptions options() const;

    const Trace& trace_;
    const HostRangeRoles roles_;
    const SharedCores cores_;
    Lifted out_;
    const RankIndex rank_{0};
    std::vector<StepWindow> steps_;
    std::vector<LiftedRecording> recordings_;
    std::size_t base_ = 0;             // the median step
    std::vector<std::size_t> middle_;  // the steps about as long as that one
    std::int64_t launch_ns_ = 0;
};

void Lifting::check() const {
    if (trace_.ranks.empty() || trace_.device.size() == 0) {  // nor did threads of Gloo or MPI communicate
        refuse(
            out_.file,
            "nothing ran on a device in this trace, and no ranks communicated over Gloo or MPI, so there is "
            "nothing to replay; record kernels (ProfilerActivity.CUDA, or shardscope-train --trace), or a "
            "job "
            "of several ranks on processors");
    }
    if (trace_.steps.empty()) {
        refuse(out_.file,
               "the trace has no steps (ranges ProfilerStep#N), so the time of a step is unknown; call "
               "profiler.step() after each step of the loop (PyTorch), or push an NVTX range ProfilerStep#N "
               "around each");
    }
    for (const char* axis : {"parallel.tensor", "parallel.context", "parallel.expert", "parallel.pipeline"}) {
        const std::string_view size = trace_.config_value(axis);
        if (size.empty() || size == "1") continue;
        refuse(out_.file, fmt::format("it was recorded with {0} = {1}, and only the data axes can be "
                                      "replayed under other settings; record a job with {0} = 1, or "
                                      "run this one with --run.device=sim",
                                      axis, size));
    }
    if (trace_.collectives.size() == 0) {
        const bool any = std::find(trace_.device.kind.begin(), trace_.device.kind.end(),
                                   traces::store::DeviceKind::communication) != trace_.device.kind.end();
        refuse(
            out_.file,
            any ? "its collectives do not say how many bytes they move, so other units cannot be given a "
                  "time; record it with PyTorch 2.2 or newer (record_param_comms with its arguments)"
                : "the trace has no collectives, so it is not a run under FSDP or DDP; for what a model on "
                  "one device would be under FSDP write a job file and use: shardscope-train plan "
                  "JOB.toml");
    }
}

StepLifterOptions Lifting::options() const {
    StepLifterOptions options;
    options.ours = out_.ours;
    const std::string_view mode = trace_.config_value("parallel.mode");
    options.whole_gradients = mode != "fsdp" || trace_.config_value("fsdp.sharding_strategy") == "NO_SHARD";
    const std::string_view param = trace_.config_value("precision.param");
    if (mode == "fsdp" && (param == "bf16" || param == "fp16")) options.gradient_size = 2;
    options.launch_ns = launch_ns_;
    options.fully_shard = is_fully_shard(trace_);
    options.shard_ranks = shard_ranks_of(trace_);
    options.hosts = out_.hosts;
    options.cores = &cores_;
    return options;
}

void Lifting::read_steps() {
    steps_ = steady_steps(trace_, rank_);
    if (steps_.empty()) {
        refuse(out_.file, "no step of its first rank is complete; record a few steps more than one");
    }
    const HostPoints points(trace_, roles_, rank_, out_.hosts);
    const auto lift_all = [&] {
        recordings_.clear();
        for (const StepWindow& step : steps_) {
            recordings_.push_back(
                lift_step(trace_, roles_, points, start_before(step.host.start), step.host, options()));
        }
    };
    lift_all();
    if (!out_.hosts) {
        // A second pass, in which a call's excess over the typical launching call counts as the host's own
        // time.
        std::vector<std::int64_t> launches;
        for (const LiftedRecording& recording : recordings_)
            launches.insert(launches.end(), recording.launch_ns.begin(), recording.launch_ns.end());
        if (launches.empty()) {
            refuse(out_.file,
                   "no kernel is tied to the call that launched it, so its place in the step is not known; "
                   "record "
                   "CPU activities beside the device's (ProfilerActivity.CPU)");
        }
        launch_ns_ = median(std::move(launches));
        lift_all();
    }

    std::vector<std::pair<std::int64_t, std::size_t>> lengths;
    for (std::size_t s = 0; s < steps_.size(); ++s) lengths.emplace_back(steps_[s].window.length(), s);
    std::sort(lengths.begin(), lengths.end());
    base_ = lengths[(lengths.size() - 1) / 2].second;
    // The middle half represents the median step.
    for (std::size_t i = lengths.size() / 4; i < lengths.size() - lengths.size() / 4; ++i)
        middle_.push_back(lengths[i].second);
    std::vector<std::int64_t> windows;
    windows.reserve(lengths.size());
    for (const auto& [length, step] : lengths) windows.push_back(length);
    out_.step_s = static_cast<double>(median(std::move(windows))) * kNs;
    out_.steps = static_cast<int>(steps_.size());

    LiftedStep step = recordings_[base_].step;
    std::vector<std::size_t> others = middle_;
    std::erase(others, base_);
    take_means(step, recordings_, others);
    if (const std::string fault = fault_of(step); !fault.empty()) {
        refuse(out_.file,
               fmt::format("the ranges of its modules (nn.Module: Class_n) do not nest in step {}: "
                           "{}; record it again, with the calls of one model on one thread",
                           steps_[base_].number, fault));
    }
    out_.step = std::move(step);
}

// The start of the step before one that starts then; the same if there is none.
std::int64_t Lifting::start_before(std::int64_t step) const {
    std::int64_t latest = std::numeric_limits<std::int64_t>::min();
    for (const traces::store::Step& own : trace_.steps)
        if (own.rank == rank_ && own.start < step) latest = std::max(latest, own.start);
    return latest == std::numeric_limits<std::int64_t>::min() ? step : latest;
}

void Lifting::know_settings() {
    const LiftedRecording& base = recordings_[base_];
    const bool one_unit = base.has_modules && base.gathers == 1 && wrap_of(out_.step) == "root";
    Settings settings = settings_of(trace_, rank_, {base.micro_batches, one_unit});
    out_.settings = std::move(settings.keys);
    out_.notes = std::move(settings.notes);
    out_.ranks = ranks_of(trace_);
    out_.rank = trace_.ranks[rank_.at()].number;
    out_.modules = base.has_modules;
    out_.parameters = base.parameters;
    out_.batch = out_.ours ? recorded_batch(trace_) : base.batch;
    if (out_.batch > 0) out_.settings.push_back({"data.batch", std::to_string(out_.batch)});
    if (out_.step.parameters.empty()) {
        refuse(out_.file,
               "the sizes of its parameters are not known: no shapes of operators, no gathers of units, no "
               "buckets; record with record_shapes=True");
    }
    if (base.parameters == ParametersFrom::buckets) {  // each parameter is a bucket already
        out_.settings.push_back({"ddp.bucket_cap_mb", "0.001"});
        out_.settings.push_back({"ddp.first_bucket_mb", "0.001"});
    }
    const auto mode = std::find_if(out_.settings.begin(), out_.settings.end(),
                                   [](const job::Override& o) { return o.key == "parallel.mode"; });
    const bool fsdp = mode != out_.settings.end() && mode->value == "fsdp";
    out_.fsdp = fsdp;
    if (base.element_bytes == 2 && fsdp) {
        const bool wide = reduces_wider(trace_);
        out_.settings.push_back({"precision.param", "bf16"});
        out_.settings.push_back({"precision.reduce", wide ? "fp32" : "bf16"});
        out_.notes.push_back(fmt::format(
            "Units are gathered with two bytes per element: assumed to be bf16 parameters, reduced in {}.",
            wide ? "fp32" : "bf16"));
    } else if (base.element_bytes == 2) {
        out_.notes.emplace_back(
            "DDP's buckets have two bytes per element; they are replayed in fp32, with twice the bytes.");
    }
    if (base.more_than_buckets) {
        out_.notes.emplace_back(
            "DDP's buckets have fewer elements than its modules' operators read: some parameters are frozen; "
            "which is not known, so all are assumed to be trained.");
    }
    if (!fsdp) {
        if (base.parameters == ParametersFrom::shapes) know_buckets(base.buckets);
        return;
    }
    const auto wrap = std::find_if(out_.settings.begin(), out_.settings.end(),
                                   [](const job::Override& o) { return o.key == "fsdp.wrap"; });
    if (wrap != out_.settings.end()) {
        out_.wrap = wrap->value;
        return;
    }
    out_.wrap = wrap_of(out_.step);
    if (out_.wrap.empty()) {
        out_.wrap = "as recorded";
        out_.units = true;
    } else {
        out_.settings.push_back({"fsdp.wrap", out_.wrap});
    }
}

// The caps that produce the recorded buckets: PyTorch's defaults first (1 MiB for the first bucket, 25 MiB
// for the others), then 25 MiB for all (bucket_cap_mb given explicitly), then the recorded sizes.
void Lifting::know_buckets(const std::vector<std::int64_t>& recorded) {
    if (recorded.empty()) return;
    constexpr double kMb = 1 << 20;
    constexpr double kLeast = 1e-3;  // the smallest value that the keys accept
    const auto mb = [&](std::int64_t bytes) {
        return fmt::format("{}", std::max(kLeast, static_cast<double>(bytes) / kMb));
    };
    const std::vector<std::int64_t> closed(recorded.begin(), recorded.end() - 1);  // without the last (rest)
    const std::int64_t first = closed.empty() ? 2 * recorded.front() : closed.front();
    const std::int64_t cap =
        closed.size() < 2 ? 2 * recorded.back() : *std::min_element(closed.begin() + 1, closed.end());
    const auto settings_of_caps = [&](const std::string& first_mb, const std::string& cap_mb) {
        return std::vector<job::Override>{{"ddp.first_bucket_mb", first_mb}, {"ddp.bucket_cap_mb", cap_mb}};
    };
    std::vector<job::Override> best;
    double least = -1;
    for (const std::vector<job::Override>& caps :
         {settings_of_caps("1", "25"), settings_of_caps("25", "25"), settings_of_caps(mb(first), mb(cap))}) {
        const sharding::Program program = program_of(out_, job_of(out_, caps));
        std::vector<std::int64_t> made;
        for (const plan::Op& op : program.step(program.warm_up_steps()).ops)
            if (op.kind == plan::OpKind::collective &&
                op.collective().operation == plan::Operation::all_reduce)
                made.push_back(op.bytes);
        double off = 0;
        for (std::size_t b = 0; b < std::max(made.size(), recorded.size()); ++b) {
            const auto at = [&](const std::vector<std::int64_t>& all) {
                return b < all.size() ? static_cast<double>(all[b]) : 0;
            };
            off += std::abs(at(made) - at(recorded));
        }
        // A parameter whose module is unknown may be in another bucket.
        constexpr double kNear = 0.02;
        if (off <=
            kNear * static_cast<double>(std::accumulate(recorded.begin(), recorded.end(), std::int64_t{0})))
            off = 0;
        if (least >= 0 && off >= least) continue;
        least = off;
        best = caps;
    }
    out_.settings.insert(out_.settings.end(), best.begin(), best.end());
}

void Lifting::know_memory() {
    out_.memory = std::any_of(trace_.memory.bytes.begin(), trace_.memory.bytes.end(),
                              [](std::int64_t bytes) { return bytes > 0; });
    if (!out_.memory || out_.hosts) return;
    for (const traces::analysis::RankMemory& own : traces::analysis::memory_report(trace_).ranks)
        if (own.rank == out_.rank) out_.peak_bytes = own.peak_bytes;
    if (out_.ours) return;
    const std::int64_t resident =
        resident_bytes(trace_, rank_, steps_[base_].host, program_of(out_, job_of(out_, {})),
                       recordings_[base_].carried_bytes);
    if (resident > 0) add_resident(out_.step, resident);
}

// Whether the optimizer's operators take lists of parameters (foreach); clipping always does.
bool Lifting::updates_together() const {
    for (std::size_t r = 0; r < trace_.ranges.size(); ++r) {
        const std::string_view name = trace_.strings[trace_.ranges.name[r]];
        if (name.starts_with("aten::_foreach_") && name != "aten::_foreach_norm" &&
            name != "aten::_foreach_mul_" && roles_.optimizer(static_cast<std::int32_t>(r)))
            return true;
    }
    return false;
}

void Lifting::know_costs() {
    const RecordedFigures figures = figures_of(recordings_, middle_, static_cast<double>(launch_ns_) * kNs);
    out_.cluster = cluster_of(trace_, sim::load_cluster(base_cluster_of(trace_, out_.hosts)), figures, cores_,
                              out_.notes, out_.hosts);
    if (out_.hosts) return know_hosts(figures);
    const sharding::Program program = program_of(out_, job_of(out_, {}));
    const EngineHost host = calibrate_engine(program.step(program.warm_up_steps()), figures, out_.cluster);
    out_.costs.operation_ns = host.operation_ns;
    if (host.step_ns > 0)
        out_.step.tail.push_back({.kind = Item::Kind::host, .index = -1, .host_ns = host.step_ns});
}

// The windows of the steps that stand for the median one, sorted.
std::vector<traces::analysis::Interval> Lifting::middle_windows() const {
    std::vector<traces::analysis::Interval> windows;
    for (const std::size_t s : middle_) windows.push_back(steps_[s].window);
    std::sort(windows.begin(), windows.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    return windows;
}

// Where ranks carry out everything on their own threads, the time around the model depends on the calls of
// FSDP, and waiting on the places where all ranks meet.
void Lifting::know_hosts(RecordedFigures figures) {
    out_.cluster.host.carries_out = true;
    out_.blocking = collectives_block(trace_);
    know_host_collectives(trace_, middle_windows(), out_.cluster.collectives, out_.notes);
    std::vector<std::int64_t> overheads, numbers;
    const auto name = trace_.strings.find(kHostOperator);
    for (std::size_t c = 0; c < trace_.runtime.size(); ++c)
        if (trace_.runtime.name[c] == name && !roles_.optimizer(trace_.runtime.range[c]))
            overheads.push_back(trace_.runtime.end[c] - trace_.runtime.start[c]);
    for (const std::size_t s : middle_) numbers.push_back(steps_[s].number);
    const std::int64_t overhead = median(std::move(overheads));
    const sharding::Program program = program_of(out_, job_of(out_, {}));
    figures.engine = with_dispatch_on_host(figures.engine, program.job(), overhead);
    calibrate_engine(program.step(program.warm_up_steps()), figures, out_.cluster);
    out_.cluster.host.operation = 0;
    out_.engine = HostEngine(program, figures.engine, overhead);
    out_.host_overlap_s = host_overlap_seconds(out_, program);
    if (program.job().parallel.mode != job::ParallelMode::fsdp) {
        out_.notes.emplace_back(
            "The trace has no work of FSDP's hooks: under FSDP each parameter and collective is assumed to "
            "cost as much, next to DDP's hooks or to small operators, as was measured with PyTorch 2.15.");
    }
    out_.skew = RankSkew(trace_, rank_, numbers);
    if (out_.skew.known()) know_unseen_waiting(program);
    if (out_.memory) know_host_peak(program);
}

// PyTorch counts memory of the host from the profiler's start, without parameters and optimizer state: the
// recorded peak is the step's rise above what the Plan has at a step's start. The median step's, since a free
// that PyTorch misses makes a rise too high.
void Lifting::know_host_peak(const sharding::Program& recorded) {
    plan::MemoryAccount account;
    account.walk(recorded.setup());
    for (std::size_t s = 0; s <= recorded.warm_up_steps(); ++s) account.walk(recorded.step(s));
    std::vector<std::int64_t> rises;
    for (const StepWindow& step : steps_) {
        std::int64_t live = 0, most = 0;
        for (std::size_t m = 0; m < trace_.memory.size(); ++m) {
            const std::int64_t time = trace_.memory.time[m];
            if (trace_.memory.rank[m] != rank_.column() || time < step.host.start || time >= step.host.end)
                continue;
            live += trace_.memory.bytes[m];
            most = std::max(most, live);
        }
        rises.push_back(most);
    }
    out_.peak_bytes =
        account.counter().live_bytes() + recordings_[base_].carried_bytes + median(std::move(rises));
    out_.notes.emplace_back(
        "PyTorch counts the host's memory from the profiler's start: the recorded peak is the step's rise "
        "above "
        "what the replay has at the step's start.");
}

// The ranks' skew does not explain all waiting: threads of Gloo's wait, too, in each collective.
void Lifting::know_unseen_waiting(const sharding::Program& recorded) {
    const std::vector<traces::analysis::Interval> windows = middle_windows();
    const auto length = static_cast<double>(traces::analysis::length(windows));
    const auto waiting = static_cast<double>(exposed_waiting(trace_, rank_, windows, cores_));
    const double collectives = static_cast<double>(transfer_inside(trace_, rank_, windows));
    const double work = length - waiting - collectives;
    if (work <= 0) return;
    const bool blocking = out_.blocking && recorded.job().parallel.mode == job::ParallelMode::fsdp;
    const auto shares = meeting_shares(recorded.step(recorded.warm_up_steps()), blocking);
    out_.waiting_s = waiting / static_cast<double>(middle_.size()) * kNs;
    const double unseen = waiting - work * out_.skew.waiting(shares);
    out_.unseen_waiting_s =
        unseen / static_cast<double>(middle_.size() * std::max<std::size_t>(shares.size(), 1)) * kNs;
}

// A job runs at the pace of its slowest rank at each collective. The time that this rank waits for others
// does not belong to its collectives (with fewer of them it would wait as long, in fewer places), so it is
// spread over its kernels.
void Lifting::spread_waiting() {
    const std::vector<traces::analysis::Interval> windows = middle_windows();
    const double waiting = static_cast<double>(exposed_waiting(trace_, rank_, windows, cores_)) /
                           static_cast<double>(windows.size());
    double kernels = 0;
    out_.step.for_each_item([&](Item& item) {
        if (item.kind == Item::Kind::kernel) kernels += static_cast<double>(item.device_ns);
    });
    if (waiting <= 0 || kernels <= 0) return;
    const double factor = 1 + waiting / kernels;
    out_.step.for_each_item([&](Item& item) {
        if (item.kind == Item::Kind::kernel)
            item.device_ns = std::llround(static_cast<double>(item.device_ns) * factor);
    });
    out_.waiting_s = waiting * kNs;
}

void Lifting::tell_what_is_missing() {
    auto& notes = out_.notes;
    if (!out_.times) {
        notes.emplace_back(
            "The trace has no times, only the order of events (shardscope_torch.py --fake): replays have "
            "peaks "
            "and no durations, and the Pareto front is the smallest peak.");
    }
    if (!out_.modules) {
        notes.emplace_back(
            "No module ranges (nn.Module: Class_n): the model is one module, and no unit can be wrapped "
            "inside "
            "it. Record with torch.profiler.profile(with_modules=True, with_stack=True), record_function "
            "around each module, or samples/pytorch/shardscope_torch.py.");
    }
    if (out_.modules && out_.parameters == ParametersFrom::buckets) {
        notes.emplace_back(
            "The trace has no shapes of operators: each module's parameters are unknown, so the root has "
            "them all. Record with"
            " record_shapes=True.");
    }
    if (out_.parameters == ParametersFrom::gathers && !out_.ours) {
        notes.emplace_back(
            "No shapes of operators: a unit's parameters count as one at its module, so finer units cannot "
            "be derived."
            " Record with record_shapes=True.");
    }
    if (!out_.memory) {
        notes.emplace_back(
            "No memory events: peaks have no activations, so that only their differences mean something. "
            "Record with profile_memory=True.");
    }
    if (!recordings_[base_].has_backward) {
        notes.emplace_back(
            "No operators of autograd: the backward cannot be distinguished from the forward. Record CPU "
            "activities "
            "(ProfilerActivity.CPU).");
    }
    if (!out_.times) return;
    if (trace_.ranks.size() == 1 && out_.ranks > 1) {
        notes.push_back(
            fmt::format("One rank of {}: its collectives' times include the waiting for the others. "
                        "Give the files of "
                        "all ranks, or their folder.",
                        out_.ranks));
    }
    if (out_.steps < 3) {
        notes.push_back(fmt::format("{} step{} only: a median over more steps is more reliable.", out_.steps,
                                    out_.steps == 1 ? "" : "s"));
    }
}

Lifted Lifting::run() {
    check();
    read_steps();
    know_settings();
    know_memory();
    out_.optimizer = OptimizerMemory(recordings_[base_].optimizer_rise, program_of(out_, job_of(out_, {})),
                                     updates_together());
    if (!out_.hosts) spread_waiting();
    const std::size_t notes = out_.notes.size();
    know_costs();
    if (!out_.times) out_.notes.resize(notes);  // those of costs
    tell_what_is_missing();
    return std::move(out_);
}

}  // namespace

Lifted lift(const Trace& trace) {
    if (!ran_on_hosts(trace)) return Lifting(trace).run();
    const Trace converted = as_device_trace(trace);
    return Lifting(converted, true).run();
}

job::Job job_of(const Lifted& lifted, const std::vector<job::Override>& changes) {
    std::vector<job::Override> settings = {{"run.device", "sim"}, {"run.steps", "12"}};
    settings.insert(settings.end(), lifted.settings.begin(), lifted.settings.end());
    // Recorded settings that the new mode or strategy does not support are reset.
    for (const job::Override& change : changes) {
        if (change.key == "parallel.mode" && change.value != "fsdp")
            settings.push_back({"fsdp.cpu_offload", "false"});
        if (change.key == "fsdp.sharding_strategy" && change.value.find("HYBRID") == std::string::npos)
            settings.push_back({"fsdp.shard_group", "0"});
    }
    settings.insert(settings.end(), changes.begin(), changes.end());
    return parse_job("", lifted.file, settings);
}

sharding::Program program_of(const Lifted& lifted, const job::Job& job) {
    const bool units = lifted.units && !job.origins.contains("fsdp.wrap");
    const double batch =
        lifted.batch > 0 ? static_cast<double>(job.data.batch) / static_cast<double>(lifted.batch) : 1;
    LiftedCosts costs = lifted.costs;
    if (lifted.hosts || lifted.optimizer.known()) {
        // What the optimizer allocates and the host does beside the model, and where it waits, depend on the
        // Plan.
        const sharding::Program without(job, workload_of(lifted.step, costs, units, batch));
        costs.optimizer_bytes = lifted.optimizer.of(without);
        if (lifted.hosts) costs = host_costs(lifted, costs, without);
    }
    return {job, workload_of(lifted.step, costs, units, batch)};
}

}  // namespace shardscope::trainer::lift
