#include "trainer/lift/counterfactuals.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/job/keys.h"
#include "trainer/lift/host_replay.h"
#include "trainer/planner/model_classes.h"
#include "trainer/planner/parallel.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::lift {

namespace {

using Values = std::vector<std::string>;
using Changes = std::vector<job::Override>;

constexpr std::size_t kMostReplays = 5000;

// Keys of other sections that a replay can change.
constexpr std::array<std::string_view, 5> kOthers = {"run.ranks", "data.batch", "train.accumulation",
                                                     "train.accumulation_sync",
                                                     "memory.activation_checkpointing"};

bool may_vary(const job::Key& key, std::string_view name) {
    return key.section == "parallel" || key.section == "fsdp" || key.section == "ddp" ||
           std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

// --- configurations to try --------------------------------------------------------------------------------

std::int64_t elements_in(const LiftedStep& step, int id, planner::Classes& classes) {
    const Node& node = step.nodes[static_cast<std::size_t>(id)];
    std::int64_t elements = 0;
    for (const int p : node.parameters) elements += step.parameters[static_cast<std::size_t>(p)].elements;
    for (const int child : node.children) elements += elements_in(step, child, classes);
    classes[node.class_name].count(elements, !node.children.empty());
    return elements;
}

Values wraps_of(const LiftedStep& step) {
    planner::Classes classes;
    const std::int64_t elements = elements_in(step, 0, classes);
    return planner::wraps_of(classes, elements);
}

class Tries {
  public:
    Tries(const Lifted& lifted, const Question& question)
        : lifted_(lifted), given_(question.given), only_(question.only), recorded_(job_of(lifted, {})) {}

    std::vector<Changes> all();

  private:
    const Values* given(const std::string& key) const { return planner::find_given(given_, key); }
    // The requested values, or else the recorded one and `others`.
    Values values(const std::string& key, const Values& others) const {
        if (const Values* own = given(key)) return *own;
        Values all = {text_of(recorded_, key)};
        for (const std::string& other : others) planner::add_once(all, other);
        return all;
    }
    // Whether every FSDP row uses fully_shard.
    bool of_fully_shard() const {
        const Values* layouts = given("fsdp.layout");
        if (!layouts) return recorded_.fsdp.layout == job::FsdpLayout::fsdp2;
        return std::all_of(layouts->begin(), layouts->end(),
                           [](const std::string& layout) { return layout == "fsdp2"; });
    }
    // Unsharded units exist neither in fully_shard nor in the layout "lean".
    bool may_keep_whole() const {
        const Values* layouts = given("fsdp.layout");
        if (!layouts) return recorded_.fsdp.layout == job::FsdpLayout::fsdp1;
        return std::find(layouts->begin(), layouts->end(), "fsdp1") != layouts->end();
    }
    void add(Changes changes);
    void fsdp();
    void combine(const std::string& strategy, const Values& wraps);

    const Lifted& lifted_;
    const std::vector<planner::Given>& given_;
    const bool only_;
    const job::Job recorded_;
    std::vector<Changes> out_;
};

// Omits the changes that equal the recorded settings.
void Tries::add(Changes changes) {
    Changes differing;
    for (job::Override& change : changes) {
        const bool units = change.key == "fsdp.wrap" && lifted_.units;
        if (units ? change.value.empty() : text_of(recorded_, change.key) == change.value) continue;
        differing.push_back(std::move(change));
    }
    if (std::find(out_.begin(), out_.end(), differing) == out_.end()) out_.push_back(std::move(differing));
    if (out_.size() > kMostReplays) {
        throw job::JobError(fmt::format(
            "command line: more than {} replays; give fewer values of the keys that are not in question",
            kMostReplays));
    }
}

void Tries::combine(const std::string& strategy, const Values& wraps) {
    const bool gathers = strategy != "NO_SHARD";
    // fully_shard has a fixed order of gathers in the backward, and no limiter.
    const bool prefetches = gathers && !of_fully_shard(), limits = prefetches;
    const auto only = [&](const char* key) {
        const Values* own = given(key);
        return own ? *own : Values{text_of(recorded_, key)};
    };
    std::vector<std::pair<std::string, Values>> axes = {
        {"fsdp.wrap", wraps},
        {"fsdp.backward_prefetch",
         prefetches ? values("fsdp.backward_prefetch", {"BACKWARD_PRE", "BACKWARD_POST", "NONE"})
         : gathers  ? only("fsdp.backward_prefetch")
                    : Values{text_of(recorded_, "fsdp.backward_prefetch")}},
        {"fsdp.limit_all_gathers",
         limits ? values("fsdp.limit_all_gathers", {"true", "false"}) : only("fsdp.limit_all_gathers")},
    };
    for (const planner::Given& other : given_) {
        const bool known =
            other.key == "parallel.mode" || other.key == "fsdp.sharding_strategy" ||
            std::any_of(axes.begin(), axes.end(), [&](const auto& axis) { return axis.first == other.key; });
        if (!known && !other.key.starts_with("ddp.")) axes.emplace_back(other.key, other.values);
    }
    std::vector<Changes> all = {{{"parallel.mode", "fsdp"}, {"fsdp.sharding_strategy", strategy}}};
    for (const auto& [key, key_values] : axes) planner::multiply(all, key, key_values);
    for (Changes& changes : all) add(std::move(changes));
}

void Tries::fsdp() {
    Values wraps;
    if (const Values* own = given("fsdp.wrap")) {
        wraps = *own;
    } else {
        if (lifted_.units) wraps.emplace_back();  // as recorded
        if (!lifted_.units && recorded_.parallel.mode == job::ParallelMode::fsdp)
            planner::add_once(wraps, lifted_.wrap);
        for (const std::string& wrap : wraps_of(lifted_.step)) planner::add_once(wraps, wrap);
    }
    Values all = {"FULL_SHARD", "SHARD_GRAD_OP"};
    if (may_keep_whole()) all.emplace_back("NO_SHARD");
    const Values strategies = recorded_.parallel.mode == job::ParallelMode::fsdp
                                  ? values("fsdp.sharding_strategy", all)
                              : given("fsdp.sharding_strategy") ? *given("fsdp.sharding_strategy")
                                                                : all;
    for (const std::string& strategy : strategies) combine(strategy, wraps);
}

std::vector<Changes> Tries::all() {
    for (const planner::Given& own : given_) {
        const job::Key* key = job::find_key(own.key);
        if (!key || !may_vary(*key, own.key)) {
            throw job::JobError(
                fmt::format("command line: --{}: a recorded run can be replayed under other keys of "
                            "[parallel], [fsdp] and "
                            "[ddp], under {}, and with --bandwidth or --cluster; the rest of the model, and "
                            "the precision, "
                            "are what was recorded",
                            own.key, traces::schema::joined(kOthers, ", ")));
        }
        if (own.key == "data.batch" && lifted_.batch == 0) {
            throw job::JobError(
                "command line: --data.batch: the trace does not show how many samples a batch has; record "
                "with "
                "record_shapes=True");
        }
        for (const std::string& value : own.values) {
            if (lifted_.ours || value.find("path:") == std::string::npos) continue;
            throw job::JobError(fmt::format(
                "command line: --{}={}: PyTorch's traces name modules by class and number, not by path; "
                "use module:NAME or every:K,NAME",
                own.key, value));
        }
    }
    const bool asks = std::any_of(given_.begin(), given_.end(),
                                  [](const planner::Given& g) { return g.key.starts_with("fsdp."); });
    const bool asks_ddp = std::any_of(given_.begin(), given_.end(),
                                      [](const planner::Given& g) { return g.key.starts_with("ddp."); });
    add({});
    if (only_) {
        std::vector<Changes> all = {{}};
        for (const planner::Given& own : given_) planner::multiply(all, own.key, own.values);
        for (Changes& changes : all) add(std::move(changes));
        return out_;
    }
    Values modes = {text_of(recorded_, "parallel.mode")};
    if (!asks && !asks_ddp) {
        planner::add_once(modes, "fsdp");
        // DDP keeps its parameters in fp32: a run recorded with another precision cannot predict it.
        if (recorded_.precision.param == job::Precision::fp32) planner::add_once(modes, "ddp");
    } else {
        modes = {};
        if (asks) modes.emplace_back("fsdp");
        if (asks_ddp) modes.emplace_back("ddp");
    }
    if (const Values* own = given("parallel.mode")) modes = *own;
    for (const std::string& mode : modes) {
        if (mode == "fsdp") {
            fsdp();
            continue;
        }
        std::vector<Changes> all = {{{"parallel.mode", mode}}};
        for (const planner::Given& own : given_) {
            const bool of_mode = mode == "ddp" && own.key.starts_with("ddp.");
            const bool of_all = std::find(kOthers.begin(), kOthers.end(), own.key) != kOthers.end();
            if (of_mode || of_all) planner::multiply(all, own.key, own.values);
        }
        for (Changes& changes : all) add(std::move(changes));
    }
    return out_;
}

// --- a replay ---------------------------------------------------------------------------------------------

void add_memory(const sharding::Program& program, Replay& out) {
    out.peak = program.predict().peak;
    const std::vector<std::int64_t>& units = out.peak.units;
    if (units.size() < 2) return;
    const auto most = std::max_element(units.begin() + 1, units.end());
    if (*most <= 0) return;
    out.peak_unit = program.units()[static_cast<std::size_t>(most - units.begin()) - 1].name;
    out.peak_unit_bytes = *most;
}

// The mean of the later half: step times may alternate, as the host runs one step ahead of the device.
void take_times(const std::vector<sim::SimStep>& steps, Replay& out) {
    const std::size_t first = steps.size() / 2;
    for (std::size_t s = first; s < steps.size(); ++s) {
        out.step_s += steps[s].seconds;
        out.kernel_s += steps[s].kernel_s;
        out.exposed_s += steps[s].exposed_communication_s;
    }
    const auto count = static_cast<double>(steps.size() - first);
    out.step_s /= count;
    out.kernel_s /= count;
    out.exposed_s /= count;
}

void mark_front(std::vector<Replay>& rows) {
    const auto alike = [](const Replay& a, const Replay& b) {
        return a.peak.bytes == b.peak.bytes && a.step_s == b.step_s;
    };
    for (Replay& row : rows) {
        if (!row.can_be()) continue;
        for (const Replay& other : rows) {
            if (&other == &row) break;
            if (other.can_be() && other.same_as == 0 && alike(row, other)) {
                row.same_as = other.number;
                break;
            }
        }
    }
    for (Replay& row : rows) {
        row.front = row.can_be() && row.same_as == 0 &&
                    std::none_of(rows.begin(), rows.end(), [&](const Replay& other) {
                        return other.can_be() && !alike(row, other) && other.peak.bytes <= row.peak.bytes &&
                               other.step_s <= row.step_s;
                    });
    }
}

}  // namespace

Replay replay(const Lifted& lifted, const sim::Cluster& cluster, std::vector<job::Override> changes,
              int number) {
    Replay out;
    out.number = number;
    out.changes = std::move(changes);
    try {
        out.job = job_of(lifted, out.changes);
        const sharding::Program program = program_of(lifted, out.job);
        for (const sharding::UnitInfo& unit : program.units()) out.units += unit.elements > 0;
        // In DDP only the first step has a single bucket: count those of a steady step.
        if (out.job.parallel.mode == job::ParallelMode::ddp && !program.units().empty()) {
            out.units = 0;
            for (const plan::Op& op : program.step(program.warm_up_steps()).ops)
                out.units += op.kind == plan::OpKind::collective &&
                             op.collective().operation == plan::Operation::all_reduce;
        }
        add_memory(program, out);
        for (const plan::Op& op : program.step(program.warm_up_steps()).ops)
            if (op.kind == plan::OpKind::collective) out.moved_bytes += op.bytes;
        if (lifted.times) {
            const sim::SimResult result = sim::simulate(program, cluster_for(lifted, cluster, out.job), {});
            out.reserved_bytes = result.classes.front().reserved;
            take_times(result.classes.front().steps, out);
        }
    } catch (const job::JobError& error) {
        // All settings, even the recorded ones, are passed as a command line's; the user gave few of them.
        std::string_view reason = error.what();
        if (constexpr std::string_view kLine = "command line: "; reason.starts_with(kLine))
            reason.remove_prefix(kLine.size());
        out.impossible = reason;
    } catch (const sim::ClusterError& error) {
        out.impossible = error.what();
    }
    return out;
}

Replay replay_unmodified(const Lifted& lifted) {
    return replay(lifted, lifted.cluster, {}, 0);
}

sim::Cluster asked_cluster(const Lifted& lifted, const Question& question) {
    sim::Cluster cluster = lifted.cluster;
    if (!question.cluster.empty()) {
        const sim::Cluster links = sim::load_cluster(question.cluster);
        cluster.collectives = links.collectives;
        cluster.intra = links.intra;
        cluster.inter = links.inter;
        cluster.links = links.links;
        cluster.copy = links.copy;
        cluster.devices = links.devices;
        cluster.nodes = links.nodes;
    }
    if (question.bandwidth > 0) {
        for (std::size_t o = 0; o < cluster.collectives.measured.size(); ++o) {
            auto& own = cluster.collectives.measured[o];
            if (own.bandwidth > 0) own.bandwidth = question.bandwidth;
        }
        cluster.intra.bandwidth = cluster.inter.bandwidth = question.bandwidth;
        cluster.links.bandwidth = cluster.links.node_bandwidth = {};
    }
    return cluster;
}

std::vector<std::vector<job::Override>> changes_to_try(const Lifted& lifted, const Question& question) {
    return Tries(lifted, question).all();
}

std::vector<Replay> replay_all(const Lifted& lifted, const sim::Cluster& cluster,
                               const std::vector<std::vector<job::Override>>& changes, int threads,
                               const std::atomic<bool>& stop,
                               const std::function<void(std::size_t, std::size_t)>& progress) {
    std::vector<Replay> rows(changes.size());
    planner::for_each_in_parallel(rows.size(), threads, stop, progress, [&](std::size_t i) {
        rows[i] = replay(lifted, cluster, changes[i], static_cast<int>(i) + 1);
    });
    std::erase_if(rows, [](const Replay& row) { return row.number == 0; });  // not reached before the stop
    mark_front(rows);
    return rows;
}

}  // namespace shardscope::trainer::lift
