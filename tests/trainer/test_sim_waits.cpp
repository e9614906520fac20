// The causes of exposed communication in simulated runs whose cause is known, because it was put there: each
// is found where it was put and nowhere else.
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "traces/analysis/waits/exposed.h"
#include "traces/analysis/waits/waits.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"
#include "trainer/job/job.h"
#include "trainer/sim/sim_trace.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::sim {
namespace TEST_FILE {

using traces::analysis::ExposureCause;

using Overrides = std::vector<job::Override>;

std::unique_ptr<traces::store::Trace> trace_of(Overrides overrides, double launch = 0) {
    overrides.insert(overrides.end(), {{"run.ranks", "4"}, {"run.steps", "3"}, {"model.layers", "8"}});
    const job::Job job = job::load_job(std::string(SHARDSCOPE_SAMPLES) + "/gpt_7b.toml", overrides);
    Cluster cluster = load_cluster("h200_nvlink");
    if (launch > 0) cluster.host.launch = launch;
    const sharding::Program program(placed_on(job, cluster));
    traces::store::ColumnSink sink;
    SimTrace trace(sink, program, cluster, job.run.ranks);
    SimOptions options = options_of(job, cluster);
    options.every_step = true;
    trace.summarise(simulate(program, cluster, options, &trace));
    return sink.take();
}

// A rank's exposed gathers or reductions by cause, in us per step, without the first step.
struct Causes {
    std::array<double, traces::analysis::kExposureCauses> us{};
    double of(ExposureCause cause) const { return us[static_cast<std::size_t>(cause)]; }
    double all() const {
        double sum = 0;
        for (const double one : us) sum += one;
        return sum;
    }
};
Causes causes(const traces::store::Trace& trace, int rank, std::string_view operation) {
    Causes found;
    const auto report = traces::analysis::exposed_report(trace, {.rank = rank, .first_step = 1});
    for (const traces::analysis::ExposedShare& share : report.ranks.at(0).shares) {
        if (share.operation == operation)
            found.us[static_cast<std::size_t>(share.cause)] += share.us_per_step;
    }
    return found;
}

constexpr std::string_view kGather = "all_gather", kReduce = "reduce_scatter";

TEST(SimWaits, WithoutAFaultOnlyTheEndsOfAStepAreExposed) {
    const auto trace = trace_of({});
    for (const int rank : {0, 3}) {
        const Causes gathers = causes(*trace, rank, kGather), reductions = causes(*trace, rank, kReduce);
        EXPECT_EQ(gathers.of(ExposureCause::late_rank), 0);
        EXPECT_EQ(reductions.of(ExposureCause::late_rank), 0);
        EXPECT_LT(gathers.of(ExposureCause::issued_late), 0.02 * gathers.all());
        // The first gather and the last reduction have no compute beside them.
        EXPECT_GT(gathers.of(ExposureCause::nothing), 0.5 * gathers.all());
        EXPECT_GT(reductions.of(ExposureCause::nothing), 0.5 * reductions.all());
    }
}

TEST(SimWaits, AStragglerIsWhatTheOthersWaitFor) {
    const auto trace = trace_of({{"sim.slow_rank", "3:1.5"}});
    for (const int rank : {0, 1, 2}) {
        const Causes reductions = causes(*trace, rank, kReduce);
        EXPECT_GT(reductions.of(ExposureCause::late_rank), 0.9 * reductions.all()) << rank;
    }
    EXPECT_EQ(causes(*trace, 3, kReduce).of(ExposureCause::late_rank), 0);
    EXPECT_EQ(causes(*trace, 3, kGather).of(ExposureCause::late_rank), 0);
    const traces::analysis::WaitFinder waits(*trace);
    for (std::size_t i = 0; i < trace->device.size(); ++i) {
        const traces::analysis::Exposure exposure = waits.exposure(i);
        if (exposure.causes[static_cast<std::size_t>(ExposureCause::late_rank)] == 0) continue;
        ASSERT_EQ(trace->ranks[exposure.late.at()].number, 3);
    }
}

TEST(SimWaits, ASlowLinkMakesCollectivesQueue) {
    const auto trace = trace_of({{"sim.slow_link", "intra:0.2"}});
    const Causes gathers = causes(*trace, 0, kGather);
    EXPECT_GT(gathers.of(ExposureCause::queued), 0.5 * gathers.all());
    EXPECT_LT(gathers.of(ExposureCause::issued_late) + gathers.of(ExposureCause::host_waited),
              0.02 * gathers.all());
    EXPECT_EQ(gathers.of(ExposureCause::late_rank), 0);
}

TEST(SimWaits, WithoutPrefetchGathersQueueBehindReductions) {
    const Causes with = causes(*trace_of({}), 0, kGather),
                 without = causes(*trace_of({{"fsdp.backward_prefetch", "NONE"}}), 0, kGather);
    EXPECT_GT(without.of(ExposureCause::queued), 0.6 * without.all());
    EXPECT_GT(without.of(ExposureCause::queued), 10 * with.of(ExposureCause::queued));
}

TEST(SimWaits, ASlowHostIssuesLate) {
    const Causes gathers = causes(*trace_of({}, 300e-6), 0, kGather);
    EXPECT_GT(gathers.of(ExposureCause::issued_late), 0.5 * gathers.all());
    EXPECT_EQ(gathers.of(ExposureCause::late_rank), 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sim
