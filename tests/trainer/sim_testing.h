// A cluster of round figures, Plans of a few operations, and the events of their simulated run.
#pragma once

#include <string>
#include <vector>

#include "trainer/sim/simulator.h"

namespace shardscope::trainer::testing {

// A kernel of 1000 operations takes 1 us, a launch 1 us, a collective 1 us plus its bytes at 1 GB/s; every
// other action of a host takes the minimum of 1 ns.
inline sim::Cluster round_cluster(int devices = 8) {
    sim::Cluster cluster;
    cluster.name = "round";
    cluster.devices = devices;
    cluster.device.name = "a device";
    cluster.device.memory = 1e9;
    cluster.device.memory_bandwidth = 1e12;
    for (sim::ClassRates& rates : cluster.device.classes) rates.flops = {1e9, 2e9, 4e9, 8e9};
    cluster.host.launch = 1e-6;
    cluster.host.flops = 1e9;
    cluster.host.memory_bandwidth = 1e9;
    cluster.copy = {2e-6, 1e9, 0.5e9, 0.25};
    cluster.collectives = {1e-6, sim::Algorithm::ring, sim::Algorithm::ring};
    cluster.intra = {0, 1e9, false};
    cluster.inter = {0, 1e9, false};
    return cluster;
}

// A cost model as a file, with every key that has no default.
inline constexpr const char* kClusterFile = R"([cluster]
name = "c"
devices = 4
[device]
name = "d"
type = "gpu"
memory = 1e9
memory_bandwidth = 1e12
kernel_latency = 0
[operators.matmul]
fp32 = 1e12
bf16 = 4e12
efficiency = [[1e3, 0.1], [1e5, 0.5]]
[operators.elementwise]
fp32 = 2e11
bandwidth_share = 0.8
[host]
operation = 0
launch = 1e-6
event = 0
allocate = 0
grow = 0
flops = 1e9
memory_bandwidth = 1e9
[copy]
latency = 0
to_device = 1e9
to_host = 1e9
pageable_share = 0.5
[collectives]
latency = 0
inside = "ring"
across = "tree"
[intra]
latency = 1e-6
bandwidth = 1e9
[inter]
latency = 1e-5
bandwidth = 1e8
shared = true
)";

// Writes Plans by hand.
struct HandPlan {
    plan::Plan plan;
    explicit HandPlan(plan::PlanKind kind = plan::PlanKind::steady) {
        plan.kind = kind;
        plan.names = {""};
        plan.events = 8;
    }
    plan::Op& op(plan::OpKind kind, plan::Stream stream, decltype(plan::Op::own) own = {}) {
        plan::Op& op = plan.ops.emplace_back();
        op.kind = kind;
        op.stream = stream;
        op.own = own;
        return op;
    }
    HandPlan& kernel(const std::string& name, std::int64_t flops,
                     plan::Stream stream = plan::Stream::compute) {
        plan::Op& op = this->op(plan::OpKind::kernel, stream, plan::KernelOp{.kernel = plan::Kernel::scale});
        op.flops = flops;
        op.name = static_cast<std::int32_t>(plan.names.size());
        plan.names.push_back(name);
        return *this;
    }
    HandPlan& collective(plan::Operation operation, std::int64_t bytes, plan::Stream stream,
                         plan::Group group = plan::Group::world) {
        op(plan::OpKind::collective, stream, plan::CollectiveOp{.operation = operation, .group = group})
            .bytes = bytes;
        return *this;
    }
    HandPlan& message(plan::Operation operation, int peer, std::int64_t bytes) {
        const plan::Stream stream =
            operation == plan::Operation::send ? plan::Stream::send : plan::Stream::receive;
        op(plan::OpKind::collective, stream,
           plan::CollectiveOp{.operation = operation, .group = plan::Group::pipeline, .peer = peer})
            .bytes = bytes;
        return *this;
    }
    HandPlan& record(plan::EventId event, plan::Stream stream) {
        op(plan::OpKind::record_event, stream, plan::EventOp{event});
        return *this;
    }
    HandPlan& wait(plan::EventId event, plan::Stream stream) {
        op(plan::OpKind::wait_event, stream, plan::EventOp{event});
        return *this;
    }
    HandPlan& host_wait(plan::EventId event) {
        op(plan::OpKind::host_wait, plan::Stream::host, plan::EventOp{event});
        return *this;
    }
    // From a file, or into it.
    HandPlan& file(int copy_kind, std::int64_t bytes) {
        const bool reads = copy_kind == traces::schema::kCopyDiskToHost;
        op(plan::OpKind::memcpy, reads ? plan::Stream::disk_read : plan::Stream::disk_write,
           plan::MemcpyOp{static_cast<std::uint8_t>(copy_kind)})
            .bytes = bytes;
        return *this;
    }
    HandPlan& allocate(std::int64_t bytes, plan::Stream stream = plan::Stream::compute,
                       plan::MemorySpace space = plan::MemorySpace::device) {
        plan::Op& op = this->op(plan::OpKind::allocate, stream);
        op.args = {{static_cast<plan::BufferId>(plan.buffers.size()), 0, bytes, 0}};
        plan.buffers.push_back({"buffer " + std::to_string(plan.buffers.size()),
                                plan::MemoryCategory::activations, space, bytes, -1, -1});
        return *this;
    }
    HandPlan& free(plan::BufferId buffer) {
        op(plan::OpKind::free, plan::Stream::host).args = {{buffer, 0, 0, 0}};
        return *this;
    }
    // Makes the most recent operation use a buffer.
    HandPlan& on(plan::BufferId buffer) {
        plan.ops.back().args.push_back({buffer, 0, 0, 0});
        return *this;
    }
};

struct Done {
    int rank_class = 0;
    std::string name;
    sim::Time start = 0, end = 0;
    bool operator==(const Done&) const = default;
};
inline void PrintTo(const Done& done, std::ostream* out) {
    *out << done.rank_class << ": " << done.name << " " << done.start << ".." << done.end;
}

// Records the device's work, ordered by its end.
class WorkList final : public sim::RunObserver {
  public:
    std::vector<Done> work;
    std::vector<Done> waits;  // waits of hosts

    void waited(int rank_class, sim::Time start, sim::Time end, plan::EventId, std::int64_t) override {
        waits.push_back({rank_class, "wait", start, end});
    }
    static std::string name_of(const plan::Plan& plan, const plan::Op& op) {
        if (op.kind == plan::OpKind::kernel) return plan.names[static_cast<std::size_t>(op.name)];
        if (op.kind == plan::OpKind::memcpy) return op.stream == plan::Stream::disk_read ? "read" : "write";
        return std::string(traces::schema::name(op.collective().operation));
    }
    void work_ended(int rank_class, const sim::StreamItem& item, sim::Time start, sim::Time end) override {
        const plan::Op& op = *item.op;
        work.push_back({rank_class, name_of(*item.plan, op), start, end});
    }
};

inline sim::Script script_of(const HandPlan& step, plan::Mesh mesh = {}, std::int64_t count = 1) {
    sim::Script script;
    script.mesh = mesh;
    script.roles.front().steps = {&step.plan};
    script.count = count;
    return script;
}

}  // namespace shardscope::trainer::testing
