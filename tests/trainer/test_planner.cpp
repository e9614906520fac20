// The planner's search and Pareto front: every figure is the simulator's and the account's own.
#include <atomic>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/planner_testing.h"
#include "trainer/planner/anatomy.h"
#include "trainer/planner/figures.h"
#include "trainer/planner/job_file.h"
#include "trainer/planner/search.h"

namespace shardscope::trainer::planner {
namespace TEST_FILE {

using namespace testing;

using ::testing::HasSubstr;

// One value for every factor that a test does not vary, because the tests run under the thread sanitizer,
// too.
const std::vector<Given> kFew = {{"fsdp.backward_prefetch", {"BACKWARD_PRE"}},
                                 {"fsdp.limit_all_gathers", {"true"}},
                                 {"fsdp.wrap", {"root", "module:Block"}}};

TEST(Planner, EveryFigureIsTheSimulators) {
    const Planned planned("");
    const auto rows = planned.search(kFew);
    ASSERT_GE(rows.size(), 24u);
    for (const Row& row : rows) {
        ASSERT_EQ(row.outcome, Outcome::fits) << row.reason;
        const sharding::Program program(sim::placed_on(planned.job(row.settings), planned.cluster()));
        const sim::SimResult result = sim::simulate(program, planned.cluster());
        EXPECT_EQ(row.times.step, result.average_step_s);
        EXPECT_EQ(row.times.exposed, result.exposed_communication_s);
        EXPECT_EQ(row.peak.bytes, result.of(0).peak.bytes);
        EXPECT_EQ(row.peak.at_peak, result.of(0).peak.at_peak);
        EXPECT_EQ(row.reserved, result.of(0).reserved);
        // 2 ranks of 2 samples of 32 tokens.
        EXPECT_DOUBLE_EQ(row.samples_per_s, 4 / result.average_step_s);
        EXPECT_DOUBLE_EQ(row.tokens_per_s, 128 / result.average_step_s);
    }
}

// On a wire of 10 MB/s; a step's first two are reduced whole.
TEST(Planner, CompressesGradientsWhereTheWireIsTheLimit) {
    sim::Cluster cluster = round_cluster();
    cluster.intra.bandwidth = 1e7;
    for (sim::ClassRates& rates : cluster.device.classes) rates.flops = {1e12, 1e12, 1e12, 1e12};
    const Planned planned("", cluster);
    const auto rows = planned.search({{"run.steps", {"100"}},
                                      {"parallel.mode", {"ddp"}},
                                      {"ddp.shard_optimizer", {"false"}},
                                      {"data.batch", {"2"}},
                                      {"memory.activation_checkpointing", {"none"}},
                                      {"memory.offload", {"none"}}});
    ASSERT_EQ(rows.size(), 3u);
    const auto row_of = [&](const char* hook) -> const Row& {
        return *std::find_if(rows.begin(), rows.end(),
                             [&](const Row& row) { return to_text(row.job.ddp.comm_hook) == hook; });
    };
    const Row &plain = row_of("none"), &half = row_of("bf16"), &low_rank = row_of("powersgd:4");
    EXPECT_EQ(best(rows), &low_rank);
    EXPECT_NEAR(half.times.exposed / plain.times.exposed, 0.5, 0.05);
    EXPECT_LT(low_rank.times.step, 0.3 * plain.times.step);
    // A PowerSGD of 4 columns multiplies matrices, which are not the model's.
    const sharding::Program programs[] = {sharding::Program(sim::placed_on(plain.job, cluster)),
                                          sharding::Program(sim::placed_on(low_rank.job, cluster))};
    EXPECT_EQ(model_flops(programs[0]), model_flops(programs[1]));
}

TEST(Planner, ThreadsChangeNothing) {
    const Planned planned("");
    SearchOptions three;
    three.threads = 3;
    std::size_t told = 0;
    three.progress = [&](std::size_t done, std::size_t) { EXPECT_EQ(done, ++told); };
    const auto alone = planned.search(kFew), together = planned.search(kFew, three);
    ASSERT_EQ(alone.size(), together.size());
    EXPECT_EQ(told, alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_EQ(alone[i].number, together[i].number);
        EXPECT_EQ(alone[i].times.step, together[i].times.step);
        EXPECT_EQ(alone[i].peak.bytes, together[i].peak.bytes);
        EXPECT_EQ(alone[i].front, together[i].front);
    }
}

TEST(Planner, NothingDominatesTheParetoFrontAndItDominatesAllOthers) {
    const auto rows = Planned("").search(kFew);
    const auto beats = [](const Row& a, const Row& b) {
        const bool no_worse = a.peak.bytes <= b.peak.bytes && a.reserved <= b.reserved &&
                              a.seconds_per_sample() <= b.seconds_per_sample();
        return no_worse && (a.peak.bytes < b.peak.bytes || a.reserved < b.reserved ||
                            a.seconds_per_sample() < b.seconds_per_sample());
    };
    int front = 0;
    for (const Row& row : rows) {
        const bool beaten =
            std::any_of(rows.begin(), rows.end(), [&](const Row& b) { return beats(b, row); });
        if (row.front) {
            ++front;
            EXPECT_FALSE(beaten) << row.number;
            continue;
        }
        const Row* by = numbered(rows, row.beaten_by);
        ASSERT_NE(by, nullptr) << row.number;
        EXPECT_TRUE(by->front);
        EXPECT_TRUE(beats(*by, row) || row.same_as != 0 || !beaten) << row.number;
        EXPECT_NE(why(row, rows), "");
    }
    EXPECT_GE(front, 2);
    EXPECT_EQ(fastest(rows)->front, true);
    EXPECT_EQ(smallest(rows)->front, true);
}

Row timed_row(int number, std::int64_t peak, std::int64_t reserved, double seconds,
              std::vector<job::Override> settings) {
    Row row;
    row.number = number;
    row.outcome = Outcome::fits;
    row.timed = true;
    row.peak.bytes = peak;
    row.reserved = reserved;
    row.times.step = row.times.last_step = seconds;
    row.samples_per_s = 1 / seconds;
    row.settings = std::move(settings);
    return row;
}

// The second is slightly faster and allocates slightly less, but its allocator reserves five times as much.
TEST(Planner, TheSimplerOfTwoIndistinguishableOnesIsTheBest) {
    std::vector<Row> rows = {
        timed_row(1, 110, 200, 1.002, {{"fsdp.wrap", "root"}, {"fsdp.limit_all_gathers", "true"}}),
        timed_row(2, 100, 1000, 1.0, {{"fsdp.wrap", "root"}, {"fsdp.limit_all_gathers", "false"}}),
        timed_row(3, 110, 1000, 1.001, {{"fsdp.wrap", "size:5"}, {"fsdp.limit_all_gathers", "false"}}),
        timed_row(4, 100, 150, 2.0, {{"fsdp.wrap", "size:5"}, {"fsdp.limit_all_gathers", "true"}}),
    };
    mark_front(rows);
    EXPECT_TRUE(rows[0].front);  // no other that reserves as little is as fast
    EXPECT_TRUE(rows[1].front);
    EXPECT_FALSE(rows[2].front);
    EXPECT_EQ(rows[2].beaten_by, 2);
    EXPECT_TRUE(rows[3].front);
    EXPECT_TRUE(rows[0].tied && rows[1].tied && rows[2].tied);
    EXPECT_FALSE(rows[3].tied);
    EXPECT_EQ(rows[1].changes, 1);
    EXPECT_EQ(rows[2].changes, 2);
    EXPECT_EQ(fastest(rows)->number, 2);
    EXPECT_EQ(best(rows)->number, 1);
}

TEST(Planner, TheSimplestOfEqualsRepresentsThem) {
    const auto settings = [](const std::string& wrap, const std::string& limiter) {
        return std::vector<job::Override>{{"fsdp.wrap", wrap}, {"fsdp.limit_all_gathers", limiter}};
    };
    std::vector<Row> rows = {timed_row(1, 110, 200, 2, settings("root", "true")),
                             timed_row(2, 100, 200, 1, settings("size:5", "false")),
                             timed_row(3, 100, 200, 1, settings("root", "false"))};
    mark_front(rows);
    EXPECT_EQ(best(rows)->number, 3);
    EXPECT_TRUE(rows[2].front);
    EXPECT_EQ(rows[1].same_as, 3);
}

TEST(Planner, TheClustersReserveIsNotTheAllocators) {
    sim::Cluster cluster = round_cluster();
    cluster.device.reserve = 1000;
    const auto limit = [&](const std::vector<job::Override>& settings) {
        return sim::options_of(planned_job("", settings), cluster).memory_limit;
    };
    const auto memory = static_cast<std::int64_t>(cluster.device.memory);
    EXPECT_EQ(limit({}), memory - 1000);
    EXPECT_EQ(limit({{"run.memory_reserve", "0"}}), memory);
    EXPECT_EQ(limit({{"run.memory_reserve", "3000"}}), memory - 3000);
    EXPECT_EQ(limit({{"run.memory_limit", "5000"}}), 5000);  // the job itself gives the limit
    const auto place = [&](const std::vector<job::Override>& settings) {
        return sim::options_of(planned_job("", settings), cluster).memory_place;
    };
    EXPECT_THAT(place({}), HasSubstr(" less a reserve of 1000 (device.reserve, an estimate)"));
    EXPECT_THAT(place({{"run.memory_reserve", "3000"}}),
                HasSubstr(" less a reserve of 3000 (run.memory_reserve)"));
}

TEST(Planner, RowsThatDoNotFitAreTimedOnlyOnRequest) {
    const Planned planned("");
    std::vector<Given> given = kFew;
    given.push_back({"fsdp.layout", {"fsdp1"}});
    given.push_back({"memory.offload", {"none"}});
    given.push_back({"data.batch", {"2"}});
    const auto all = planned.search(given);
    // Slightly less than the fastest needs: it no longer fits, but the smallest still does.
    const std::int64_t limit = fastest(all)->peak.bytes - 1;
    ASSERT_LT(smallest(all)->reserved, limit);
    given.push_back({"run.memory_limit", {std::to_string(limit)}});
    const auto rows = planned.search(given);
    const Row* was_fastest = numbered(rows, fastest(all)->number);
    EXPECT_EQ(was_fastest->outcome, Outcome::too_large);
    EXPECT_FALSE(was_fastest->timed);
    EXPECT_FALSE(was_fastest->front);
    EXPECT_THAT(why(*was_fastest, rows), HasSubstr("too large"));
    for (const Row& row : rows) {
        EXPECT_EQ(row.limit, limit);
        if (row.fits()) {
            EXPECT_LE(row.reserved, limit);
        }
    }
    SearchOptions options;
    options.time_all = true;
    const auto timed = planned.search(given, options);
    EXPECT_EQ(numbered(timed, was_fastest->number)->times.step, fastest(all)->times.step);
}

TEST(Planner, AStoppedSearchKeepsFinishedRows) {
    std::atomic<bool> stop{false};
    SearchOptions options;
    options.stop = &stop;
    options.progress = [&](std::size_t done, std::size_t) { stop = done == 5; };
    const auto rows = Planned("").search(kFew, options);
    EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.fits(); }), 5);
    EXPECT_EQ(rows[5].outcome, Outcome::not_run);
    EXPECT_NE(fastest(rows), nullptr);
}

