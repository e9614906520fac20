// A trace written by the trainer is complete: every promised row exists and is consistent with the others.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;

class WholeTrace : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(TraceContent, WholeTrace, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return to_string(way.param); });

const std::string kWork =
    "WITH work AS (SELECT deviceId, streamId, start, \"end\", correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL"
    " UNION ALL SELECT deviceId, streamId, start, \"end\", correlationId FROM CUPTI_ACTIVITY_KIND_MEMCPY"
    " UNION ALL SELECT deviceId, streamId, start, \"end\", correlationId FROM CUPTI_ACTIVITY_KIND_MEMSET) ";

void expect_sound_events(const std::string& trace) {
    EXPECT_GT(number(trace, kWork + "SELECT count(*) FROM work"), 0);
    EXPECT_EQ(number(trace, kWork + "SELECT count(*) FROM work WHERE \"end\" < start OR start < 0"), 0);
    EXPECT_EQ(
        number(trace, kWork + "SELECT count(*) FROM work WHERE correlationId NOT IN (SELECT correlationId "
                              "FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId IS NOT NULL)"),
        0)
        << "device events without a launch";
    EXPECT_EQ(number(trace, kWork + "SELECT count(*) FROM work JOIN CUPTI_ACTIVITY_KIND_RUNTIME c USING "
                                    "(correlationId) WHERE work.start < c.start"),
              0)
        << "device events before their launch";
    EXPECT_EQ(
        number(trace, kWork + "SELECT count(*) FROM (SELECT start, lag(\"end\") OVER (PARTITION BY deviceId, "
                              "streamId ORDER BY start, \"end\") AS before FROM work) WHERE start < before"),
        0)
        << "events that overlap on a stream";
    // Ranges of a thread nest: none begins inside another and ends outside it.
    EXPECT_EQ(number(trace,
                     "SELECT count(*) FROM NVTX_EVENTS a JOIN NVTX_EVENTS b ON a.globalTid = b.globalTid "
                     "AND a.start < b.start AND b.start < a.\"end\" AND a.\"end\" < b.\"end\" "
                     "WHERE a.eventType = 59 AND b.eventType = 59"),
              0);
}

// Each rank's collectives in the order in which they ran.
void expect_one_order(const std::string& trace, int ranks) {
    const auto order = [&](int rank) {
        return rows(
            trace,
            "SELECT group_id, operation, bytes, coalesce(unit, ''), sequence FROM collectives WHERE rank = " +
                std::to_string(rank) + " ORDER BY group_id, start_ns, end_ns");
    };
    const auto first = order(0);
    EXPECT_EQ(first.empty(), ranks == 1);
    for (int rank = 1; rank < ranks; ++rank) EXPECT_EQ(order(rank), first) << "rank " << rank;
    for (std::size_t i = 1; i < first.size(); ++i) EXPECT_LT(first[i - 1][4], first[i][4]) << i;
    // A collective does not end before all ranks have begun it.
    EXPECT_EQ(number(trace,
                     "SELECT count(*) FROM (SELECT max(start_ns) AS last_start, min(end_ns) AS first_end "
                     "FROM collectives GROUP BY group_id, sequence) WHERE first_end < last_start"),
              0);
}

