// A simulated run's trace, read like any other: complete, with the run's own figures in every analysis.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan_jobs.h"
#include "traces/analysis/communication/axes.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/summary.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"
#include "trainer/job/learning_rate.h"
#include "trainer/sim/sim_trace.h"

namespace shardscope::trainer::sim {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Simulated {
    SimResult result;
    std::unique_ptr<traces::store::Trace> trace;
};

Simulated simulate(const job::Job& job, int shown, const char* name = "h100_ib", std::int64_t samples = 0) {
    const Cluster cluster = load_cluster(name);
    const sharding::Program program(placed_on(job, cluster));
    traces::store::ColumnSink sink;
    SimTrace trace(sink, program, cluster, shown, samples);
    SimOptions options = options_of(job, cluster);
    options.every_step = true;
    Simulated simulated{simulate(program, cluster, options, &trace), nullptr};
    trace.summarise(simulated.result);
    simulated.trace = sink.take();
    return simulated;
}

job::Job job_of(int ranks) {
    job::Job job = testing::with_wrap(testing::mlp_job(4, 1024, 512, ranks), "module:Linear");
    job.run.device = job::DeviceKind::sim;
    job.run.steps = 4;
    return job;
}

TEST(SimTrace, IsCompleteAndAgreesWithTheSimulation) {
    const Simulated simulated = simulate(job_of(8), 8);
    const traces::store::Trace& trace = *simulated.trace;
    EXPECT_THAT(traces::analysis::check_trace(trace), ElementsAre());
    const traces::analysis::ExecutionSummary summary = traces::analysis::summarize(trace);
    ASSERT_EQ(summary.ranks.size(), 8u);
    const auto& steps = simulated.result.of(0).steps;
    double seconds = 0, exposed = 0;
    for (const SimStep& step : steps) {
        seconds += step.seconds / 4;
        exposed += step.exposed_communication_s / 4;
    }
    EXPECT_EQ(summary.ranks[3].steps.size(), 4u);
    // The first window of the analysis begins with the end of set-up's device work, slightly before the step.
    EXPECT_NEAR(summary.ranks[3].average_step_us, seconds * 1e6, 0.01 * seconds * 1e6);
    const traces::analysis::OverlapReport overlap = traces::analysis::overlap_report(trace);
    EXPECT_NEAR(overlap.ranks[3].mean_us(overlap.ranks[3].sum.exposed_communication), exposed * 1e6, 1e-3);
    const traces::analysis::MemoryReport memory = traces::analysis::memory_report(trace);
    EXPECT_EQ(memory.ranks[3].peak_bytes, simulated.result.of(3).peak.bytes);
}

TEST(SimTrace, HasTheMetricsOfEveryStepThatNeedNoData) {
    job::Job job = job_of(8);
    job.optimizer.warmup_steps = 2;
    const Simulated simulated = simulate(job, 2);
    std::map<std::string, std::vector<double>> values;
    for (const traces::schema::MetricRow& row : simulated.trace->metrics) {
        values[std::string(simulated.trace->strings[row.name])].push_back(row.value);
        EXPECT_EQ(row.sample, (row.step + 1) * 8 * job.data.batch);
        EXPECT_EQ(row.rank, -1);
    }
    EXPECT_EQ(values.size(), 4u);
    for (const auto& [name, of_steps] : values) EXPECT_EQ(of_steps.size(), 4u) << name;
    for (std::int64_t step = 0; step < 4; ++step) {
        EXPECT_EQ(values["learning_rate"].at(static_cast<std::size_t>(step)),
                  job::learning_rate(job.optimizer, job::batch_factor(job), job.run.steps, step));
    }
    EXPECT_EQ(values["peak_bytes"].back(), static_cast<double>(simulated.result.of(0).peak.bytes));
    EXPECT_LT(values["allocated_bytes"].back(), values["peak_bytes"].back());
    const double seconds = simulated.result.of(0).steps.at(2).seconds;
    EXPECT_NEAR(values["samples_per_second"].at(2), 8.0 * job.data.batch / seconds,
                0.5 * values["samples_per_second"].at(2));
}

TEST(SimTrace, HasTheEpochOfDataThatIsCounted) {
    const job::Job job = job_of(8);
    const std::int64_t half = 8 * job.data.batch;  // what a step trains on
    const Simulated simulated = simulate(job, 2, "h100_ib", 2 * half);
    std::vector<double> epochs;
    for (const traces::schema::MetricRow& row : simulated.trace->metrics)
        if (simulated.trace->strings[row.name] == "epoch") epochs.push_back(row.value);
    EXPECT_THAT(epochs, ElementsAre(0.5, 1, 1.5, 2));
}

// No simulated step overflows: the scale doubles after every two steps.
TEST(SimTrace, HasTheLossScaleOfFp16) {
    job::Job job = job_of(8);
    job.precision.param = job.precision.reduce = job::Precision::fp16;
    job.precision.initial_scale = 1024;
    job.precision.growth_interval = 2;
    std::map<std::string, std::vector<double>> values;
    const Simulated simulated = simulate(job, 2);
    for (const traces::schema::MetricRow& row : simulated.trace->metrics)
        values[std::string(simulated.trace->strings[row.name])].push_back(row.value);
    EXPECT_THAT(values["loss_scale"], ElementsAre(1024, 1024, 2048, 2048));
    EXPECT_THAT(values["skipped_steps"], ElementsAre(0, 0, 0, 0));
}

TEST(SimTrace, ShowsTheFirstRanksAndOneOfEachOtherKind) {
    job::Job job = job_of(64);
    job.sim.slow_ranks = {{40, 2}};
    const Simulated simulated = simulate(job, 2);
    const traces::store::Trace& trace = *simulated.trace;
    std::vector<int> numbers;
    std::vector<std::string> hosts;
    for (const traces::store::Rank& rank : trace.ranks) {
        numbers.push_back(rank.number);
        hosts.push_back(rank.host);
    }
    EXPECT_THAT(numbers, ElementsAre(0, 1, 40));
    EXPECT_THAT(hosts, ElementsAre("node-0", "node-0", "node-5"));
    EXPECT_EQ(trace.ranks[0].device_name, "NVIDIA H100 80GB HBM3 (simulated)");
    EXPECT_THAT(traces::analysis::check_trace(trace), ElementsAre());
    EXPECT_EQ(trace.config_value("device"), "sim");
    EXPECT_EQ(trace.config_value("sim.nodes"), "8");
    EXPECT_THAT(std::string(trace.config_value("sim.ranks_as_rank_0")), HasSubstr("63 of 64 ranks: peak "));
    EXPECT_THAT(std::string(trace.config_value("sim.ranks_as_rank_40")), HasSubstr("1 of 64 ranks: peak "));
}

TEST(SimTrace, RecordsTheMeshAndTheAxisOfEachGroup) {
    job::Job job = job_of(16);
    job.parallel.tensor = 2;
    job.fsdp.sharding_strategy = job::ShardingStrategy::hybrid_shard;
    job.fsdp.shard_group = 4;
    const Simulated simulated = simulate(job, 16);
    const traces::store::Trace& trace = *simulated.trace;
    for (const traces::store::Rank& rank : trace.ranks) {
        const int tensor = rank.number % 2, shard = rank.number / 2 % 4, data = rank.number / 8;
        EXPECT_THAT(rank.place, ElementsAre(data, shard, 0, tensor, 0)) << "of rank " << rank.number;
    }
    std::map<std::string, int> groups;
    for (const traces::schema::GroupRow& group : trace.groups) ++groups[group.axis];
    EXPECT_EQ(groups["tensor"], 8);
    EXPECT_EQ(groups["shard"], 4);
    EXPECT_EQ(groups["data"], 8);
    EXPECT_EQ(groups["data+shard"], 2);
    EXPECT_EQ(groups["data+shard+tensor"], 1);
    for (const std::int64_t group : trace.collectives.group)
        EXPECT_NE(traces::analysis::axis_of(trace, group), "") << "of group " << group;
}

TEST(SimTrace, NamesCollectivesAndTheirEngine) {
    const Simulated simulated = simulate(job_of(8), 1);
    const traces::store::Trace& trace = *simulated.trace;
    ASSERT_GT(trace.collectives.size(), 0u);
    for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        ASSERT_GE(trace.collectives.event[i], 0);
        const auto event = static_cast<std::size_t>(trace.collectives.event[i]);
        const std::string kernel(trace.strings[trace.device.name[event]]);
        EXPECT_THAT(kernel, ::testing::MatchesRegex("ncclDevKernel_.*_sim"));
        EXPECT_EQ(trace.collectives.group_size[i], 8);
    }
}

// In bytes per second, for one device: docs/simulation.md, "The trace".
TEST(SimTrace, StatesTheNominalBandwidthOfTheLinksThatTheClusterHas) {
    const auto stated = [](const char* cluster, const char* key) {
        return std::string(simulate(job_of(4), 1, cluster).trace->config_value(key));
    };
    EXPECT_DOUBLE_EQ(std::stod(stated("h100_ib", "sim.intra_bandwidth")), 3.6e11);
    EXPECT_DOUBLE_EQ(std::stod(stated("h100_ib", "sim.inter_bandwidth")), 4.7e10);
    EXPECT_DOUBLE_EQ(std::stod(stated("v100_pcie", "sim.inter_bandwidth")), 1.15e10 / 4);  // shared by four
    EXPECT_DOUBLE_EQ(std::stod(stated("h200_nvlink", "sim.intra_bandwidth")), 3.6e11);
    EXPECT_EQ(stated("h200_nvlink", "sim.inter_bandwidth"), "");  // one node: unknown, and not 0
    EXPECT_EQ(stated("laptop", "sim.intra_bandwidth"), "");       // ranks share memory
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sim