TEST(Planner, ImpossibleCombinationsSayWhy) {
    std::vector<Given> given = kFew;
    given.push_back({"fsdp.sharding_strategy", {"NO_SHARD", "FULL_SHARD"}});
    given.push_back({"fsdp.cpu_offload", {"true"}});
    const auto rows = Planned("").search(given);
    int impossible = 0;
    for (const Row& row : rows) {
        if (row.outcome != Outcome::impossible) continue;
        ++impossible;
        EXPECT_THAT(row.reason, HasSubstr("NO_SHARD"));
    }
    EXPECT_GT(impossible, 0);
    EXPECT_LT(impossible, std::ssize(rows));
}

// A block: matmuls of 12 h^2 weights for s b tokens, 2 operations forward and 4 backward; attention's two
// matmuls, 4 s h for each token forward and twice that backward; the head h v. Causal attention is counted by
// the Plan as it is executed.
TEST(Planner, ModelFlopsAreThoseOfThePaper) {
    const double tokens = 64, h = 64, layers = 4, v = 256;
    const double products = 6 * tokens * (12 * h * h * layers + h * v);
    const double attention = 12 * tokens * 32 * h * layers;
    const job::Job plain = planned_job("");
    const double counted = model_flops(sharding::Program(sim::placed_on(plain, round_cluster())));
    EXPECT_GE(counted, products);
    EXPECT_LE(counted, (products + attention) * 1.05);
    // Checkpointing computes more, but the model's own operations stay the same.
    const job::Job again = planned_job("[memory]\nactivation_checkpointing = \"module:Block\"\n");
    EXPECT_EQ(model_flops(sharding::Program(sim::placed_on(again, round_cluster()))), counted);
}

