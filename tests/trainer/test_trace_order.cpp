// The Plan's decisions as the trace of a run shows them: the order in which units are gathered and freed, on
// which stream, the limiter's waits, overlap, and where offloaded parameters are.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "trace_testing.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using traces::store::DeviceKind;
using traces::store::Trace;

job::Job linears(int units, job::BackwardPrefetch prefetch = job::BackwardPrefetch::pre) {
    job::Job job = testing::with_wrap(testing::mlp_job(units, 16, 4, 4), "module:Linear");
    job.fsdp.backward_prefetch = prefetch;
    job.run.steps = 4;
    return job;
}

struct Interval {
    std::int64_t start = 0, end = 0;
};

Interval step_of(const Trace& trace, int rank, std::int64_t number) {
    for (const traces::store::Step& step : trace.steps) {
        if (step.rank.value == rank && step.number == number) return {step.start, step.end};
    }
    return {};
}

// Host order of a step of rank 0 in the trace: collectives by their call, frees of gathered parameters.
std::string host_order(const Trace& trace, std::int64_t step) {
    struct Event {
        std::int64_t time;
        std::string what;
    };
    std::vector<Event> events;
    const Interval in = step_of(trace, 0, step);
    for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        if (trace.collectives.rank[i] != 0) continue;
        const auto event = static_cast<std::size_t>(trace.collectives.event[i]);
        const auto launch = static_cast<std::size_t>(trace.device.launch[event]);
        const std::string unit = std::to_string(trace.collectives.unit[i]);
        const bool gather = trace.collectives.operation[i] == plan::Operation::all_gather;
        events.push_back({trace.runtime.start[launch], (gather ? "AG" : "RS") + unit});
    }
    for (std::size_t i = 0; i < trace.memory.size(); ++i) {
        if (trace.memory.rank[i] != 0 || trace.memory.bytes[i] > 0 ||
            trace.memory.category[i] != plan::MemoryCategory::unsharded_parameters)
            continue;
        events.push_back({trace.memory.time[i], "free" + std::to_string(trace.memory.unit[i])});
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.time < b.time; });
    std::string out;
    for (const Event& event : events) {
        if (event.time < in.start || event.time >= in.end) continue;
        out += (out.empty() ? "" : " ") + event.what;
    }
    return out;
}

constexpr const char* kForward = "AG0 free0 AG1 free1 AG2 free2 AG3 free3 ";

TEST(TraceOrder, IsThatOfThePlan) {
    EXPECT_EQ(host_order(*testing::record(linears(4, job::BackwardPrefetch::pre)), 2),
              std::string(kForward) + "AG3 AG2 free3 RS3 AG1 free2 RS2 AG0 free1 RS1 free0 RS0");
    EXPECT_EQ(host_order(*testing::record(linears(4, job::BackwardPrefetch::post)), 2),
              std::string(kForward) + "AG3 free3 AG2 RS3 free2 AG1 RS2 free1 AG0 RS1 free0 RS0");
    EXPECT_EQ(host_order(*testing::record(linears(4, job::BackwardPrefetch::none)), 2),
              std::string(kForward) + "AG3 free3 RS3 AG2 free2 RS2 AG1 free1 RS1 AG0 free0 RS0");
    job::Job job = linears(4);
    job.fsdp.sharding_strategy = job::ShardingStrategy::shard_grad_op;
    EXPECT_EQ(host_order(*testing::record(job), 2),
              "AG0 AG1 AG2 AG3 free3 RS3 free2 RS2 free1 RS1 free0 RS0");
    job = testing::with_wrap(job, "root");
    job.fsdp.sharding_strategy = job::ShardingStrategy::full_shard;
    EXPECT_EQ(host_order(*testing::record(job), 2), "AG0 free0 RS0");
}

TEST(TraceOrder, GathersAndReductionsAreOnTheirStreams) {
    const auto trace = testing::record(linears(4));
    for (std::size_t i = 0; i < trace->collectives.size(); ++i) {
        if (trace->collectives.phase[i] == plan::Phase::setup) continue;
        const auto event = static_cast<std::size_t>(trace->collectives.event[i]);
        const std::string& stream = trace->streams[trace->device.stream[event]].name;
        const bool gather = trace->collectives.operation[i] == plan::Operation::all_gather;
        EXPECT_EQ(stream, gather ? "unshard" : "post_backward");
    }
}

// The FSDP unit whose module's range surrounds this one, or is this one; -1 if none.
int unit_of_range(const Trace& trace, std::int32_t range) {
    for (; range >= 0; range = trace.ranges.parent[static_cast<std::size_t>(range)]) {
        const std::int32_t module = trace.ranges.module[static_cast<std::size_t>(range)];
        for (const traces::schema::ModuleRow& row : trace.modules) {
            if (row.id == module && row.unit >= 0) return row.unit;
        }
    }
    return -1;
}