TEST_P(WholeTrace, HasConsistentRowsOfEveryKind) {
    const TracedRun run(GetParam());
    const std::string& trace = run.trace();
    const Outcome check = trace_tool({"check", trace});
    EXPECT_EQ(check.status, 0) << check.out << check.err;
    expect_sound_events(trace);
    expect_one_order(trace, run.ranks());

    const Json info = trace_json({"info", trace});
    EXPECT_EQ(info.at("ended"), true);
    EXPECT_EQ(info.at("dropped"), 0);
    EXPECT_EQ(info.at("ranks"), run.ranks());
    EXPECT_THAT(info.at("device"), HasSubstr("(cpu device)"));
    EXPECT_THAT(info.at("device_note"), HasSubstr("no CUDA or NCCL code ran"));
    EXPECT_EQ(number(trace, "SELECT count(*) FROM steps"), kSteps * run.ranks());

    // The losses are equal bit for bit.
    const auto stored = rows(trace, "SELECT loss FROM SHARD_LOSSES ORDER BY step");
    ASSERT_EQ(stored.size(), static_cast<std::size_t>(kSteps));
    for (std::size_t step = 0; step < stored.size(); ++step)
        EXPECT_EQ(std::get<double>(stored[step][0]), run.result().at("losses").at(step).get<double>());

    // Every step has its metrics, at the sample up to which it trained; the first has no rate, as nobody
    // knows when it ended.
    const std::string unit = GetParam() == Way::gpt ? "tokens" : "samples";
    for (const std::string& name : {std::string("loss"), std::string("learning_rate"), unit + "_per_second",
                                    std::string("allocated_bytes"), std::string("peak_bytes")}) {
        EXPECT_EQ(number(trace,
                         "SELECT count(DISTINCT step) FROM metrics WHERE rank IS NULL AND value > 0 AND "
                         "time_ns > 0 AND sample = (step + 1) * (SELECT min(sample) FROM metrics) AND "
                         "name = '" +
                             name + "'"),
                  name.ends_with("_per_second") ? kSteps - 1 : kSteps)
            << name;
    }
    EXPECT_EQ(number(trace, "SELECT CAST(max(value) AS INTEGER) FROM metrics WHERE name = 'peak_bytes'"),
              number(trace, "SELECT max(peakBytes) FROM SHARD_PREDICTION"));

    // The input and the target of each batch are copied.
    EXPECT_EQ(number(trace, "SELECT count(*) FROM memcpys WHERE kind = 'Host-to-Device'"),
              2 * kSteps * run.ranks());
    const std::int64_t batch = GetParam() == Way::gpt    ? 2 * 16 * 4   // 2 samples of 16 tokens, int32
                               : GetParam() == Way::none ? 32 * 64 * 4  // 32 rows of 64 floats
                                                         : 8 * 64 * 4;
    EXPECT_EQ(number(trace, "SELECT count(*) FROM memcpys WHERE kind = 'Host-to-Device' AND bytes <> " +
                                std::to_string(batch)),
              0);

    const auto calls = texts(trace, "SELECT DISTINCT name FROM calls");
    EXPECT_THAT(calls, Each(MatchesRegex("cuda[A-Za-z]+_v[0-9]+")));
    EXPECT_THAT(calls, Contains("cudaLaunchKernel_v7000"));
    EXPECT_EQ(number(trace, "SELECT count(*) FROM TARGET_INFO_GPU"), run.ranks()) << "a rank is a device";

    struct stat file {};
    ASSERT_EQ(::stat(trace.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600u) << "for its owner only";
}

TEST_P(WholeTrace, AnswersTheUsualQueries) {
    const TracedRun run(GetParam());
    const auto kernels =
        rows(run.trace(),
             "SELECT s.value, count(*), sum(k.end-k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
             "JOIN StringIds s ON s.id=k.shortName GROUP BY 1");
    EXPECT_GT(kernels.size(), 4u);
    for (const auto& kernel : kernels) {
        EXPECT_GT(std::get<std::int64_t>(kernel.at(1)), 0);
        EXPECT_GE(std::get<std::int64_t>(kernel.at(2)), 0);
    }
    int queries = 0;
    for (const auto& entry : fs::directory_iterator(sample("queries"))) {
        if (entry.path().extension() != ".sql") continue;
        ++queries;
        const Json result = trace_json({"query", run.trace(), entry.path().string()});
        // A single rank has no units and no collectives, and never waits; none of these runs has a server.
        if (GetParam() == Way::none || entry.path().stem() == "staleness") continue;
        EXPECT_FALSE(result.at("rows").empty()) << entry.path().filename();
    }
    EXPECT_GE(queries, 8);
}

TEST(TraceContent, CollectivesAreKernelsAndRanges) {
    const TracedRun run(Way::per_layer);
    const std::string ranks = std::to_string(run.ranks());
    // On each rank, each of them has a kernel, a range of the NCCL domain, and a row of SHARD_COLLECTIVES.
    const std::int64_t gathers = 2 * kMlpLayers * kSteps, reductions = kMlpLayers * kSteps;
    const auto count = [&](const std::string& from) {
        return number(run.trace(), "SELECT count(*) FROM " + from) / run.ranks();
    };
    EXPECT_EQ(count("kernels WHERE name = 'ncclDevKernel_AllGather_local'"), gathers);
    EXPECT_EQ(count("kernels WHERE name = 'ncclDevKernel_ReduceScatter_local'"), reductions);
    EXPECT_EQ(count("ranges WHERE name = 'ncclAllGather' AND domain = 'NCCL'"), gathers);
    EXPECT_EQ(count("ranges WHERE name = 'ncclReduceScatter' AND domain = 'NCCL'"), reductions);
    EXPECT_EQ(number(run.trace(),
                     "SELECT count(*) FROM kernels k LEFT JOIN SHARD_COLLECTIVES c ON c.correlationId = "
                     "k.correlation AND c.rank = k.rank WHERE k.communication <> (c.rank IS NOT NULL)"),
              0);
    EXPECT_EQ(number(run.trace(), "SELECT count(*) FROM collectives WHERE group_size <> " + ranks), 0);
    EXPECT_THAT(texts(run.trace(), "SELECT DISTINCT stream_name FROM kernels WHERE communication"),
                UnorderedElementsAre("unshard", "post_backward"));
    EXPECT_THAT(texts(run.trace(), "SELECT DISTINCT stream_name FROM kernels WHERE NOT communication"),
                UnorderedElementsAre("compute"));
}

// Each range, from the module down to the wait, is inside the previous one, on the same thread.
TEST(TraceContent, RangesNestDownToTheRateLimitersWait) {
    const TracedRun run(Way::per_layer);
    const std::vector<std::string> names = {
        "nn.Module: FullyShardedDataParallel_0",
        "FullyShardedDataParallel.forward",
        "nn.Module: MLP_0",
        "nn.Module: Sequential_0",
        "nn.Module: FullyShardedDataParallel_3",
        "FullyShardedDataParallel.forward",
        "FullyShardedDataParallel._pre_forward",
        "_pre_forward_unshard",
        "_unshard",
        "FullyShardedDataParallel.rate_limiter",
    };
    std::string from, where;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string self = "n" + std::to_string(i), around = "n" + std::to_string(i - 1);
        from += (i == 0 ? "" : " JOIN ") + std::string("NVTX_EVENTS ") + self;
        if (i > 0) {
            from += " ON " + self + ".globalTid = " + around + ".globalTid AND " + around +
                    ".start <= " + self + ".start AND " + self + ".\"end\" <= " + around + ".\"end\" AND " +
                    self + ".rowid <> " + around + ".rowid";
        }
        where += (i == 0 ? "" : " AND ") + self + ".text = '" + names[i] + "'";
    }
    const std::string inner = "n" + std::to_string(names.size() - 1);
    const std::int64_t found =
        number(run.trace(), "SELECT count(DISTINCT c.start) FROM " + from +
                                " JOIN CUPTI_ACTIVITY_KIND_RUNTIME c ON c.globalTid = " + inner +
                                ".globalTid AND " + inner + ".start <= c.start AND c.\"end\" <= " + inner +
                                ".\"end\" JOIN StringIds s ON s.id = c.nameId AND s.value = "
                                "'cudaEventSynchronize_v3020' WHERE " +
                                where);
    // The third unit's gather waits in every step, including the first: two frees are queued by then.
    EXPECT_EQ(found, kSteps * run.ranks());
    EXPECT_EQ(number(TracedRun(Way::per_layer, {"--fsdp.limit_all_gathers=false"}).trace(),
                     "SELECT count(*) FROM ranges WHERE name = 'FullyShardedDataParallel.rate_limiter'"),
              0);
}

