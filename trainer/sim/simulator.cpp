#include "trainer/sim/simulator.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/sim/host_walk.h"
#include "trainer/sim/step_times.h"

namespace shardscope::trainer::sim {

namespace {

// After this many consecutive steps of equal duration, the following ones are assumed to be equal.
constexpr std::size_t kEqualSteps = 3;
constexpr double kEqual = 1e-6;  // relative: core shares do not divide into whole nanoseconds evenly

void check_ranks(const plan::Mesh& mesh, const Cluster& cluster, const SimOptions& options) {
    const int sharing = cluster.ranks_per_device;
    if (sharing > 1 && cluster.device.cores > 0) {
        throw ClusterError(fmt::format(
            "run.ranks_per_device: the ranks of a node of the cluster {} share its cores, however many they "
            "are; omit the key, or use a sim.cluster with GPUs",
            cluster.name));
    }
    if (cluster.nodes > 0 && mesh.ranks > cluster.nodes * cluster.ranks_of_node()) {
        throw ClusterError(
            fmt::format("run.ranks: {} ranks{} do not fit the {} device{} of the cluster {} ({} node{} of "
                        "{}); use fewer, or another sim.cluster",
                        mesh.ranks, sharing > 1 ? fmt::format(", {} on each,", sharing) : "",
                        cluster.nodes * cluster.devices, cluster.nodes * cluster.devices == 1 ? "" : "s",
                        cluster.name, cluster.nodes, cluster.nodes == 1 ? "" : "s", cluster.devices));
    }
    const int nodes = cluster.node_of(mesh.ranks - 1) + 1;
    for (const job::SlowLink& slow : options.slow_links) {
        if (slow.node < nodes) continue;
        throw ClusterError(fmt::format(
            "sim.slow_link: there is no node {}; the {} ranks fill nodes 0 to {} of the cluster {}",
            slow.node, mesh.ranks, nodes - 1, cluster.name));
    }
    for (const job::SlowRank& slow : options.slow_ranks) {
        if (slow.rank >= mesh.ranks)
            throw ClusterError(fmt::format("sim.slow_rank: there is no rank {}", slow.rank));
    }
}

// The cores of a processor that the job's workers may use.
SharedCores cores_of(const Script& script, const Cluster& cluster) {
    SharedCores cores{cluster.device.cores, cluster.device.busy_share,
                      static_cast<Time>(std::llround(cluster.device.wake * 1e9))};
    if (cores.count > 0 && script.workers > 0) cores.count = std::min(cores.count, script.workers);
    return cores;
}

class Simulation final : public StreamListener {
  public:
    Simulation(const Script& script, const Cluster& cluster, const SimOptions& options, RunObserver* observer)
        : script_(script),
          ranks_(classify(script.mesh, cluster, options.slow_ranks, options.slow_links)),
          costs_(cluster, script.tf32, cluster.sharers(script.mesh.ranks)),
          device_(ranks_, cores_of(script, cluster), *this),
          walk_{script,
                cluster,
                ranks_,
                costs_,
                device_,
                observer ? *observer : none_,
                NodeMemory(ranks_, cluster),
                options.memory_limit,
                options.memory_place,
                options.memory_remedy,
                script.count},
          every_step_(options.every_step),
          times_(ranks_.classes.size()) {
        walk_.observer.begun(script.mesh, ranks_);
        for (std::size_t c = 0; c < ranks_.classes.size(); ++c)
            hosts_.emplace_back(walk_, static_cast<int>(c));
    }

    SimResult run() {
        while (!ended()) advance();
        return result();
    }

    void ended(int rank_class, const StreamItem& item, Time start, Time end) override {
        const RoleScript& role =
            script_.of(ranks_.classes[static_cast<std::size_t>(rank_class)].representative);
        if (item.plan != role.setup && item.plan != role.finish)
            times_[static_cast<std::size_t>(rank_class)].add(item, start, end);
        walk_.observer.work_ended(rank_class, item, start, end);
    }

  private:
    bool ended() const {
        return std::all_of(hosts_.begin(), hosts_.end(), [](const HostWalk& host) { return host.ended(); });
    }
    void advance();
    void settle();
    bool repeats(const HostWalk& host) const;
    double utilization() const;
    SimResult result();

