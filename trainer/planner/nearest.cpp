#include "trainer/planner/nearest.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "trainer/executor/run.h"
#include "trainer/planner/hooks.h"
#include "trainer/planner/job_file.h"
#include "trainer/planner/model_classes.h"
#include "trainer/planner/space.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::planner {

namespace {

using Clock = std::chrono::steady_clock;

// An axis is one decision: its alternative values, each with the keys that it changes.
using Value = std::vector<job::Override>;
using Axis = std::vector<Value>;
// The index of the value on each axis, from 1; 0: the job's own.
using Choice = std::vector<std::size_t>;

std::size_t steps_of(const Choice& choice) {
    return static_cast<std::size_t>(
        std::count_if(choice.begin(), choice.end(), [](std::size_t value) { return value != 0; }));
}

bool holds(const Choice& whole, const Choice& part) {
    for (std::size_t a = 0; a < whole.size(); ++a)
        if (part[a] != 0 && part[a] != whole[a]) return false;
    return true;
}

Axis wraps(const job::Job& job) {
    Axis axis;
    for (const std::string& wrap : wraps_for(job))
        if (wrap != to_text(job.fsdp.wrap)) axis.push_back({{"fsdp.wrap", wrap}});
    return axis;
}

Axis checkpointings(const job::Job& job) {
    Axis axis;
    const std::string own = to_text(job.memory.activation_checkpointing);
    for (const std::string& classes : checkpointings_for(job))
        if (classes != own && classes != "none")
            axis.push_back({{"memory.activation_checkpointing", classes}});
    return axis;
}

// Strategies that shard more.
Axis strategies(const job::Job& job) {
    const bool alone = job.run.ranks == 1;
    if (job.parallel.mode != job::ParallelMode::fsdp) {
        // These need the whole state on each rank.
        if (is_onebit(job.optimizer.type) || job.train.local_steps > 0) return {};
        Axis axis;
        if (!alone && job.parallel.mode == job::ParallelMode::ddp && !job.ddp.shard_optimizer)
            axis.push_back({{"ddp.shard_optimizer", "true"}});
        // One rank has nothing to shard, but FSDP can offload.
        Value full = {{"parallel.mode", "fsdp"}, {"fsdp.sharding_strategy", "FULL_SHARD"}};
        set(full, without_hook(job));
        axis.push_back(std::move(full));
        return axis;
    }
    if (job.fsdp.sharding_strategy == job::ShardingStrategy::full_shard) return {};
    Value full = {{"fsdp.sharding_strategy", "FULL_SHARD"}};
    if (job.fsdp.shard_group > 0) full.push_back({"fsdp.shard_group", "0"});
    return {full};
}

// The same samples per step in smaller micro-batches.
Axis batches(const job::Job& job) {
    Axis axis;
    std::set<int> seen;
    for (const int parts : {2, 4, job.data.batch}) {
        if (parts < 2 || job.data.batch % parts != 0 || !seen.insert(parts).second) continue;
        axis.push_back({{"data.batch", std::to_string(job.data.batch / parts)},
                        {"train.accumulation", std::to_string(job.train.accumulation * parts)}});
    }
    return axis;
}

// The unit buffers of fully_shard, which has no limiter.
Axis layouts(const job::Job& job) {
    if (job.parallel.mode != job::ParallelMode::fsdp || job.fsdp.layout != job::FsdpLayout::fsdp1) return {};
    Value fully = {{"fsdp.layout", "fsdp2"}};
    if (job.origins.contains("fsdp.limit_all_gathers") && job.fsdp.limit_all_gathers)
        fully.push_back({"fsdp.limit_all_gathers", "false"});
    return {fully};
}

// What else may be on the host.
Axis offloads(const job::Job& job) {
    const job::Offload own = job.memory.offload;
    Axis axis;
    for (const bool parameters : {false, true}) {
        for (const job::Offload memory : {own, job::Offload{true, own.activations},
                                          job::Offload{own.optimizer, true}, job::Offload{true, true}}) {
            Value value;
            if (parameters != job.fsdp.cpu_offload)
                value.push_back({"fsdp.cpu_offload", parameters ? "true" : "false"});
            if (memory != own) value.push_back({"memory.offload", to_text(memory)});
            const bool less = job.fsdp.cpu_offload && !parameters && !memory.optimizer;
            if (value.empty() || less || (parameters && memory.optimizer)) continue;
            if (std::find(axis.begin(), axis.end(), value) == axis.end()) axis.push_back(std::move(value));
        }
    }
    return axis;
}

std::vector<Axis> axes_of(const job::Job& job) {
    const bool fsdp = job.parallel.mode == job::ParallelMode::fsdp;
    std::vector<Axis> axes = {wraps(job), checkpointings(job), strategies(job), batches(job), offloads(job)};
    if (job.model.attention == job::AttentionKind::plain) axes.push_back({{{"model.attention", "fused"}}});
    if (fsdp && job.fsdp.backward_prefetch != job::BackwardPrefetch::none)
        axes.push_back({{{"fsdp.backward_prefetch", "NONE"}}});
    if (fsdp && job.fsdp.forward_prefetch) axes.push_back({{{"fsdp.forward_prefetch", "false"}}});
    if (fsdp && !job.fsdp.limit_all_gathers && job.fsdp.layout != job::FsdpLayout::fsdp2)
        axes.push_back({{{"fsdp.limit_all_gathers", "true"}}});
    axes.push_back(layouts(job));
    std::erase_if(axes, [](const Axis& axis) { return axis.empty(); });
    return axes;
}

// Seconds per sample by the cost model, with `limit` bytes of memory (0: unlimited); nothing if it does not
// fit.
std::optional<double> seconds_per_sample(const sharding::Program& program, const sim::Cluster& cluster,
                                         std::int64_t limit) {
    const job::Job& job = program.job();
    sim::SimOptions options;
    options.memory_limit = limit;
    try {
        const double step = sim::simulate(program, cluster, options).average_step_s;
        return step / (static_cast<double>(job.data.batch) * job.train.accumulation);
    } catch (const executor::OutOfMemory&) {
        return std::nullopt;
    }
}

class NearestSearch {
  public:
    NearestSearch(const job::Job& job, std::int64_t limit, const sim::Cluster& cluster,
                  const NearestOptions& options)
        : text_(job_file(plain(job))),
          limit_(limit),
          cluster_(cluster),
          options_(options),
          axes_(axes_of(job)),
          until_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(options.seconds))) {}

    NearestFits run();

  private:
    // The results for a choice.
    struct Known {
        bool can_be = false, fits = false;
        NearestFit fit;
    };

    // A few steps show as much as many, and the job's own limit is replaced by `limit`.
    static job::Job plain(job::Job job) {
        job.run.steps = std::min<std::int64_t>(job.run.steps, 6);
        job.ddp.comm_hook_start = job::DdpSection().comm_hook_start;  // which may be beyond them
        job.run.memory_limit = 0;
        return job;
    }
    bool late() const { return Clock::now() > until_; }
    std::vector<job::Override> changes_of(const Choice& choice) const;
    const Known& look_at(const Choice& choice);
    void compare_times(Known& known, const sharding::Program& program);
    Choice descend();
    void try_all(std::size_t steps);
    void try_from(std::size_t axis, std::size_t steps, Choice& choice);
    bool enough() const { return found_.size() >= options_.most; }
    bool as_another(const Known& known) const;

    const std::string text_;
    const std::int64_t limit_;
    const sim::Cluster& cluster_;
    const NearestOptions options_;
    const std::vector<Axis> axes_;
    const Clock::time_point until_;
    std::map<Choice, Known> known_;
    std::vector<Choice> fitting_;        // fitting choices of which no part fits alone
    std::vector<Choice> found_;          // the same, one for each set of figures
    std::optional<double> own_seconds_;  // of the job itself, with unlimited memory
    bool cut_ = false;
};

