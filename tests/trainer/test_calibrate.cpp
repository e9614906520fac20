// Fitting a cost model: a model's figures are recovered from its own simulations, and real runs can be
// fitted.
#include <algorithm>
#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "played_run.h"
#include "trace_testing.h"
#include "trainer/calibrate/calibration.h"
#include "trainer/calibrate/fit_curve.h"
#include "trainer/sim/collective_cost.h"
#include "trainer/sim/costs.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::calibrate {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Runs = std::vector<MeasuredRun>;

// --- curves ----------------------------------------------------------------------------------------------

TEST(FitCurve, MediansAndPercentiles) {
    EXPECT_EQ(median({3, 1, 2}), 2);
    EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
    EXPECT_EQ(median({}), 0);
    EXPECT_EQ(percentile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9), 9);
    EXPECT_EQ(percentile({7}, 0.9), 7);
    EXPECT_EQ(weighted_median({{1, 1}, {2, 1}, {10, 3}}), 10);
    EXPECT_EQ(weighted_median({{10, 1}, {1, 5}}), 1);
}

// Sizes within a tenth of each other are one point; the best rate is 1.
TEST(FitCurve, IsOfRatesBySize) {
    const RateCurve curve = rate_curve({{1000, 5, 1}, {1100, 7, 1}, {1050, 6, 1}, {9000, 12, 1}}, Shape::any);
    EXPECT_EQ(curve.best, 12);
    ASSERT_EQ(curve.share.points.size(), 2u);
    EXPECT_EQ(curve.share.points[0].size, 1050);
    EXPECT_EQ(curve.share.points[0].share, 0.5);
    EXPECT_EQ(curve.share.points[1].share, 1);
}

// 10 at 1e4 and 6 at 1e5 contradict a rising rate, so both become 8.
TEST(FitCurve, RisesWhereItMust) {
    const std::vector<RateSample> samples = {{1e3, 4, 1}, {1e4, 10, 1}, {1e5, 6, 1}, {1e6, 16, 1}};
    const RateCurve rising = rate_curve(samples, Shape::rising);
    ASSERT_EQ(rising.share.points.size(), 4u);
    EXPECT_EQ(rising.share.points[0].share, 0.25);
    EXPECT_EQ(rising.share.points[1].share, 0.5);
    EXPECT_EQ(rising.share.points[2].share, 0.5);
    EXPECT_EQ(rate_curve(samples, Shape::any).share.points[1].share, 10.0 / 16);
}

// --- figures that are known ------------------------------------------------------------------------------

// Different from the laptop's in every figure.
sim::Cluster known_cluster() {
    sim::Cluster cluster = sim::load_cluster("laptop");
    cluster.device.name = "a processor";
    cluster.device.kernel_latency = 1e-9;
    cluster.device.memory_bandwidth = 33e9;
    for (sim::ClassRates& rates : cluster.device.classes) {
        rates.flops = {7e10, 7e10, 14e10, 7e10};
        rates.efficiency.points = {{1e4, 0.2}, {1e8, 0.8}};
        rates.bandwidth_share.points = {{1e4, 0.9}, {1e7, 0.3}};
    }
    cluster.host = {.operation = 3e-7,
                    .launch = 9e-7,
                    .event = 2e-7,
                    .wake = 4e-5,
                    .allocate = 5e-7,
                    .grow = 3e-5,
                    .flops = 5e9,
                    .memory_bandwidth = 12e9,
                    .batch_bandwidth = 1.5e9};
    cluster.copy.latency = 1e-9;
    cluster.copy.to_device = 6e9;
    cluster.copy.to_host = 4e9;
    cluster.copy.on_device = 21e9;
    cluster.collectives.latency = 5e-6;
    cluster.intra = {.latency = 2.5e-6, .bandwidth = 3e9, .shared = false, .bandwidth_share = {}};
    return cluster;
}

using testing::played;

job::Job offloaded(int ranks) {
    job::Job job = testing::with_wrap(testing::mlp_job(6, 256, 64, ranks), "module:Linear");
    job.run.steps = 8;
    job.run.workers = 0;
    job.fsdp.cpu_offload = true;
    job.optimizer.type = job::OptimizerType::adamw;
    return job;
}
job::Job resident(int ranks) {
    job::Job job = offloaded(ranks);
    job.fsdp.cpu_offload = false;
    return job;
}
// A job of other sizes, with more bytes than operations.
job::Job wide(int ranks) {
    job::Job job = testing::with_wrap(testing::mlp_job(3, 700, 5, ranks), "module:Linear");
    job.run.steps = 8;
    job.run.workers = 0;
    return job;
}

