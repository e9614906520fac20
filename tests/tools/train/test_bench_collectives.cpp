// shardscope-train --bench-collectives: every collective and message at every size, printed and recorded, for
// ranks that are threads and for ranks that are processes; several engines side by side.
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<std::int64_t> kSizes = {8, 16, 64, 256, 1 << 10, 4 << 10};
constexpr const char* kRange = "--sizes=8:4K";

void expect_every_collective(const Json& result) {
    std::map<std::string, std::vector<std::int64_t>> sizes;
    for (const Json& row : result.at("collectives")) {
        sizes[row.at("name")].push_back(row.at("bytes"));
        const double us = row.at("us");
        EXPECT_GT(us, 0);
        EXPECT_GT(row.at("latency_us"), 0.0);
        EXPECT_GT(row.at("bound_us"), 0.0);
        EXPECT_DOUBLE_EQ(row.at("algbw_gbps"), static_cast<double>(row.at("bytes")) / us / 1e3);
        // For two ranks: (n - 1) / n = 1/2, 2 (n - 1) / n = 1 for all_reduce, 1 for broadcast.
        const bool whole = row.at("name") == "all_reduce" || row.at("name") == "broadcast";
        EXPECT_DOUBLE_EQ(row.at("busbw_gbps"), row.at("algbw_gbps").get<double>() * (whole ? 1 : 0.5));
    }
    ASSERT_EQ(sizes.size(), 5u);
    for (const auto& [name, own] : sizes) EXPECT_EQ(own, kSizes) << name;
}

// Between ranks 0 and 1; `wire`: whether also over a wire alone.
void expect_messages(const Json& result, bool wire) {
    std::vector<std::int64_t> sizes;
    for (const Json& row : result.at("messages")) {
        EXPECT_EQ(row.at("from"), 0);
        EXPECT_EQ(row.at("to"), 1);
        sizes.push_back(row.at("bytes"));
        EXPECT_EQ(row.at("wire").is_object(), wire);
        std::vector<Json> both = {row};
        if (wire) both.push_back(row.at("wire"));
        for (const Json& times : both) {
            const auto bytes = static_cast<double>(row.at("bytes"));
            EXPECT_GT(times.at("latency_us"), 0.0);
            EXPECT_DOUBLE_EQ(times.at("one_way_gbps"), bytes / times.at("us").get<double>() / 1e3);
            EXPECT_DOUBLE_EQ(times.at("both_ways_gbps"), 2 * bytes / times.at("both_us").get<double>() / 1e3);
        }
    }
    EXPECT_EQ(sizes, kSizes);
}

void expect_recorded(const std::string& trace, const std::string& engine) {
    std::map<std::string, std::int64_t> largest, all;  // counts by rank and operation: "0 send"
    for (const std::string& text :
         texts(trace,
               "SELECT rank || ' ' || operation || ' ' || bytes || ' ' || count(*) FROM collectives "
               "GROUP BY rank, operation, bytes")) {
        std::istringstream words(text);
        std::string rank, operation;
        std::int64_t bytes = 0, count = 0;
        words >> rank >> operation >> bytes >> count;
        all[rank + " " + operation] += count;
        if (bytes == kSizes.back()) largest[rank + " " + operation] += count;
    }
    for (const std::string rank : {"0 ", "1 "}) {
        for (const std::string operation :
             {"all_gather", "reduce_scatter", "all_reduce", "broadcast", "all_to_all", "send", "recv"})
            EXPECT_GT(largest[rank + operation], 5) << rank + operation;
        EXPECT_EQ(all[rank + "send"], all[(rank == "0 " ? "1 " : "0 ") + std::string("recv")])
            << "what one rank sends the other receives";
        // Each measurement is a step.
        EXPECT_GT(number(trace, "SELECT count(*) FROM SHARD_STEPS WHERE rank = " + rank), 5 * 6 * 15);
    }
    EXPECT_EQ(texts(trace,
                    "SELECT DISTINCT value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON "
                    "id = shortName WHERE value LIKE 'ncclDevKernel_AllGather%'"),
              Words{"ncclDevKernel_AllGather_" + engine});
    // The plot of bandwidth over size has a curve for each operation, with the bound.
    const Json curves = trace_json({"collectives", trace, "--by", "size"});
    std::map<std::string, std::vector<std::int64_t>> sizes;
    for (const Json& row : curves.at("sizes")) {
        sizes[row.at("operation")].push_back(row.at("bytes"));
        EXPECT_EQ(row.at("where"), "within");
        EXPECT_GT(row.at("bound_gbps"), 0.0) << row;
    }
    EXPECT_EQ(sizes.size(), 6u);
    for (const auto& [operation, own] : sizes) EXPECT_EQ(own, kSizes) << operation;
    std::set<std::pair<int, int>> pairs;
    for (const Json& pair : curves.at("pairs")) {
        pairs.emplace(pair.at("source").get<int>(), pair.at("destination").get<int>());
        EXPECT_EQ(pair.at("smallest_bytes"), 8);
    }
    EXPECT_THAT(pairs, ElementsAre(std::pair(0, 1), std::pair(1, 0)));
    EXPECT_EQ(curves.at("left_out"), 0);
}