// A gather may run as soon as the host has issued it, but not before the memory that it writes is free on the
// device: at most three units are gathered or have a kernel that has not ended.
TEST(TraceOrder, TheLimiterLetsThreeUnitsBeOnTheDevice) {
    const auto trace = testing::record(linears(10));
    const auto limiter = trace->strings.find("FullyShardedDataParallel.rate_limiter");
    ASSERT_TRUE(limiter.has_value());
    std::size_t waits = 0, synchronized = 0;
    for (std::size_t i = 0; i < trace->ranges.size(); ++i) waits += trace->ranges.name[i] == *limiter;
    for (std::size_t i = 0; i < trace->runtime.size(); ++i) {
        const std::int32_t range = trace->runtime.range[i];
        if (range < 0 || trace->ranges.name[static_cast<std::size_t>(range)] != *limiter) continue;
        EXPECT_EQ(trace->strings[trace->runtime.name[i]], "cudaEventSynchronize");
        ++synchronized;
    }
    EXPECT_GT(waits, 4U * 4U * 10U) << "4 ranks, 4 steps, almost every of the 20 gathers";
    EXPECT_EQ(synchronized, waits);
    for (int rank = 0; rank < 4; ++rank) {
        // Each gather of a unit: its memory allocated and freed by the host; on the device, the start of its
        // gather and the end of the last kernel of its module that was launched in between.
        struct Use {
            std::int64_t allocated = 0, freed = 0, gathered = 0, used = 0;
            int unit = -1;
        };
        std::vector<Use> uses;
        std::map<int, std::size_t> open;
        for (std::size_t i = 0; i < trace->memory.size(); ++i) {
            if (trace->memory.rank[i] != rank ||
                trace->memory.category[i] != plan::MemoryCategory::unsharded_parameters)
                continue;
            const int unit = trace->memory.unit[i];
            if (trace->memory.bytes[i] > 0) {
                open[unit] = uses.size();
                uses.push_back({.allocated = trace->memory.time[i], .unit = unit});
            } else {
                uses[open[unit]].freed = trace->memory.time[i];
            }
        }
        for (std::size_t e = 0; e < trace->device.size(); ++e) {
            if (trace->device.rank[e] != rank || trace->device.launch[e] < 0) continue;
            const auto launch = static_cast<std::size_t>(trace->device.launch[e]);
            const std::int32_t collective = trace->device.collective[e];
            int unit = -1;
            bool gather = false;
            if (collective >= 0) {
                const auto c = static_cast<std::size_t>(collective);
                gather = trace->collectives.operation[c] == plan::Operation::all_gather;
                unit = gather ? trace->collectives.unit[c] : -1;
            } else {
                unit = unit_of_range(*trace, trace->runtime.range[launch]);
            }
            for (Use& use : uses) {
                if (use.unit != unit || trace->runtime.start[launch] < use.allocated ||
                    trace->runtime.start[launch] >= use.freed)
                    continue;
                if (gather) {
                    use.gathered = trace->device.start[e];
                } else {
                    use.used = std::max(use.used, trace->device.end[e]);
                }
            }
        }
        EXPECT_EQ(uses.size(), 4U * 20U) << "4 steps, 10 units, forward and backward";
        std::size_t most = 0;
        for (const Use& use : uses) {
            EXPECT_GT(use.used, use.gathered) << "a kernel used what was gathered";
            std::size_t on_host = 0, on_device = 0;
            for (const Use& other : uses) {
                on_host += other.allocated <= use.allocated && use.allocated < other.freed;
                on_device += other.gathered <= use.gathered && use.gathered < other.used;
            }
            EXPECT_LE(on_host, 2U);
            EXPECT_LE(on_device, 3U);
            most = std::max(most, on_host);
        }
        EXPECT_EQ(most, 2U) << "prefetch does hold two";
    }
}

// Offloaded shards are copied to the device on a stream of their own, and gradients back.
TEST(TraceOrder, OffloadCopiesShardsInAndGradientsOut) {
    job::Job job = linears(4);
    job.fsdp.cpu_offload = true;
    const auto trace = testing::record(job);
    std::map<std::string, int> copies;
    const Interval in = step_of(*trace, 0, 2);
    for (std::size_t i = 0; i < trace->device.size(); ++i) {
        if (trace->device.kind[i] != DeviceKind::memcpy || trace->device.rank[i] != 0) continue;
        const std::int32_t launch = trace->device.launch[i];
        ASSERT_GE(launch, 0);
        const std::int64_t issued = trace->runtime.start[static_cast<std::size_t>(launch)];
        if (issued < in.start || issued >= in.end) continue;
        ++copies[trace->streams[trace->device.stream[i]].name + " " +
                 std::string(trace->strings[trace->device.name[i]])];
    }
    EXPECT_EQ(copies["pre_unshard Memcpy HtoD"], 8) << "forward and backward of 4 units";
    EXPECT_EQ(copies["post_backward Memcpy DtoH"], 4);
    EXPECT_EQ(copies["compute Memcpy HtoD"], 2) << "input and target";
    std::int64_t live = 0;
    for (std::size_t i = 0; i < trace->memory.size(); ++i) {
        if (trace->memory.rank[i] != 0 || trace->memory.space[i] != plan::MemorySpace::device ||
            trace->memory.category[i] != plan::MemoryCategory::parameters)
            continue;
        live += trace->memory.bytes[i];
        EXPECT_LE(live, (16 * 16 + 16) * 4 / 4) << "one shard at a time";
    }
    EXPECT_EQ(live, 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