Calibration fitted_to(const sim::Cluster& known, const std::vector<job::Job>& jobs) {
    Runs runs;
    for (const job::Job& job : jobs) runs.push_back(calibrate::measure(*played(job, known)));
    return calibrate(runs, {}, sim::load_cluster("laptop"), "fitted");
}

double step_seconds(const job::Job& job, const sim::Cluster& cluster) {
    const sharding::Program program(sim::placed_on(job, cluster));
    return sim::simulate(program, cluster).of(0).steps.back().seconds;
}

TEST(Calibrate, RecoversTheKernelsOfAKnownModel) {
    const sim::Cluster known = known_cluster();
    const Calibration fitted = fitted_to(known, {resident(1), resident(2), wide(2)});
    for (const job::Job& job : {resident(1), resident(2), wide(2)}) {
        const sharding::Program program(job);
        const plan::Plan& plan = testing::steady(program);
        for (const plan::Op& op : plan.ops) {
            if (op.kind != plan::OpKind::kernel || op.stream == plan::Stream::host) continue;
            const double seconds = sim::Costs(known).on_device(plan, op);
            EXPECT_NEAR(sim::Costs(fitted.cluster).on_device(plan, op), seconds, 0.03 * seconds + 5e-9)
                << plan.names[static_cast<std::size_t>(op.name)] << " " << op.flops << " " << op.bytes;
        }
    }
    for (const Residual& own : fitted.residuals)
        EXPECT_LE(own.p90_error, own.arithmetic.empty() ? 0.15 : 0.05) << own.name;
}

TEST(Calibrate, RecoversTheHostOfAKnownModel) {
    const sim::Cluster known = known_cluster();
    const sim::HostModel& host = known.host;
    const sim::HostModel found = fitted_to(known, {offloaded(1), offloaded(2), resident(2)}).cluster.host;
    constexpr double kTick = 4e-9;  // the minimum of every call
    EXPECT_NEAR(found.operation, host.operation, kTick);
    EXPECT_NEAR(found.launch, host.launch, kTick);
    EXPECT_NEAR(found.event, host.event, kTick);
    EXPECT_NEAR(found.allocate, host.allocate, kTick);
    EXPECT_NEAR(found.wake, host.wake, kTick);
    EXPECT_NEAR(found.flops, host.flops, 0.01 * host.flops);
    EXPECT_NEAR(found.batch_bandwidth, host.batch_bandwidth, 0.01 * host.batch_bandwidth);
}

// The host is interrupted for a second in each of its smallest batches.
TEST(Calibrate, IsNotMisledByAHostThatWasInterrupted) {
    const sim::Cluster known = known_cluster();
    Runs runs;
    runs.push_back(calibrate::measure(*played(resident(1), known)));
    plan::Op batch;
    batch.kind = plan::OpKind::host_call;
    batch.own = plan::HostCallOp{plan::HostCall::next_batch};
    batch.args = {{0, 0, 64, 0}};
    for (int i = 0; i < 20; ++i) runs.back().host_work.push_back({&batch, 1});
    const double found = calibrate(runs, {}, sim::load_cluster("laptop"), "x").cluster.host.batch_bandwidth;
    EXPECT_NEAR(found, known.host.batch_bandwidth, 0.01 * known.host.batch_bandwidth);
}

TEST(Calibrate, RecoversTheCopiesOfAKnownModel) {
    const sim::Cluster known = known_cluster();
    const sim::CopyModel found = fitted_to(known, {offloaded(1), offloaded(2)}).cluster.copy;
    EXPECT_NEAR(found.to_device, known.copy.to_device, 0.02 * known.copy.to_device);
    EXPECT_NEAR(found.to_host, known.copy.to_host, 0.02 * known.copy.to_host);
}