    const Script& script_;
    const RankClasses ranks_;
    const Costs costs_;
    VirtualDevice device_;
    RunObserver none_;
    Walk walk_;
    const bool every_step_;
    std::deque<HostWalk> hosts_;  // by class; a deque, as elements must not move
    std::vector<StepTimes> times_;
};

// Advances the device to its next completion, or the earliest host for as long as it stays the first.
void Simulation::advance() {
    HostWalk* first = nullptr;
    Time others = kNever;  // the earliest time of any other host
    for (HostWalk& host : hosts_) {
        if (!first || host.ready() < first->ready()) {
            if (first) others = std::min(others, first->ready());
            first = &host;
        } else {
            others = std::min(others, host.ready());
        }
    }
    if (device_.next() <= first->ready()) {
        if (device_.next() == kNever) throw std::logic_error("the simulated ranks wait for each other");
        device_.complete();
        for (HostWalk& host : hosts_) host.look();
        return;
    }
    while (first->ready() <= others && first->ready() < device_.next()) {
        device_.advance(first->ready());
        const std::int64_t begun = first->steps_begun();
        first->go_on();
        if (first->steps_begun() != begun && !every_step_) settle();
    }
}

// Ends the run once its steps repeat, after the steps that some rank has already begun.
void Simulation::settle() {
    std::int64_t begun = 0;
    for (const HostWalk& host : hosts_) {
        if (!repeats(host)) return;
        begun = std::max(begun, host.steps_begun());
    }
    walk_.steps = std::min(walk_.steps, begun);
}

bool Simulation::repeats(const HostWalk& host) const {
    const std::vector<HostWalk::Step>& steps = host.steps();
    const std::size_t cycle = host.role().cycle;
    if (steps.size() < host.role().warm_up() + cycle * (kEqualSteps + 1)) return false;
    const auto period = [&](std::size_t step) {
        return static_cast<double>(steps[step].end - steps[step].start);
    };
    for (std::size_t step = steps.size() - cycle * kEqualSteps; step < steps.size(); ++step) {
        const double last =
            period(steps.size() - cycle + (step - (steps.size() - cycle * kEqualSteps)) % cycle);
        if (std::abs(period(step) - last) > last * kEqual + 1) return false;
    }
    return true;
}

// Of as many of the last steps as a cycle has, if there are as many.
SimStep mean_of_last(const std::vector<SimStep>& steps, std::size_t cycle) {
    const std::size_t count = std::min(cycle, steps.size());
    SimStep mean;
    for (auto step = steps.end() - static_cast<std::ptrdiff_t>(count); step != steps.end(); ++step) {
        const auto add = [&](double SimStep::*figure) {
            mean.*figure += (*step).*figure / static_cast<double>(count);
        };
        for (const auto figure : {&SimStep::seconds, &SimStep::kernel_s, &SimStep::copy_s,
                                  &SimStep::communication_s, &SimStep::exposed_communication_s})
            add(figure);
        mean.peak_bytes = std::max(mean.peak_bytes, step->peak_bytes);
    }
    return mean;
}

// The share of the last steps' time in which a kernel of the devices' ranks runs, mean over the devices.
double Simulation::utilization() const {
    double busy = 0, devices = 0;
    for (const std::vector<int>& on_device : ranks_.devices) {
        traces::analysis::Interval last{kNever, 0};
        std::vector<traces::analysis::Interval> kernels;
        for (const int c : on_device) {
            const StepTimes& own = times_[static_cast<std::size_t>(c)];
            const traces::analysis::Interval steps =
                own.last(hosts_[static_cast<std::size_t>(c)].role().cycle);
            last = {std::min(last.start, steps.start), std::max(last.end, steps.end)};
            kernels.insert(kernels.end(), own.kernels().begin(), own.kernels().end());
        }
        if (last.length() <= 0) continue;
        const RankClass& any = ranks_.classes[static_cast<std::size_t>(on_device.front())];
        const double alike = static_cast<double>(any.ranks) / any.beside;
        const auto ran =
            traces::analysis::length_within(traces::analysis::make_union(std::move(kernels)), last);
        busy += alike * static_cast<double>(ran) / static_cast<double>(last.length());
        devices += alike;
    }
    return devices > 0 ? busy / devices : 0;
}

SimResult Simulation::result() {
    SimResult result;
    result.class_of = ranks_.class_of;
    result.steps = script_.count;
    double all_exposed = 0;
    for (std::size_t c = 0; c < hosts_.size(); ++c) {
        const HostWalk& host = hosts_[c];
        SimRanks& out = result.classes.emplace_back();
        out.representative = ranks_.classes[c].representative;
        out.ranks = ranks_.classes[c].ranks;
        out.peak = host.peak();
        out.active = host.allocator().peak_active_bytes(plan::MemorySpace::device);
        out.reserved = host.allocator().peak_reserved_bytes(plan::MemorySpace::device);
        const Time begin = host.steps().empty() ? device_.now() : host.steps().front().start;
        out.steps = times_[c].steps(host.steps(), begin);
        out.exposures = times_[c].exposures();
        out.exposed_by_group = times_[c].exposed_by_group();
        if (out.steps.empty()) continue;
        out.steady = mean_of_last(out.steps, host.role().cycle);
        double seconds = 0, exposed = 0;
        for (const SimStep& step : out.steps) {
            seconds += step.seconds;
            exposed += step.exposed_communication_s;
        }
        const auto beyond = static_cast<double>(script_.count - std::ssize(out.steps));
        seconds += beyond * out.steady.seconds;
        exposed += beyond * out.steady.exposed_communication_s;
        if (c == 0) {
            result.seconds = seconds;
            result.set_up_s = static_cast<double>(begin) * 1e-9;
        }
        all_exposed += exposed / static_cast<double>(script_.count) * out.ranks;
    }
    result.average_step_s = script_.count > 0 ? result.seconds / static_cast<double>(script_.count) : 0;
    result.exposed_communication_s = all_exposed / script_.mesh.ranks;
    result.utilization = utilization();
    return result;
}

}  // namespace

SimResult simulate(const Script& script, const Cluster& cluster, const SimOptions& options,
                   RunObserver* observer) {
    check_ranks(script.mesh, cluster, options);
    return Simulation(script, cluster, options, observer).run();
}

SimResult simulate(const sharding::Program& program, const Cluster& cluster, const SimOptions& options,
                   RunObserver* observer) {
    return simulate(script_of(program), cluster, options, observer);
}

Script script_of(const sharding::Program& program) {
    const job::Job& job = program.job();
    Script script;
    script.mesh = program.mesh();
    script.roles.clear();
    for (int r = 0; r < program.roles(); ++r) {
        const sharding::Program& role = program.role(r);
        RoleScript& own = script.roles.emplace_back();
        own.setup = &role.setup();
        own.cycle = role.cycle();
        for (std::size_t s = 0; s < role.warm_up_steps() + own.cycle; ++s) own.steps.push_back(&role.step(s));
        own.finish = &role.finish();
    }
    script.count = job.run.steps;
    script.batches_ahead = job.data.workers > 0;
    script.tf32 = job.precision.tf32;
    script.workers = job.run.processes > 1 ? 0 : job.run.workers;  // each process has its own workers
    for (const sharding::UnitInfo& unit : program.units()) script.unit_names.push_back(unit.name);
    return script;
}

Cluster load_cluster(const job::Job& job) {
    Cluster cluster = load_cluster(job.sim.cluster);
    cluster.ranks_per_device = job.run.ranks_per_device;
    return cluster;
}

job::Job placed_on(job::Job job, const Cluster& cluster) {
    if (job.model.attention == job::AttentionKind::automatic)
        job.model.attention = automatic_attention(job.model, cluster.device.type == DeviceType::gpu);
    return job;
}

SimOptions options_of(const job::Job& job, const Cluster& cluster) {
    SimOptions options;
    options.slow_ranks = job.sim.slow_ranks;
    options.slow_links = job.sim.slow_links;
    options.memory_limit = job.run.memory_limit;
    options.memory_place = fmt::format("into the {} bytes of run.memory_limit", job.run.memory_limit);
    options.memory_remedy = "raise run.memory_limit, or ";
    const auto memory = static_cast<std::int64_t>(cluster.device.memory);
    const std::int64_t reserve = job.run.memory_reserve >= 0
                                     ? job.run.memory_reserve
                                     : static_cast<std::int64_t>(cluster.device.reserve);
    // Each rank is a process with a context of its own.
    const int sharing = cluster.ranks_per_device;
    const std::int64_t room = std::max<std::int64_t>(memory / sharing - reserve, 1);
    if (options.memory_limit == 0 || options.memory_limit > room) {
        options.memory_limit = room;
        options.memory_place =
            fmt::format("into the {} bytes {}of a device of the cluster {}", memory / sharing,
                        sharing > 1 ? fmt::format("that each of {} ranks has ", sharing) : "", cluster.name);
        if (reserve > 0) {
            options.memory_place += fmt::format(
                " less a reserve of {} ({})", reserve,
                job.run.memory_reserve >= 0 ? "run.memory_reserve" : "device.reserve, an estimate");
        }
        options.memory_remedy = sharing > 1
                                    ? "lower run.ranks_per_device, choose a sim.cluster with more, or "
                                    : "choose a sim.cluster with more, or ";
    }
    return options;
}

}  // namespace shardscope::trainer::sim