TEST(Planner, RatesArePerPrecisionAndShareOfCores) {
    sim::Cluster cluster = round_cluster();  // 1e9 fp32, 2e9 tf32, 4e9 bf16
    EXPECT_EQ(peak_rate(planned_job(""), cluster), 1e9);
    EXPECT_EQ(peak_rate(planned_job("[precision]\ntf32 = true\n"), cluster), 2e9);
    EXPECT_EQ(peak_rate(planned_job("[precision]\nparam = \"bf16\"\n"), cluster), 4e9);
    cluster.device.cores = 1;  // shared by 2 ranks
    EXPECT_EQ(peak_rate(planned_job(""), cluster), 0.5e9);
}

TEST(Planner, Fp16HasItsRateOnV100AndA100) {
    const auto rate = [](const char* param, const char* cluster) {
        return peak_rate(planned_job(std::string("[precision]\nparam = \"") + param + "\"\n"),
                         sim::load_cluster(cluster));
    };
    EXPECT_EQ(rate("fp16", "v100_pcie"), 1.12e14);
    EXPECT_EQ(rate("bf16", "v100_pcie"), rate("fp32", "v100_pcie"));
    EXPECT_EQ(rate("fp16", "a100"), 3.12e14);
    EXPECT_EQ(rate("bf16", "a100"), 3.12e14);
}

