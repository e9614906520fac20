// Runs merge and slice of the real shardscope-trace as users call them. The job is described in
// tests/traces/part_files.h.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/trace_tool.h"
#include "tests/traces/part_files.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MergeTool : public TraceToolTest {
  protected:
    std::string part(int rank, std::int64_t clock_ns = 0) const {
        traces::PartSpec spec;
        spec.path = folder_ / ("part" + std::to_string(rank) + ".sqlite");
        spec.ranks = {rank};
        spec.host = "node" + std::to_string(rank);
        spec.clock_ns = clock_ns;
        return traces::write_part(spec);
    }
    std::string out() const { return folder_ / "out.sqlite"; }
    std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
    }
};

TEST_F(MergeTool, HelpNamesEveryOption) {
    EXPECT_THAT(tool({"--help"}).out, AllOf(HasSubstr("merge"), HasSubstr("slice")));
    EXPECT_THAT(tool({"merge", "--help"}).out,
                AllOf(HasSubstr("--output"), HasSubstr("--overwrite"), HasSubstr("collectives")));
    EXPECT_THAT(tool({"slice", "--help"}).out, AllOf(HasSubstr("--rank"), HasSubstr("--step"),
                                                     HasSubstr("--range"), HasSubstr("--overwrite")));
}

TEST_F(MergeTool, MergesAndPrintsTheResidualBetweenTheClocks) {
    const std::string a = part(0), b = part(1, 3'000'000);
    const Outcome outcome = tool({"merge", a, b, "-o", out()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                HasSubstr("3 collectives in common end within 0.000 µs (median; 0.000 µs at worst; "
                          "3000.000 µs by the wall clock alone)"));
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(tool({"check", out()}).status, 0);
    EXPECT_EQ(json_of({"info", out()}).at("ranks"), 2);
    expect_refused({"merge", a, b, "-o", out()}, 2, "--overwrite");
    EXPECT_EQ(tool({"merge", a, b, "-o", out(), "--overwrite"}).status, 0);
}

TEST_F(MergeTool, GivesOneRowForEachPart) {
    const Outcome merged = tool({"merge", part(0), part(1, 3'000'000), "-o", out(), "--format", "json"});
    EXPECT_EQ(merged.status, 0);
    EXPECT_THAT(merged.err, HasSubstr(" rows of 2 parts; clocks: "));
    const json rows = json::parse(merged.out, nullptr, false);
    const auto& columns = rows.at("columns");
    const auto column = [&](const char* name) {
        return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
    };
    ASSERT_EQ(rows.at("rows").size(), 2u);
    EXPECT_EQ(rows["rows"][1][column("ranks")], "1");
    EXPECT_EQ(rows["rows"][1][column("by_collectives_us")], -3000);
    EXPECT_EQ(rows["rows"][1][column("collectives_in_common")], 3);
}

TEST_F(MergeTool, ReportsHowWellClocksWereMeasured) {
    // node1's CLOCK_MONOTONIC is 40 s behind; the measured offset is wrong by 15 us, with an uncertainty of
    // 20.
    std::vector<std::string> parts;
    for (int rank = 0; rank < 2; ++rank) {
        traces::PartSpec spec;
        spec.path = folder_ / ("measured" + std::to_string(rank) + ".sqlite");
        spec.ranks = {rank};
        spec.host = "node" + std::to_string(rank);
        spec.system_ns = (90 - 40 * rank) * std::int64_t{1'000'000'000};
        spec.clock_ns = 3'000'000 * rank;
        if (rank == 1) {
            for (const std::int64_t at : {std::int64_t{0}, 3 * traces::kStepNs})
                spec.clocks.push_back({1, at, 40'000'015'000, 20'000});
        }
        parts.push_back(traces::write_part(spec));
    }
    const Outcome outcome = tool({"merge", parts[0], parts[1], "-o", out()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(
        outcome.out,
        AllOf(HasSubstr("clocks: measured to within 20.0"),
              HasSubstr("3 collectives in common end within 0.000 µs (median; 0.000 µs at worst; 15.000 "
                        "µs by the measurements alone; 3000.000 µs by the wall clock alone)")));
    EXPECT_THAT(tool({"distributed", out()}).out,
                HasSubstr("Clocks: measured to within 20.0 µs; 3 collectives "
                          "end within 0.0 µs on all parts"));
    EXPECT_THAT(tool({"info", out()}).out, HasSubstr("0 on node0; 1 on node1"));
}

TEST_F(MergeTool, CutsSteps) {
    const std::string whole = part(0);
    EXPECT_EQ(tool({"slice", whole, "--step", "1:2", "-o", out()}).status, 0);
    traces::store::Database slice(out(), traces::store::Database::Mode::read_only);
    EXPECT_EQ(slice.integer("SELECT count(*) FROM SHARD_STEPS"), 2);
    EXPECT_EQ(slice.integer("SELECT min(step) FROM SHARD_STEPS"), 1);
    EXPECT_EQ(json_of({"summary", out()}).at("ranks").at(0).at("steps"), 2);
}

TEST_F(MergeTool, RefusesWrongCommandLines) {
    const std::string a = part(0);
    expect_refused({"merge", a}, 2, "--output");
    expect_refused({"merge", "-o", out()}, 2, "IN");
    expect_refused({"merge", a, folder_ / "missing.sqlite", "-o", out()}, 2, "does not exist");
    expect_refused({"merge", a, a, "-o", out()}, 1, "given twice");
    expect_refused({"merge", a, "-o", folder_ / "no/such/out.sqlite"}, 2, "there is no folder");
    expect_refused({"slice", a, "-o", out()}, 2, "--rank, --step or --range");
    expect_refused({"slice", a, "-o", out(), "--rank", "0,x"}, 2, "not a list of ranks");
    expect_refused({"slice", a, "-o", out(), "--rank", "3-1"}, 2, "not a list of ranks");
    expect_refused({"slice", a, "-o", out(), "--rank", "7"}, 1, "no such rank");
    expect_refused({"slice", a, "-o", out(), "--step", "5:2"}, 2, "swap them");
    expect_refused({"slice", a, "-o", out(), "--range", "2ms:1ms"}, 2, "is empty");
    EXPECT_EQ(files(), 1u);
}

TEST_F(MergeTool, LeavesNothingWhenCtrlCStopsIt) {
    const std::string path = folder_ / "large.sqlite";
    {
        traces::store::DatabaseWriter writer({.path = path});
        writer.add(traces::schema::RankRow{.rank = 0,
                                           .global_pid = traces::schema::global_pid(1),
                                           .global_tid = traces::schema::global_tid(1, 1)});
        for (std::int64_t i = 0; i < 800'000; ++i) {
            writer.add(traces::schema::RangeRow{.start = i * 10,
                                                .end = i * 10 + 5,
                                                .text = writer.intern("work"),
                                                .global_tid = traces::schema::global_tid(1, 1)});
        }
        writer.commit();  // it is then killed: finalizing is not tested here
    }
    const std::size_t before = files();
    const Outcome outcome = run_command({"timeout", "--preserve-status", "-s", "INT", "0.15",
                                         SHARDSCOPE_TRACE, "slice", path, "--rank", "0", "-o", out()});
    EXPECT_EQ(outcome.status, 130) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("was not written"));
    EXPECT_FALSE(fs::exists(out()));
    EXPECT_EQ(files(), before);
}

#ifdef SHARDSCOPE_TRAIN
// A real run is split by rank and merged again: every rank has the same numbers as before.
TEST_F(MergeTool, GivesARealRunBack) {
    const std::string run = folder_ / "run.sqlite";
    const Outcome trained = run_command({SHARDSCOPE_TRAIN, SHARDSCOPE_SAMPLES "/mlp.toml", "--run.ranks=2",
                                         "--run.steps=4", "--model.width=64", "--trace", run});
    ASSERT_EQ(trained.status, 0) << trained.err;
    for (const char* rank : {"0", "1"}) {
        ASSERT_EQ(tool({"slice", run, "--rank", rank, "-o", folder_ / (std::string("rank") + rank)}).status,
                  0);
    }
    {
        traces::store::Database moved(folder_ / "rank1", traces::store::Database::Mode::read_write);
        moved.execute("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + 3000000");
        moved.execute("UPDATE SHARD_RANKS SET host = 'elsewhere'");
    }
    ASSERT_EQ(tool({"merge", folder_ / "rank0", folder_ / "rank1", "-o", out()}).status, 0);
    EXPECT_EQ(tool({"check", out()}).status, tool({"check", run}).status);
    for (const char* rank : {"0", "1"}) {
        const auto both = [&](const char* verb) {
            return std::pair(json_of({verb, run, "--rank", rank}).at("ranks").at(0),
                             json_of({verb, out(), "--rank", rank}).at("ranks").at(0));
        };
        const auto summary = both("summary");
        EXPECT_EQ(summary.first.at("categories"), summary.second.at("categories"));
        EXPECT_EQ(summary.first.at("average_step_us"), summary.second.at("average_step_us"));
        const auto memory = both("memory");
        EXPECT_EQ(memory.first.at("peak_bytes"), memory.second.at("peak_bytes"));
        EXPECT_EQ(memory.first.at("at_peak"), memory.second.at("at_peak"));
        EXPECT_EQ(memory.first.at("units"), memory.second.at("units"));
        const auto collectives = both("collectives");
        EXPECT_EQ(collectives.first, collectives.second);
        const auto modules = both("modules");
        EXPECT_EQ(modules.first, modules.second);
    }
}
#endif

}  // namespace TEST_FILE
}  // namespace shardscope::tools