// If several values set a key, the last one counts.
std::vector<job::Override> NearestSearch::changes_of(const Choice& choice) const {
    std::vector<job::Override> changes;
    for (std::size_t a = 0; a < choice.size(); ++a) {
        if (choice[a] == 0) continue;
        const Value& value = axes_[a][choice[a] - 1];
        changes.insert(changes.end(), value.begin(), value.end());
    }
    return changes;
}

const NearestSearch::Known& NearestSearch::look_at(const Choice& choice) {
    const auto [place, is_new] = known_.try_emplace(choice);
    Known& known = place->second;
    if (!is_new) return known;
    known.fit.changes = changes_of(choice);
    known.fit.steps = steps_of(choice);
    try {
        const sharding::Program program(parse_job(text_, "the job", known.fit.changes));
        known.fit.peak = program.predict_largest().peak;
        known.can_be = true;
        known.fits = known.fit.peak.bytes <= limit_;
        if (known.fits || known.fit.steps == 0) compare_times(known, program);
    } catch (const job::JobError&) {  // these values are incompatible
    }
    return known;
}

// Also decides whether it fits: the allocator may have to reserve more than is allocated.
void NearestSearch::compare_times(Known& known, const sharding::Program& program) {
    try {
        if (known.fit.steps == 0) {
            own_seconds_ = seconds_per_sample(program, cluster_, 0);
            known.fits = known.fits && seconds_per_sample(program, cluster_, limit_);
            return;
        }
        const std::optional<double> seconds = seconds_per_sample(program, cluster_, limit_);
        known.fits = seconds.has_value();
        if (seconds && own_seconds_ && *own_seconds_ > 0) known.fit.slower = *seconds / *own_seconds_;
    } catch (const sim::ClusterError&) {  // the cluster has too few devices: allocated bytes decide
    }
}

