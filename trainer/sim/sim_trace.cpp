#include "trainer/sim/sim_trace.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "trainer/executor/nccl_payloads.h"
#include "trainer/executor/program_rows.h"
#include "trainer/executor/trace_names.h"

namespace shardscope::trainer::sim {

namespace {

constexpr std::string_view kEngine = "sim";
constexpr std::int64_t kRowsPerCommit = 100'000;
constexpr int kMostOfOtherKinds = 8;

// A simulated rank is a process with one thread; its ids are unique.
std::int64_t pid_of(int rank) {
    return traces::schema::global_pid(rank + 1);
}
std::int64_t tid_of(int rank) {
    return traces::schema::global_tid(rank + 1, rank + 1);
}
std::int64_t correlation_of(int rank, std::int64_t number) {
    return number == 0 ? 0 : (static_cast<std::int64_t>(rank) << 32) | number;
}

const plan::Buffer& buffer_of(const plan::Plan& plan, const plan::Arg& arg) {
    return plan.buffers[static_cast<std::size_t>(arg.buffer)];
}

// Copies and memsets of a lifted trace have no buffer: the direction shows in which space the memory is.
plan::MemorySpace space_of(const plan::Plan& plan, const plan::Arg& arg, bool device_without_buffer) {
    if (arg.buffer < 0) return device_without_buffer ? plan::MemorySpace::device : plan::MemorySpace::host;
    return buffer_of(plan, arg).space;
}

}  // namespace

SimTrace::SimTrace(traces::store::EventSink& sink, const sharding::Program& program, const Cluster& cluster,
                   int full_ranks, std::int64_t samples)
    : sink_(sink),
      program_(program),
      cluster_(cluster),
      full_ranks_(full_ranks),
      samples_(samples),
      nccl_domain_(sink.intern(executor::trace_names::kNcclDomain)) {
    const job::PrecisionSection& precision = program.job().precision;
    if (precision.scales_loss()) loss_scaler_.emplace(precision);
}

template <class Row>
void SimTrace::add(const Row& row, Time at) {
    sink_.add(row);
    latest_ = std::max(latest_, at);
    if (++uncommitted_ < kRowsPerCommit) return;
    uncommitted_ = 0;
    sink_.commit();
}

// --- before the run --------------------------------------------------------------------------------------

void SimTrace::begun(const plan::Mesh& mesh, const RankClasses& ranks) {
    mesh_ = mesh;
    choose(ranks);
    const auto describe = [&](const auto& row) { sink_.add(row); };
    executor::add_configuration_rows(program_, describe);
    executor::describe_nccl_payloads(sink_, nccl_domain_);
    executor::add_group_rows(mesh_, shown_, describe);
    executor::add_module_rows(program_, describe);
    executor::add_unit_rows(program_, describe);
    describe_ranks();
}

// Chooses the ranks to show: the first ones, and representatives of classes that are not among them.
void SimTrace::choose(const RankClasses& ranks) {
    classes_.resize(ranks.classes.size());
    for (int rank = 0; rank < std::min(full_ranks_, mesh_.ranks); ++rank) shown_.push_back(rank);
    int more = 0;
    for (const RankClass& own : ranks.classes) {
        if (own.representative < full_ranks_ || ++more > kMostOfOtherKinds) continue;
        shown_.push_back(own.representative);
    }
    std::sort(shown_.begin(), shown_.end());
    for (const int rank : shown_) of(ranks.class_of[static_cast<std::size_t>(rank)]).full.push_back(rank);
}

void SimTrace::describe_ranks() {
    const auto describe = [&](const auto& row) { sink_.add(row); };
    const std::vector<sharding::MemoryPrediction> predictions = program_.predict_roles();
    for (const int rank : shown_) {
        traces::schema::RankRow row;
        row.rank = row.device = rank;
        row.global_pid = pid_of(rank);
        row.global_tid = tid_of(rank);
        row.host = fmt::format("node-{}", cluster_.node_of(rank));
        row.device_name = cluster_.device.name + " (simulated)";
        row.device_memory = static_cast<std::int64_t>(cluster_.device.memory);
        executor::set_place(mesh_, rank, row);
        row.local_rank = rank % cluster_.ranks_of_node();
        sink_.add(row);
        executor::add_prediction_rows(predictions[static_cast<std::size_t>(program_.role_of(rank))], rank,
                                      describe);
        executor::add_stream_rows(mesh_, rank, describe);
        executor::add_schedule_rows(program_, rank, describe);
        sink_.add(traces::schema::ProcessRow{pid_of(rank), rank + 1, "shardscope-train"});
        sink_.add(traces::schema::ThreadRow{tid_of(rank), fmt::format("rank {} host", rank), rank});
    }
    sink_.add(traces::schema::RunInfoRow{"device", std::string(kEngine)});
    sink_.add(traces::schema::RunInfoRow{"sim.device", cluster_.device.name});
    sink_.add(traces::schema::RunInfoRow{"sim.devices_of_a_node", std::to_string(cluster_.devices)});
    sink_.add(traces::schema::RunInfoRow{"sim.nodes", std::to_string(cluster_.node_of(mesh_.ranks - 1) + 1)});
    if (cluster_.device.price_per_hour > 0) {
        sink_.add(traces::schema::RunInfoRow{"sim.price_per_device_hour",
                                             fmt::format("{}", cluster_.device.price_per_hour)});
    }
    if (cluster_.device.type == DeviceType::gpu) {
        // The bandwidth that a device's links should have without sim.slow_link; omits links that the cluster
        // does not have.
        const auto state = [&](const char* key, double bandwidth) {
            if (bandwidth > 0) sink_.add(traces::schema::RunInfoRow{key, fmt::format("{}", bandwidth)});
        };
        const double sharers = cluster_.inter.shared ? std::max(cluster_.devices, 1) : 1;
        state("sim.intra_bandwidth", cluster_.intra.bandwidth);
        state("sim.inter_bandwidth", cluster_.inter.bandwidth / sharers);
    }
    add_links();
    sink_.add(traces::schema::RunInfoRow{"sim.ranks_shown", std::to_string(shown_.size())});
    sink_.commit();
}

// The devices of the shown ranks' nodes and the bandwidth between them, where the cluster has links of pairs.
void SimTrace::add_links() {
    const PairFigures& bandwidth = cluster_.links.bandwidth;
    if (!bandwidth.known() || cluster_.device.type != DeviceType::gpu) return;
    std::set<int> nodes;
    for (const int rank : shown_) nodes.insert(cluster_.node_of(rank));
    for (const int node : nodes) {
        const std::string host = fmt::format("node-{}", node);
        for (int a = 0; a < bandwidth.size; ++a) {
            traces::schema::DeviceRow device;
            device.host = host;
            device.kind = "gpu";
            device.number = a;
            device.name = cluster_.device.name;
            device.memory_bytes = static_cast<std::int64_t>(cluster_.device.memory);
            sink_.add(device);
            for (int b = 0; b < bandwidth.size; ++b) {
                // A pair once, unless its two directions differ.
                if (a == b || (a > b && bandwidth.of(a, b) == bandwidth.of(b, a))) continue;
                traces::schema::TopologyRow link;
                link.host = link.to_host = host;
                link.from = fmt::format("GPU{}", a);
                link.to = fmt::format("GPU{}", b);
                link.bytes_per_second = bandwidth.of(a, b);
                link.source = "cluster";
                sink_.add(link);
            }
        }
    }
}

// Describes what each class of ranks did.
void SimTrace::summarise(const SimResult& result) {
    for (const SimRanks& own : result.classes) {
        double seconds = 0, exposed = 0;
        for (const SimStep& step : own.steps) {
            seconds += step.seconds;
            exposed += step.exposed_communication_s;
        }
        const auto steps = static_cast<double>(std::max<std::size_t>(own.steps.size(), 1));
        sink_.add(traces::schema::RunInfoRow{
            fmt::format("sim.ranks_as_rank_{}", own.representative),
            fmt::format(
                "{} of {} ranks: peak {} bytes, average step {:.1f} µs, exposed communication {:.1f} µs",
                own.ranks, mesh_.ranks, own.peak.bytes, seconds / steps * 1e6, exposed / steps * 1e6)});
    }
    sink_.commit();
}

// --- the host's thread -----------------------------------------------------------------------------------

void SimTrace::range_opened(int rank_class, Time at, std::string_view name, int module) {
    if (of(rank_class).full.empty()) return;
    of(rank_class).open.push_back({at, sink_.intern(name), module, nullptr});
}

void SimTrace::collective_opened(int rank_class, Time at, const plan::Op& op) {
    if (of(rank_class).full.empty()) return;
    of(rank_class)
        .open.push_back(
            {at, sink_.intern(executor::trace_names::collective_call(op.collective().operation)), -1, &op});
}

void SimTrace::range_closed(int rank_class, Time at) {
    Class& own = of(rank_class);
    if (own.full.empty()) return;
    const Range range = own.open.back();
    own.open.pop_back();
    traces::schema::RangeRow row;
    row.start = range.start;
    row.end = at;
    row.text = range.name;
    row.module = range.module;
    for (const int rank : own.full) {
        row.global_tid = tid_of(rank);
        if (const plan::Op* op = range.collective) {
            row.domain = nccl_domain_;
            const plan::CollectiveOp& call = op->collective();
            const executor::NcclPayload payload = executor::nccl_payload(
                call.operation, mesh_.id(call.group, rank), mesh_.size(call.group), op->bytes, call.divisor);
            if (payload.schema != 0) {
                row.binary = traces::schema::binary_payload(
                    payload.schema, {reinterpret_cast<const char*>(&payload.value), payload.size});
            }
        }
        add(row, at);
    }
}

void SimTrace::runtime_call(int rank_class, Time start, Time end,
                            executor::trace_names::RuntimeFunction function, std::int64_t correlation) {
    traces::schema::RuntimeRow row;
    row.start = start;
    row.end = end;
    row.name = sink_.intern(executor::trace_names::name(function));
    for (const int rank : of(rank_class).full) {
        row.global_tid = tid_of(rank);
        row.correlation = correlation_of(rank, correlation);
        add(row, end);
    }
}

void SimTrace::waited(int rank_class, Time start, Time end, plan::EventId event, std::int64_t correlation) {
    runtime_call(rank_class, start, end, executor::trace_names::RuntimeFunction::event_synchronize,
                 correlation);
    traces::schema::SynchronizationRow row;
    row.start = start;
    row.end = end;
    row.event_id = event;
    for (const int rank : of(rank_class).full) {
        row.device = rank;
        row.global_pid = pid_of(rank);
        row.correlation = correlation_of(rank, correlation);
        add(row, end);
    }
}

void SimTrace::allocated(int rank_class, Time at, const plan::Plan& plan, const plan::Op& op,
                         const executor::MemoryBlock& block) {
    memory(rank_class, at, plan, op, block, true);
}

void SimTrace::freed(int rank_class, Time at, const plan::Plan& plan, const plan::Op& op,
                     const executor::MemoryBlock& block) {
    memory(rank_class, at, plan, op, block, false);
}

void SimTrace::memory(int rank_class, Time at, const plan::Plan& plan, const plan::Op& op,
                      const executor::MemoryBlock& block, bool allocation) {
    if (of(rank_class).full.empty()) return;
    const plan::Buffer& buffer = buffer_of(plan, op.args[0]);
    traces::schema::MemoryRow row;
    row.time = at;
    row.address = reinterpret_cast<std::uintptr_t>(block.data);
    row.bytes = allocation ? buffer.bytes : -buffer.bytes;
    row.category = buffer.category;
    row.space = buffer.space;
    row.phase = op.phase;
    row.unit = buffer.unit;
    row.module = buffer.module;
    row.stream = static_cast<int>(op.stream);
    row.name = sink_.intern(buffer.name);
    for (const int rank : of(rank_class).full) {
        row.rank = rank;
        add(row, at);
    }
}

void SimTrace::memory_counts(int rank_class, Time at, std::int64_t active, std::int64_t reserved) {
    for (const auto& [name, bytes] : {std::pair(executor::trace_names::kActiveBytes, active),
                                      std::pair(executor::trace_names::kReservedBytes, reserved)}) {
        if (bytes < 0) continue;
        for (const int rank : of(rank_class).full)
            add(traces::schema::CounterRow{at, rank, sink_.intern(name), static_cast<double>(bytes)}, at);
    }
}

void SimTrace::step_ended(int rank_class, std::int64_t step, Time start, Time end,
                          const executor::StepMemory& memory) {
    for (const int rank : of(rank_class).full)
        add(traces::schema::StepRow{rank, step, start, end, tid_of(rank)}, end);
    EndedStep& ended = ended_steps_[step];
    ended = {ended.classes + 1,
             std::max(ended.start, start),
             std::max(ended.end, end),
             {std::max(ended.memory.allocated, memory.allocated), std::max(ended.memory.peak, memory.peak)}};
    if (ended.classes < classes_.size()) return;
    const executor::MetricPlace place = {step, (step + 1) * program_.job().samples_per_step(), ended.end};
    const Time from = step_end_ < 0 ? ended.start : step_end_;
    std::optional<double> epoch;
    if (samples_ > 0) epoch = static_cast<double>(place.sample) / static_cast<double>(samples_);
    executor::StepMetrics(program_.job(), step, static_cast<double>(ended.end - from) * 1e-9, ended.memory,
                          std::nullopt, epoch)
        .add_to(sink_, place);
    if (loss_scaler_) executor::add_loss_scale(sink_, place, loss_scaler_->update(step, false));
    step_end_ = ended.end;
    ended_steps_.erase(step);
}

// --- the device ------------------------------------------------------------------------------------------

void SimTrace::work_ended(int rank_class, const StreamItem& item, Time start, Time end) {
    const plan::Op& op = *item.op;
    const auto fill = [&](auto& row, int rank) {
        row.start = start;
        row.end = end;
        row.device = rank;
        row.stream = static_cast<int>(op.stream);
        row.correlation = correlation_of(rank, item.correlation);
        row.global_pid = pid_of(rank);
        add(row, end);
    };
    for (const int rank : of(rank_class).full) {
        if (op.kind == plan::OpKind::memcpy) {
            traces::schema::MemcpyRow row;
            row.bytes = op.bytes;
            row.copy_kind = op.copy_kind();
            row.src_kind = executor::trace_names::memory_kind(
                space_of(*item.plan, op.args[1], op.copy_kind() != traces::schema::kCopyHostToDevice));
            row.dst_kind = executor::trace_names::memory_kind(
                space_of(*item.plan, op.args[0], op.copy_kind() != traces::schema::kCopyDeviceToHost));
            fill(row, rank);
        } else if (op.kind == plan::OpKind::memset) {
            traces::schema::MemsetRow row;
            row.bytes = op.bytes;
            row.mem_kind = executor::trace_names::memory_kind(space_of(*item.plan, op.args[0], true));
            fill(row, rank);
        } else {
            traces::schema::KernelRow row;
            row.short_name = row.demangled_name =
                op.kind == plan::OpKind::collective
                    ? sink_.intern(
                          executor::trace_names::collective_kernel(op.collective().operation, kEngine))
                    : sink_.intern(item.plan->names[static_cast<std::size_t>(op.name)]);
            fill(row, rank);
            if (op.kind == plan::OpKind::collective) collective(rank, item);
        }
    }
}

void SimTrace::collective(int rank, const StreamItem& item) {
    const plan::Op& op = *item.op;
    traces::schema::CollectiveRow row;
    row.rank = rank;
    row.correlation = correlation_of(rank, item.correlation);
    row.operation = op.collective().operation;
    row.bytes = op.bytes;
    row.padding = op.collective().padding;
    const plan::CollectiveOp& own = op.collective();
    row.group = format_as(is_message(op) ? channel_of(mesh_, rank, own) : mesh_.id(own.group, rank));
    row.group_size = is_message(op) ? 2 : mesh_.size(own.group);
    row.sequence = item.sequence;
    row.unit = op.unit;
    row.phase = op.phase;
    sink_.add(row);
}

}  // namespace shardscope::trainer::sim