// Both ranks of a node read 1 MB in 0.5 ms and write it in 1 ms, whatever else runs there.
TEST(Calibrate, FitsTheDisksThatTheRanksOfANodeShare) {
    Runs runs;
    runs.push_back(calibrate::measure(*played(resident(2), known_cluster())));
    const plan::Plan plan;
    std::array<plan::Op, 2> copies;
    for (const std::size_t writes : {0, 1}) {
        plan::Op& op = copies[writes];
        op.kind = plan::OpKind::memcpy;
        op.stream = writes ? plan::Stream::disk_write : plan::Stream::disk_read;
        op.own = plan::MemcpyOp{static_cast<std::uint8_t>(writes ? traces::schema::kCopyHostToDisk
                                                                 : traces::schema::kCopyDiskToHost)};
        op.bytes = 1'000'000;
        for (std::int64_t i = 0; i < 9; ++i) {
            MeasuredOp& work = runs.back().work.emplace_back();
            work.plan = &plan;
            work.op = &op;
            work.rank = traces::store::RankIndex(static_cast<std::uint16_t>(i % 2));
            work.start = work.begin = i * 2'000'000;
            work.end = work.over = work.start + (writes ? 1'000'000 : 500'000);
            work.busy = 2;
        }
    }
    const Calibration fitted = calibrate(runs, {}, sim::load_cluster("laptop"), "fitted");
    EXPECT_DOUBLE_EQ(fitted.cluster.disk.read, 4e9);
    EXPECT_DOUBLE_EQ(fitted.cluster.disk.write, 2e9);
    EXPECT_EQ(fitted.notes.at("disk.read"), "9 copies measured");
    const auto of_files = [](const Residual& residual) { return residual.name == "read of a file"; };
    const auto residual = std::find_if(fitted.residuals.begin(), fitted.residuals.end(), of_files);
    ASSERT_NE(residual, fitted.residuals.end());
    EXPECT_NEAR(residual->median_error, 0, 1e-9);
    runs.back().work.clear();
    EXPECT_EQ(calibrate(runs, {}, sim::load_cluster("laptop"), "fitted").notes.at("disk.write"),
              "from laptop");
}

TEST(Calibrate, RecoversTheCollectivesOfAKnownModel) {
    const sim::Cluster known = known_cluster();
    const sim::Cluster fitted = fitted_to(known, {resident(2), resident(4), wide(2)}).cluster;
    EXPECT_EQ(fitted.collectives.inside, known.collectives.inside);
    for (const int members : {2, 4}) {
        for (const plan::Operation operation :
             {plan::Operation::all_gather, plan::Operation::reduce_scatter}) {
            const sim::Spread spread{.members = members, .nodes = 1, .fullest = members};
            const auto seconds = [&](const sim::Cluster& cluster) {
                return sim::collective_seconds(cluster, spread, operation, 257 * 256 * 4);
            };
            EXPECT_NEAR(seconds(fitted), seconds(known), 0.1 * seconds(known)) << members;
        }
    }
}

// The steps belong to jobs to which the model was not fitted.
TEST(Calibrate, SimulatesOtherJobsAsTheKnownModelDoes) {
    const sim::Cluster known = known_cluster();
    const sim::Cluster fitted = fitted_to(known, {resident(1), offloaded(2), wide(1), resident(4)}).cluster;
    for (job::Job job : {resident(2), offloaded(1), offloaded(4), wide(2)}) {
        for (const char* wrap : {"root", "module:Linear"}) {
            const job::Job other = testing::with_wrap(job, wrap);
            const double seconds = step_seconds(other, known);
            EXPECT_NEAR(step_seconds(other, fitted), seconds, 0.1 * seconds)
                << wrap << " " << other.run.ranks << " " << other.fsdp.cpu_offload;
        }
    }
}

// Four ranks on two cores: work that shares a core takes longer, and calibration recognizes it.
TEST(Calibrate, RecognizesWorkThatSharesCores) {
    sim::Cluster known = known_cluster();
    known.device.cores = 2;
    known.device.busy_share.points = {{1, 1}, {2, 0.7}};
    Runs runs;
    for (const int ranks : {1, 2, 4}) {
        runs.push_back(calibrate::measure(*played(resident(ranks), known)));
        runs.back().cores = 2;  // as the ranks' processors would show in a real trace
    }
    const Calibration fitted = calibrate(runs, {}, sim::load_cluster("laptop"), "fitted");
    EXPECT_EQ(fitted.cluster.device.cores, 2);
    ASSERT_EQ(fitted.cluster.device.busy_share.points.size(), 2u);
    EXPECT_NEAR(fitted.cluster.device.busy_share.points[1].share, 0.7, 0.03);
    for (const int ranks : {1, 2, 4}) {
        const double seconds = step_seconds(resident(ranks), known);
        EXPECT_NEAR(step_seconds(resident(ranks), fitted.cluster), seconds, 0.1 * seconds) << ranks;
    }
}

// mpirun binds each rank to a core of its own.
TEST(Calibrate, CountsTheCoresOfANodeOverItsRanks) {
    const auto trace = played(resident(4), known_cluster());
    const std::vector<std::string> cpus = {"0", "1", "4-6", "1"};
    for (std::size_t rank = 0; rank < cpus.size(); ++rank) trace->ranks[rank].cpus = cpus[rank];
    EXPECT_EQ(calibrate::measure(*trace).cores, 5);
    trace->ranks[3].cpus = "all";
    EXPECT_EQ(calibrate::measure(*trace).cores, 5);
}

// --- runs that are real ----------------------------------------------------------------------------------

TEST(Calibrate, FitsRunsOfThisMachine) {
    Runs runs;
    for (const int ranks : {1, 2}) {
        job::Job job = resident(ranks);
        job.run.workers = 2;
        runs.push_back(calibrate::measure(*testing::record(job)));
        EXPECT_GT(runs.back().median_step_s, 0);
    }
    EXPECT_THAT(runs.back().device_name, Not(HasSubstr("(cpu device)")));
    Calibration fitted = calibrate(runs, {}, sim::load_cluster("laptop"), "mine");
    ASSERT_EQ(fitted.steps.size(), 2u);
    for (const StepResidual& own : fitted.steps) EXPECT_GT(own.simulated_s, 0);
    EXPECT_EQ(fitted.cluster.collectives.inside, sim::Algorithm::shared_memory);
    const auto matmul = std::find_if(fitted.residuals.begin(), fitted.residuals.end(),
                                     [](const Residual& own) { return own.name == "matmul"; });
    ASSERT_NE(matmul, fitted.residuals.end());
    EXPECT_EQ(matmul->arithmetic, "fp32");
    EXPECT_GT(matmul->count, 0);
    // The written file contains the complete model.
    fitted.cluster.device.reserve = 12345;
    const std::string file = model_file(fitted);
    const sim::Cluster read = sim::parse_cluster(file, "mine.toml");
    EXPECT_EQ(read.name, "mine");
    EXPECT_EQ(read.device.reserve, 12345);
    EXPECT_NEAR(step_seconds(resident(2), read), step_seconds(resident(2), fitted.cluster), 1e-6);
    EXPECT_THAT(file, AllOf(HasSubstr("[operators.matmul]"), HasSubstr("kernels measured"),
                            HasSubstr("from laptop: no trace has such a kernel")));
}

// --- what nothing can be learned from --------------------------------------------------------------------

std::string complaint(const std::function<void()>& call) {
    try {
        call();
    } catch (const CalibrationError& error) {
        return error.what();
    }
    return "no complaint";
}

TEST(Calibrate, RefusesWhatIsNotAMeasuredRun) {
    const sim::Cluster known = known_cluster();
    const auto measure = [](const traces::store::Trace& trace) {
        return complaint([&] { (void)calibrate::measure(trace); });
    };
    EXPECT_THAT(measure(traces::store::Trace()),
                HasSubstr("it stores no job, so it is not a trace of the trainer"));
    auto trace = played(resident(2), known);
    trace->steps.clear();
    EXPECT_THAT(measure(*trace), HasSubstr("it has no steps"));
    trace = played(resident(2), known);
    trace->ranks.pop_back();
    EXPECT_THAT(measure(*trace), HasSubstr("it has 1 of the job's 2 ranks; merge the parts"));
    job::Job simulated = resident(2);
    simulated.run.device = job::DeviceKind::sim;
    EXPECT_THAT(measure(*played(simulated, known)), HasSubstr("it is simulated"));
    trace = played(resident(2), known);
    for (auto& [key, value] : trace->config) {
        if (key == "model.layers") value = "5";
    }
    EXPECT_THAT(measure(*trace), HasSubstr("did not do what the Plan of its job does"));
}

TEST(Calibrate, RefusesMixedMachinesAndAnotherKindOfBase) {
    sim::Cluster known = known_cluster();
    Runs runs;
    runs.push_back(calibrate::measure(*played(resident(1), known)));
    EXPECT_THAT(complaint([&] { (void)calibrate(runs, {}, sim::load_cluster("a100"), "x"); }),
                HasSubstr("a100 is a model of a GPU, the traces are of run.device = \"cpu\""));
    for (const char* engine : {"local", "tcp"}) {
        runs.push_back(calibrate::measure(*played(resident(2), known)));
        runs.back().file = std::string(engine) + ".sqlite";
        runs.back().engine = engine;
    }
    EXPECT_THAT(complaint([&] { (void)calibrate(runs, {}, sim::load_cluster("laptop"), "x"); }),
                HasSubstr("the collectives of local.sqlite went over local, those of tcp.sqlite over tcp"));
    runs.erase(runs.begin() + 1, runs.end());
    known.device.name = "another processor";
    runs.push_back(calibrate::measure(*played(resident(1), known)));
    EXPECT_THAT(
        complaint([&] { (void)calibrate(runs, {}, sim::load_cluster("laptop"), "x"); }),
        AllOf(HasSubstr("on a processor (simulated),"), HasSubstr("on another processor (simulated);"),
              HasSubstr("a model is of one machine")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::calibrate