TEST(BenchCollectives, OfThreads) {
    const TemporaryFolder folder;
    const std::string trace = folder / "bench.sqlite";
    const Json result =
        train_json({sample("mlp.toml"), "--run.ranks=2", "--bench-collectives", kRange, "--trace", trace});
    EXPECT_EQ(result.at("ranks"), 2);
    EXPECT_GT(result.at("copy_gbps"), 0.0);
    expect_every_collective(result);
    expect_messages(result, false);
    expect_recorded(trace, "local");
}

TEST(BenchCollectives, OfProcesses) {
    const TemporaryFolder folder;
    const std::string trace = folder / "bench.sqlite";
    const Json result = train_json(
        {sample("mlp.toml"), "--run.processes=2", "--bench-collectives", kRange, "--trace", trace});
    EXPECT_THAT(result.at("group").get<std::string>(), HasSubstr("2 processes on 1 host"));
    expect_every_collective(result);
    expect_messages(result, true);
    expect_recorded(trace, "tcp");
    // What the events do not show is a fact of the run: figures by size.
    EXPECT_THAT(texts(trace, "SELECT value FROM SHARD_RUN WHERE key = 'bench.wire_latency_us'").at(0),
                AllOf(StartsWith("8:"), HasSubstr(" 4096:")));
}

TEST(BenchCollectives, OfAllPairsAreMatrices) {
    const Words words = {sample("mlp.toml"), "--run.ranks=3", "--bench-collectives", "--sizes=8:4K",
                         "--pairs"};
    const Outcome outcome = train(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("Latency of 8 B in µs"),
                                   HasSubstr("Bandwidth of 4 KiB one way in GB/s"), HasSubstr("From \\ to")));
    Words csv = words;
    csv.insert(csv.end(), {"--format", "csv"});
    const Outcome rows = train(csv);
    EXPECT_THAT(rows.out, StartsWith("operation,from,to,ranks,bytes,"));
    for (const char* pair : {"0,2", "1,0", "1,2", "2,0", "2,1"}) {
        for (const char* bytes : {"8", "4096"})
            EXPECT_THAT(rows.out, HasSubstr("\nsend," + std::string(pair) + ",2," + bytes + ","));
    }
    EXPECT_THAT(rows.out, AllOf(HasSubstr("\nall_to_all,,,3,12,"), Not(HasSubstr("\nsend,0,0,"))));
}

// A rank that has no part in a message has the next one in a step of the same number as its other end.
TEST(BenchCollectives, OfAllPairsOfThreeProcesses) {
    const Json result = train_json({sample("mlp.toml"), "--run.processes=3", "--run.comm=tcp",
                                    "--bench-collectives", "--messages", "--sizes=8:64", "--pairs"});
    std::set<std::pair<int, int>> pairs;
    for (const Json& row : result.at("messages")) {
        pairs.emplace(row.at("from").get<int>(), row.at("to").get<int>());
        EXPECT_GT(row.at("wire").at("us"), 0.0);
    }
    EXPECT_EQ(pairs.size(), 6u);
}

TEST(BenchCollectives, OfSeveralEnginesAreSideBySide) {
    const Words words = {sample("mlp.toml"), "--run.ranks=2", "--bench-collectives", "--sizes=8:64",
                         "--engines=local,tcp,nccl"};
    const Json result = train_json(words);
    ASSERT_EQ(result.at("engines").size(), 3u);
    for (const Json& engine : result.at("engines")) {
        const bool measured = engine.at("result").is_object();
        EXPECT_NE(measured, engine.at("error").is_string());
        if (engine.at("engine") != "nccl") {
            EXPECT_TRUE(measured) << engine.at("error");
        }
        if (measured) {
            EXPECT_EQ(engine.at("result").at("collectives").size(), 5u * 3);
        }
    }
    const Outcome table = train(words);
    EXPECT_THAT(table.out, AllOf(HasSubstr("local (µs)"), HasSubstr("tcp (µs)"), HasSubstr("all_to_all"),
                                 HasSubstr("Messages, from rank 0 to rank 1 where no")));
    if (result.at("engines").at(2).at("error").is_string()) {
        EXPECT_THAT(table.out, HasSubstr("\nnccl: ")) << "with a word why";
    }
}