// Repeatedly makes the change that lowers the peak most, until none does or the job fits.
Choice NearestSearch::descend() {
    Choice here(axes_.size(), 0);
    while (!look_at(here).fits) {
        Choice best = here;
        std::int64_t least = look_at(here).fit.peak.bytes;
        for (std::size_t a = 0; a < axes_.size(); ++a) {
            for (std::size_t v = 1; v <= axes_[a].size(); ++v) {
                Choice next = here;
                next[a] = v;
                if (late()) return here;
                const Known& known = look_at(next);
                if (!known.can_be || known.fit.peak.bytes >= least) continue;
                least = known.fit.peak.bytes;
                best = next;
            }
        }
        if (best == here) return here;
        here = best;
    }
    return here;
}

// Whether another choice has the same figures, such as another wrap policy for the same units.
bool NearestSearch::as_another(const Known& known) const {
    return std::any_of(found_.begin(), found_.end(), [&](const Choice& choice) {
        const NearestFit& other = known_.at(choice).fit;
        return other.steps == known.fit.steps && other.peak.bytes == known.fit.peak.bytes &&
               other.slower == known.fit.slower;
    });
}

void NearestSearch::try_from(std::size_t axis, std::size_t steps, Choice& choice) {
    if (cut_) return;
    if (steps == 0) {
        const auto part = [&](const Choice& own) { return holds(choice, own); };
        if (std::any_of(fitting_.begin(), fitting_.end(), part)) return;
        if (late()) {
            cut_ = true;
            return;
        }
        const Known& known = look_at(choice);
        if (!known.fits) return;
        fitting_.push_back(choice);
        if (!as_another(known)) found_.push_back(choice);
        return;
    }
    if (axes_.size() - axis < steps) return;
    for (std::size_t v = 0; v <= axes_[axis].size(); ++v) {
        choice[axis] = v;
        try_from(axis + 1, v == 0 ? steps : steps - 1, choice);
    }
    choice[axis] = 0;
}

void NearestSearch::try_all(std::size_t steps) {
    Choice choice(axes_.size(), 0);
    try_from(0, steps, choice);
}

NearestFits NearestSearch::run() {
    look_at(Choice(axes_.size(), 0));
    try_all(1);
    if (!enough()) {
        const Choice last = descend();
        const bool fits = look_at(last).fits;
        for (std::size_t steps = 2; fits && steps <= std::max<std::size_t>(steps_of(last), 2); ++steps) {
            if (enough()) break;
            try_all(steps);
        }
        if (fits && found_.empty()) found_.push_back(last);  // the time ran out before the nearest was found
    }
    NearestFits result;
    for (const Choice& choice : found_) result.fits.push_back(look_at(choice).fit);
    traces::schema::sort_rows(result.fits, [](const NearestFit& a, const NearestFit& b) {
        return std::tie(a.steps, a.slower) < std::tie(b.steps, b.slower);
    });
    if (result.fits.size() > options_.most) result.fits.resize(options_.most);
    for (const auto& [choice, known] : known_) {
        if (!known.can_be) continue;
        ++result.tried;
        NearestFit& least = result.smallest;
        const auto key = [](const NearestFit& fit) { return std::make_pair(fit.peak.bytes, fit.steps); };
        if (least.peak.bytes == 0 || key(known.fit) < key(least)) least = known.fit;
    }
    result.complete = !cut_ && !late();
    return result;
}

}  // namespace

NearestFits nearest_fits(const job::Job& job, std::int64_t limit, const sim::Cluster& cluster,
                         const NearestOptions& options) {
    return NearestSearch(job, limit, cluster, options).run();
}

}  // namespace shardscope::trainer::planner