// In the job's own precision; the narrow type that a search tries beside fp32 is fp16 then.
TEST(Planner, FiguresOfFp16AreTheSimulators) {
    const Planned planned("[precision]\nparam = \"fp16\"\n", sim::load_cluster("v100_pcie"));
    const auto rows = planned.search(kFew);
    ASSERT_FALSE(rows.empty());
    for (const Row& row : rows) {
        ASSERT_EQ(row.outcome, Outcome::fits) << row.reason;
        const job::Job job = planned.job(row.settings);
        EXPECT_NE(job.precision.param, job::Precision::bf16);
        const sharding::Program program(sim::placed_on(job, planned.cluster()));
        const sim::SimResult result = sim::simulate(program, planned.cluster());
        EXPECT_EQ(row.times.step, result.average_step_s);
        EXPECT_EQ(row.peak.bytes, result.of(0).peak.bytes);
        EXPECT_EQ(row.peak.bytes, program.predict().peak.bytes);
    }
}

TEST(Planner, CostsFollowThePrice) {
    sim::Cluster cluster = round_cluster();
    cluster.device.price_per_hour = 3.6;  // 2 ranks: 0.002 USD per second
    const Planned planned("", cluster);
    std::vector<Given> given = kFew;
    given.push_back({"fsdp.sharding_strategy", {"FULL_SHARD"}});
    const auto rows = planned.search(given);
    ASSERT_FALSE(rows.empty());
    for (const Row& row : rows) EXPECT_NEAR(row.cost, 0.002 / row.tokens_per_s * 1e6, 1e-9 * row.cost);

    cluster.ranks_per_device = 2;  // of one device, which has half of their arithmetic
    const auto shared = Planned("", cluster).search(given);
    for (std::size_t i = 0; i < shared.size(); ++i) {
        const Row& row = shared[i];
        EXPECT_NEAR(row.cost, 0.001 / row.tokens_per_s * 1e6, 1e-9 * row.cost);
        EXPECT_NEAR(row.mfu * row.times.step, 2 * rows[i].mfu * rows[i].times.step, 1e-9);
    }
}