TEST(TraceContent, StoresTheJobAsItRan) {
    const TracedRun run(Way::per_layer, {"--optimizer.lr=0.25"});
    const Json config = trace_json({"info", run.trace()}).at("config");
    EXPECT_EQ(config.at("run.steps"), std::to_string(kSteps));
    EXPECT_EQ(config.at("run.ranks"), "4");
    EXPECT_EQ(config.at("model.type"), "mlp");
    EXPECT_EQ(config.at("model.width"), "64");
    EXPECT_EQ(config.at("parallel.mode"), "fsdp");
    EXPECT_EQ(config.at("fsdp.wrap"), "module:Linear");
    EXPECT_EQ(config.at("fsdp.layout"), "fsdp1");
    EXPECT_EQ(config.at("optimizer.type"), "sgd");
    EXPECT_EQ(config.at("optimizer.lr"), "0.25");
    EXPECT_FALSE(config.at("blas.core").get<std::string>().empty());
    EXPECT_EQ(config.at("device"), "cpu");
}

TEST(TraceContent, IsWrittenWhereTheJobFileSays) {
    const TemporaryFolder folder;
    const std::string trace = folder / "by_key.sqlite";
    write_file(folder / "job.toml",
               "[run]\nsteps = 1\nranks = 2\ntrace = \"" + trace + "\"\n[model]\nwidth = 16\nlayers = 2\n");
    EXPECT_EQ(train_json({folder / "job.toml"}).at("trace"), trace);
    EXPECT_EQ(trace_tool({"check", trace}).status, 0);
    // A second run needs permission to replace the trace.
    EXPECT_EQ(train({folder / "job.toml"}).status, 2);
    EXPECT_EQ(train({folder / "job.toml", "--run.overwrite"}).status, 0);
    EXPECT_EQ(train({folder / "job.toml", "--overwrite"}).status, 0);
    int files = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path())) ++files;
    EXPECT_EQ(files, 2) << "the job and the trace, nothing beside";
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