TEST(BenchCollectives, OfSeveralEnginesHaveAllPairs) {
    const Outcome table = train({sample("mlp.toml"), "--run.ranks=3", "--bench-collectives", "--messages",
                                 "--sizes=8:64", "--pairs", "--engines=local,tcp"});
    ASSERT_EQ(table.status, 0) << table.err;
    // Those of threads have no wire.
    for (const std::string kind : {"message", "wire"})
        for (const char* pair : {"0 to 2", "1 to 0", "1 to 2", "2 to 0", "2 to 1"})
            EXPECT_THAT(table.out, HasSubstr(kind + (" " + std::string(pair))));
    EXPECT_THAT(table.out, Not(HasSubstr("0 to 1")));
}

TEST(BenchCollectives, AreRefusedIfThereIsNothingToMeasure) {
    const Outcome alone = train({sample("mlp.toml"), "--run.ranks=1", "--bench-collectives"});
    EXPECT_EQ(alone.status, 2);
    EXPECT_THAT(alone.err, AllOf(HasSubstr("one rank has no collectives"), HasSubstr("run.ranks")));
    const Words simulated = {sample("mlp.toml"), "--run.device=sim", "--run.ranks=2", "--bench-collectives"};
    const auto refused = [&](const Words& more, const std::string& saying) {
        Words words = simulated;
        words.insert(words.end(), more.begin(), more.end());
        expect_refusal(train(words), {saying});
    };
    refused({"--trace=x.sqlite"}, "nothing runs that could be recorded");
    refused({"--engines=tcp"}, "--engines measures real devices");
    refused({"--sim.cluster=none"}, "sim.cluster: there is no cost model");
}

// 8.4 us, 3.4 us for each of three steps, and 3/4 of the bytes at 3.6e11 a second.
TEST(BenchCollectives, ArePredictedByACostModel) {
    const Words words = {
        sample("mlp.toml"), "--run.device=sim",    "--run.ranks=4", "--sim.cluster=h200_nvlink",
        "--sizes=8:64M",    "--bench-collectives", "--pairs"};
    const Json result = train_json(words);
    EXPECT_EQ(result.at("simulated"), true);
    for (const Json& row : result.at("collectives")) {
        if (row.at("name") != "all_gather") continue;
        const double model = 8.4 + 3 * 3.4 + 0.75 * row.at("bytes").get<double>() / 3.6e5;
        EXPECT_NEAR(row.at("us"), model, 1 + 0.1 * model) << row;
        EXPECT_GE(row.at("latency_us"), row.at("us"));
    }
    for (const Json& row : result.at("messages"))
        EXPECT_NEAR(row.at("us"), 8.4 + 3.4 + row.at("bytes").get<double>() / 3.6e5, 1e-6) << row;
    EXPECT_EQ(result.at("messages").size(), 13u + 11 * 2);
    EXPECT_THAT(train(words).out, AllOf(HasSubstr("over the cost model h200_nvlink"),
                                        HasSubstr("Nothing ran: the cost model predicts these times."),
                                        Not(HasSubstr("rounds counts"))));
}

TEST(BenchCollectives, WrongOptionsAreRefused) {
    const auto refused = [](const Words& options, const std::string& saying) {
        Words words = {sample("mlp.toml"), "--run.ranks=2"};
        words.insert(words.end(), options.begin(), options.end());
        expect_refusal(train(words), {saying});
    };
    for (const char* sizes :
         {"64M:8", "1:8", "8:2G", "8:", ":8", "x:y", "8:64T", "-8:8", "8:8:8", "8:99999999999999999999G"})
        refused({"--bench-collectives", std::string("--sizes=") + sizes}, "write FROM:TO");
    refused({"--sizes=8:64"}, "--bench-collectives");
    refused({"--pairs"}, "--bench-collectives");
    refused({"--engines=tcp"}, "--bench-collectives");
    refused({"--format=csv"}, "--bench-collectives");
    refused({"--bench-collectives", "--engines=smoke"}, "smoke");
    refused({"--bench-collectives", "--engines=tcp,local", "--trace=x.sqlite"}, "omit --trace");
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