TEST(Planner, AJobFileMakesTheSameJob) {
    const Planned planned("[fsdp]\nlayout = \"lean\"\n[train]\nclip_norm = 0.1\n");
    for (const Candidate& candidate : planned.candidates(kFew)) {
        job::Job job;
        try {
            job = planned.job(candidate.settings);
        } catch (const job::JobError&) {
            continue;  // NO_SHARD is not lean
        }
        const std::string file = job_file(job, "two\nlines");
        EXPECT_THAT(file, ::testing::StartsWith("# two\n# lines\n\n[run]\n"));
        EXPECT_EQ(describe(job::parse_job(file, "again.toml")), describe(job)) << file;
    }
    // A value equal to the plain default, which another key's default would change.
    const job::Job job = job::parse_job(
        "[optimizer]\ntype = \"adamw\"\nweight_decay = 0\n[checkpoint]\nsave = 'a\"b\\c'\n", "job.toml");
    EXPECT_EQ(describe(job::parse_job(job_file(job), "again.toml")), describe(job));
}

// The talk's arithmetic: 16 bits and Adam take 2 + 2 + 12 bytes per parameter.
TEST(Planner, AnatomyIsThePapers) {
    const Planned planned("[precision]\nparam = \"bf16\"\n");
    const Row row = evaluate({{}}, 1, planned.make_job, planned.cluster_of);
    const Anatomy anatomy = anatomy_of(row, planned.cluster());
    const auto p = static_cast<double>(anatomy.parameters);
    EXPECT_EQ(anatomy.stage, 3);
    EXPECT_EQ(anatomy.devices, 2);
    const auto& [model, gradients, optimizer, activations] = anatomy.parts;
    using Stages = std::array<double, kZeroStages>;
    EXPECT_EQ(model.bytes, (Stages{2 * p, 2 * p, 2 * p, p}));
    EXPECT_EQ(gradients.bytes, (Stages{2 * p, 2 * p, p, p}));
    EXPECT_EQ(optimizer.bytes, (Stages{12 * p, 6 * p, 6 * p, 6 * p}));
    // s b h L (34 + 5 a s / h), without the last term if attention is fused, as on this GPU.
    EXPECT_EQ(activations.here, 32.0 * 2 * 64 * 4 * 34);
    double simulated = 0;
    for (const auto& part : anatomy.parts) simulated += part.simulated;
    EXPECT_EQ(simulated, static_cast<double>(row.peak.bytes));
    EXPECT_EQ(optimizer.simulated, 8 * p / 2);  // the fp32 parameters count as parameters there
}

// Of a host that is too small for the optimizer: what the ring and the gradients take still fits.
TEST(Planner, FindsThatFilesMakeRoom) {
    const auto rows_on = [](double memory) {
        sim::Cluster cluster = testing::round_cluster();
        cluster.host.memory = memory;
        const Planned planned("[memory]\noffload = \"optimizer\"\nnvme = \"/nvme\"\n", cluster);
        return planned.search({{"fsdp.cpu_offload", {"false"}}, {"memory.offload", {"optimizer"}}});
    };
    const auto host_of = [](const Row& row) {
        return row.peak.spaces[static_cast<std::size_t>(plan::MemorySpace::pinned)] +
               row.peak.spaces[static_cast<std::size_t>(plan::MemorySpace::host)];
    };
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), least_with_files = least;
    int ranks = 0;
    for (const Row& row : rows_on(0)) {
        if (!row.can_be()) continue;
        ranks = row.job.run.ranks;
        std::int64_t& own = row.job.memory.nvme.empty() ? least : least_with_files;
        own = std::min(own, host_of(row));
    }
    ASSERT_LT(1.2 * static_cast<double>(least_with_files), static_cast<double>(least));
    int in_files = 0;
    for (const Row& row : rows_on(static_cast<double>(least * ranks) - 1)) {
        if (!row.can_be()) continue;
        if (row.job.memory.nvme.empty()) {
            EXPECT_FALSE(row.fits());
            EXPECT_THAT(row.reason, HasSubstr("the host's memory is full"));
        } else {
            in_files += row.fits() ? 1 : 0;
        }
    }
    EXPECT_GT(in_files, 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::planner
