// Runs the real shardscope-trace on a run with known figures (tests/traces/sample_run.h).
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/trace_tool.h"
#include "tests/traces/sample_run.h"
#include "traces/schema/schema.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TraceTool : public TraceToolTest {
  protected:
    TraceTool() : run_(folder_ / "run.sqlite") { write(run_, true); }

    static void write(const std::string& path, bool finished) {
        traces::store::DatabaseWriter writer({.path = path, .overwrite = true});
        traces::write_sample_run(writer);
        writer.commit();
        if (finished) writer.finish(3 * traces::kSampleMs, 0);
    }

    std::string run_;
};

TEST_F(TraceTool, PrintsItsVersionAndTheSchemas) {
    const Outcome outcome = tool({"--version"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, "shardscope-trace " SHARDSCOPE_VERSION " (schema " +
                               std::to_string(traces::schema::kSchemaVersion) + ")\n");
}

TEST_F(TraceTool, HelpNamesEveryVerbAndOption) {
    const Outcome outcome = tool({"--help"});
    EXPECT_EQ(outcome.status, 0);
    for (const char* verb :
         {"info",       "summary",       "modules", "memory",   "collectives", "units",     "distributed",
          "stragglers", "scaling",       "steps",   "overlap",  "temporal",    "idle",      "kernels",
          "operators",  "critical-path", "advice",  "compare",  "query",       "report",    "export",
          "timeline",   "check",         "import",  "merge",    "slice",       "allocator", "answers",
          "metrics",    "samples",       "watch",   "topology", "utilization"}) {
        EXPECT_THAT(outcome.out, HasSubstr(verb));
        EXPECT_EQ(tool({verb, "--help"}).status, 0) << verb;
    }
    EXPECT_THAT(tool({"memory", "--help"}).out,
                AllOf(HasSubstr("--rank"), HasSubstr("--step"), HasSubstr("--range"), HasSubstr("--format"),
                      HasSubstr("--explain")));
    EXPECT_THAT(tool({"compare", "--help"}).out, HasSubstr("--fail-if"));
}

TEST_F(TraceTool, WritesATimelineThatFits) {
    const std::string page = folder_ / "timeline.html";
    const Outcome first = tool({"timeline", run_, "-o", page});
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_EQ(first.out, "");
    EXPECT_THAT(first.err, HasSubstr("timeline.html written, "));
    EXPECT_THAT(first.err, HasSubstr("Every event is shown: nothing is folded."));
    EXPECT_GT(fs::file_size(page), 30'000U);
    EXPECT_THAT(tool({"timeline", run_, "-o", page}).err, HasSubstr("--overwrite"));
    for (const auto& [option, value, sentence] :
         {std::tuple<const char*, const char*, const char*>{"--fit", "4K",
                                                            "4,096 bytes are too few for a timeline of"},
          {"--fit", "much", "--fit much: it is not a size"},
          {"--format", "json", "--format"},
          {"--rank", "77", "77"}}) {
        const Outcome refused = tool({"timeline", run_, "-o", page, "--overwrite", option, value});
        EXPECT_EQ(refused.status, 2);
        EXPECT_THAT(refused.err, HasSubstr(sentence));
    }
}

TEST_F(TraceTool, WritesThePageOfAJob) {
    const std::string page = folder_ / "job.html";
    const Outcome first = tool({"report", "--job", run_, "-o", page, "--price-per-device-hour", "2.5"});
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_THAT(first.err, HasSubstr("job.html written"));
    EXPECT_GT(fs::file_size(page), 10'000U);
    EXPECT_EQ(tool({"report", "--job", run_, "-o", page}).status, 2) << "it exists";
    EXPECT_THAT(
        tool({"report", "--job", run_, "-o", page, "--overwrite", "--price-per-device-hour", "-1"}).err,
        HasSubstr("--price-per-device-hour is a price, 0 or more"));
    // This run has no samples: its table says how to get them, and there is no picture of nothing.
    EXPECT_THAT(tool({"utilization", run_}).out, HasSubstr("has no samples"));
    for (const char* name : {"use.html", "use.svg"}) {
        const Outcome none = tool({"utilization", run_, "-o", folder_ / name});
        EXPECT_EQ(none.status, 2);
        EXPECT_THAT(none.err, HasSubstr("has no samples"));
        EXPECT_FALSE(fs::exists(folder_ / name));
    }
    EXPECT_THAT(tool({"utilization", run_, "-o", folder_ / "use.png"}).err, HasSubstr(".svg"));
}

TEST_F(TraceTool, EveryVerbPrintsInEveryFormat) {
    for (const char* verb :
         {"info",        "summary",    "modules",   "memory",        "collectives", "units",
          "distributed", "stragglers", "scaling",   "steps",         "overlap",     "temporal",
          "idle",        "kernels",    "operators", "critical-path", "advice",      "answers",
          "check",       "allocator",  "metrics",   "samples",       "utilization"}) {
        for (const char* format : {"table", "json", "csv"}) {
            std::vector<std::string> arguments = {verb, run_, "--format", format};
            if (std::string(verb) == "scaling") arguments.push_back(run_);  // it compares several runs
            const Outcome outcome = tool(arguments);
            EXPECT_EQ(outcome.status, 0) << verb << " " << format << ": " << outcome.err;
            EXPECT_EQ(outcome.err, "");
            EXPECT_FALSE(outcome.out.empty()) << verb << " " << format;
            EXPECT_EQ(outcome.out.back(), '\n');
            if (std::string(format) == "json") {
                EXPECT_FALSE(json::parse(outcome.out, nullptr, false).is_discarded()) << outcome.out;
            }
        }
    }
}

// A program under torch.profiler reports metrics by the names of ranges; a tracer by those of instants.
TEST_F(TraceTool, MetricsOfOtherProgramsAreThoseThatTheyMark) {
    const std::string file = folder_ / "run.json";
    std::ofstream(file) << R"({"schemaVersion":1,"distributedInfo":{"rank":3,"world_size":4},"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#4","pid":9,"tid":9,"ts":1000,"dur":500},
{"ph":"X","cat":"user_annotation","name":"metric loss=2.5","pid":9,"tid":9,"ts":1400,"dur":1},
{"ph":"i","cat":"user","name":"metric accuracy=0.25 step=9","pid":9,"tid":9,"ts":1450,"s":"t"}]})";
    const json metrics = json::parse(tool({"metrics", file, "--format", "json"}).out).at("metrics");
    ASSERT_EQ(metrics.size(), 2u);
    EXPECT_EQ(metrics[0].at("name"), "loss");
    EXPECT_EQ(metrics[0].at("last"), 2.5);
    EXPECT_EQ(metrics[0].at("rank"), 3);
    EXPECT_EQ(metrics[0].at("points").at(0).at("step"), 4);
    EXPECT_EQ(metrics[1].at("name"), "accuracy");
    EXPECT_EQ(metrics[1].at("points").at(0).at("step"), 9);
    EXPECT_THAT(tool({"compare", run_, run_, "--to-loss", "1.5"}).out, HasSubstr("Time to loss 1.5"));
    EXPECT_EQ(tool({"compare", run_, run_, "--to-loss", "1.5", "--by", "kernel"}).status, 2);
    const Outcome refused = tool({"metrics", file, "--to-loss", "low"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("--to-loss low is not a number; give a loss, such as 2.5"));
}

TEST_F(TraceTool, AnswersNameTheEvidenceOfTheStepsThatWereAskedFor) {
    EXPECT_THAT(tool({"answers", run_, "--step", "1:2"}).out,
                HasSubstr("$ shardscope-trace summary --step 1:2 " + run_));
}

TEST_F(TraceTool, InfoCountsTheContentOfTheFile) {
    const json info = json_of({"info", run_});
    EXPECT_EQ(info.at("schema_version"), traces::schema::kSchemaVersion);
    EXPECT_EQ(info.at("ended"), true);
    EXPECT_EQ(info.at("ranks"), 2);
    EXPECT_EQ(info.at("config").at("model.width"), "256");
}

TEST_F(TraceTool, SummaryPutsEachInstantIntoOneCategory) {
    const json summary = json_of({"summary", run_});
    ASSERT_EQ(summary.at("ranks").size(), 2u);
    const json& rank = summary["ranks"][0];
    EXPECT_EQ(rank.at("steps"), 2);
    double sum = 0;
    for (const auto& [name, category] : rank.at("categories").items()) sum += category.at("us").get<double>();
    EXPECT_NEAR(sum, rank.at("average_step_us").get<double>(), 1e-6);
    EXPECT_DOUBLE_EQ(rank["categories"]["Kernel"]["us"], 300);        // sgemm
    EXPECT_DOUBLE_EQ(rank["categories"]["Communication"]["us"], 50);  // the gather, which is entirely exposed
    EXPECT_DOUBLE_EQ(rank["categories"]["Memcpy"]["us"], 20);
    EXPECT_DOUBLE_EQ(rank["categories"]["Memset"]["us"], 5);
}

TEST_F(TraceTool, ModulesShowTheTree) {
    const json root = json_of({"modules", run_, "--rank", "0"}).at("ranks").at(0).at("modules").at(0);
    EXPECT_EQ(root.at("name"), "FullyShardedDataParallel_0");
    EXPECT_EQ(root.at("occurrences"), 2);
    EXPECT_DOUBLE_EQ(root.at("host_us"), 800);
    const json& linear = root.at("children").at(0);
    EXPECT_EQ(linear.at("name"), "Linear_0");
    EXPECT_DOUBLE_EQ(linear.at("device_us"), 600);  // two sgemm launched inside it
}

// Of the 5,096 bytes at the peak, 1,000 are the shard, and 4,096 what the root module gathered, as predicted.
TEST_F(TraceTool, MemoryExplainedHasThePredictionOfEachPart) {
    const json rank = json_of({"memory", "--explain", run_, "--rank", "1"}).at("ranks").at(0);
    EXPECT_EQ(rank.at("peak_bytes"), 5096);  // the result has all keys of `memory`
    EXPECT_EQ(rank.at("at_peak").at("unsharded_parameters"), 4096);
    const auto parts = [&](const char* kind) {
        std::map<std::string, std::pair<int, int>> all;
        for (const json& part : rank.at(kind)) {
            all[part.at("name")] = {part.at("bytes"), part.at("predicted_bytes")};
            EXPECT_EQ(part.at("difference_bytes"), 0);
        }
        return all;
    };
    using Parts = std::map<std::string, std::pair<int, int>>;
    EXPECT_EQ(parts("units"), (Parts{{"root", {5096, 5096}}}));
    EXPECT_EQ(parts("modules"),
              (Parts{{"FullyShardedDataParallel_0", {4096, 4096}}, {"(no module)", {1000, 1000}}}));
    EXPECT_EQ(parts("buffers"), (Parts{{"root flat_param", {4096, 4096}}, {"root shard", {1000, 1000}}}));
    EXPECT_EQ(parts("categories").at("parameters"), std::pair(1000, 1000));
    ASSERT_EQ(rank.at("steps").size(), 2U);
    for (const json& step : rank.at("steps")) {
        EXPECT_EQ(step.at("bytes"), 5096);
        EXPECT_EQ(step.at("predicted_bytes"), 5096);
        EXPECT_EQ(step.at("reserved_bytes"), 8192);
    }
    EXPECT_EQ(rank.at("moment").at("buffer"), "root flat_param");
    EXPECT_EQ(rank.at("pool").at("cached_at_peak_bytes"), 8192 - 5096);
    for (const char* format : {"table", "csv"}) {
        const Outcome outcome = tool({"memory", run_, "--explain", "--format", format});
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_THAT(outcome.out, HasSubstr("root flat_param"));
    }
}

TEST_F(TraceTool, MemoryShowsThePeakAndItsCategories) {
    const json memory = json_of({"memory", run_});
    for (const json& rank : memory.at("ranks")) {
        EXPECT_EQ(rank.at("peak_bytes"), 5096);
        EXPECT_EQ(rank.at("at_peak").at("parameters"), 1000);
        EXPECT_EQ(rank.at("at_peak").at("unsharded_parameters"), 4096);
        EXPECT_EQ(rank.at("predicted_peak_bytes"), 5096);
    }
    // Every single allocation, the largest first.
    const json all = json_of({"memory", run_, "--allocations", "--rank", "0"}).at("ranks").at(0);
    EXPECT_EQ(all.at("allocations").at(0).at("bytes"), 4096);
    EXPECT_EQ(all.at("allocations").at(0).at("category"), "unsharded_parameters");
    EXPECT_EQ(
        json_of({"memory", run_, "--allocations", "--top", "1"}).at("ranks").at(1).at("allocations").size(),
        1);
    EXPECT_EQ(json_of({"memory", run_, "--allocations", "--space", "pinned"}).at("ranks").at(0).at("count"),
              0);
    EXPECT_EQ(json_of({"memory", run_, "--space", "pinned"}).at("ranks").at(0).at("peak_bytes"), 0);
    // Between the free at 560 us and the next step only the parameters are allocated.
    const json late = json_of({"memory", run_, "--range", "600us:0.9ms"});
    EXPECT_EQ(late.at("ranks").at(0).at("peak_bytes"), 1000);
}

TEST_F(TraceTool, CollectivesCountBytesAndTime) {
    const json gather = json_of({"collectives", run_}).at("ranks").at(0).at("operations").at(0);
    EXPECT_EQ(gather.at("name"), "all_gather");
    EXPECT_EQ(gather.at("count"), 2);
    EXPECT_EQ(gather.at("bytes"), 8192);
    EXPECT_DOUBLE_EQ(gather.at("us"), 100);
    EXPECT_EQ(json_of({"collectives", run_, "--step", "1:1"})["ranks"][0]["operations"][0]["count"], 1);
}

TEST_F(TraceTool, CompareSetsRunsSideBySide) {
    const std::string other = folder_ / "other.sqlite";
    write(other, true);
    const json compared = json_of({"compare", run_, other});
    ASSERT_EQ(compared.at("runs").size(), 2u);
    EXPECT_EQ(compared["runs"][1].at("file"), other);
    EXPECT_EQ(compared["runs"][0].at("peak_bytes"), 5096);
}

TEST_F(TraceTool, CompareFailsIfTheConditionHolds) {
    const auto status = [&](const std::string& condition) {
        return tool({"compare", run_, run_, "--fail-if", condition}).status;
    };
    EXPECT_EQ(status("average_step_us>+5%"), 0);
    EXPECT_EQ(status("average_step_us>=+0%"), 1);
    EXPECT_EQ(status("peak_bytes > 5096"), 0);
    EXPECT_EQ(status("peak_bytes >= 5096"), 1);
    EXPECT_EQ(status("peak_bytes<+1"), 1);  // less than 5096 + 1
    EXPECT_EQ(status("at_peak.parameters<=999"), 0);
    EXPECT_EQ(status("at_peak.parameters>=-1%"), 1);
    const Outcome both =
        tool({"compare", run_, run_, "--fail-if", "peak_bytes>1", "--fail-if", "memcpy_us>1"});
    EXPECT_EQ(both.status, 1);
    EXPECT_THAT(both.err, AllOf(HasSubstr("peak_bytes is 5096"), HasSubstr("memcpy_us is 20")));
    EXPECT_THAT(both.out, Not(HasSubstr("fail-if")));
}

TEST_F(TraceTool, QueryAnswersSqlAndSqlFiles) {
    const std::string sql =
        "SELECT rank, count(*) AS n, NULL AS empty, 'a,b' AS text FROM kernels GROUP BY 1";
    const json result = json_of({"query", run_, sql});
    EXPECT_EQ(result.at("columns"), json({"rank", "n", "empty", "text"}));
    EXPECT_EQ(result.at("rows"), json::parse(R"([[0, 4, null, "a,b"], [1, 4, null, "a,b"]])"));
    EXPECT_THAT(tool({"query", run_, sql, "--format", "csv"}).out, HasSubstr("0,4,,\"a,b\""));
    EXPECT_THAT(tool({"query", run_, sql}).out, HasSubstr("empty"));
    EXPECT_EQ(
        json_of({"query", run_, file("steps.sql", "-- how many?\nSELECT count(*) FROM steps;\n")}).at("rows"),
        json::parse("[[4]]"));
    // Several results are possible only as tables for people.
    EXPECT_EQ(tool({"query", run_, "SELECT 1; SELECT 2"}).status, 0);
    expect_refused({"query", run_, "SELECT 1; SELECT 2", "--format", "json"}, 2, "2 statements");
}

// An export has none of our tables and views: `query` imports it if the SQL names one of them.
TEST_F(TraceTool, EveryBuiltInQueryRunsOnAnExportOfNsight) {
    const std::string path = folder_ / "export.sqlite";
    {
        std::ofstream(path).flush();
        traces::store::Database database(path, traces::store::Database::Mode::read_write);
        database.execute(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
            "INSERT INTO StringIds VALUES (1, 'gemm(float*)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000');"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, "
            "correlationId INT, globalPid INT, demangledName INT, shortName INT);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 300, 0, 7, 5, 16777216, 1, 2);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, "
            "nameId INT);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 16777217, 5, 3);");
    }
    const json queries = json_of({"query", "--list"}).at("rows");
    EXPECT_GE(queries.size(), 13u);
    for (const json& query : queries) {
        const Outcome outcome = tool({"query", path, query.at(0).get<std::string>(), "--format", "json"});
        EXPECT_EQ(outcome.status, 0) << query.at(0) << ": " << outcome.err;
    }
    const json kernels = json_of({"query", path, "SELECT full_name, duration_ns FROM Kernels"});
    EXPECT_EQ(kernels.at("rows"), json::parse(R"json([["gemm(float*)", 200]])json"));
    // A query that needs none of our tables runs in place, and an unknown name is refused.
    EXPECT_EQ(json_of({"query", path, "SELECT max(id) FROM StringIds"}).at("rows"), json::parse("[[3]]"));
    EXPECT_FALSE(
        traces::store::Database(path, traces::store::Database::Mode::read_only).has_table("SHARD_STATE"));
    expect_refused({"query", path, "SELECT * FROM nowhere"}, 2, "no such table: nowhere");
}

TEST_F(TraceTool, SliceAndMergeSayWhatTheyTake) {
    const std::string path = file("kineto.json", R"({"traceEvents": [{"ph": "X", "ts": 1, "dur": 2}]})");
    const std::string out = folder_ / "out.sqlite";
    expect_refused(
        {"slice", path, "-o", out, "--rank", "0"}, 2,
        "is not a database, and slice takes those of Shardscope and of Nsight Systems; import it first");
    expect_refused({"merge", path, run_, "-o", out}, 2, "is not a database, and merge takes");
}

TEST_F(TraceTool, EveryVerbRefusesJsonThatIsNotATrace) {
    const std::string path = file("other.json", R"({"a":1})");
    for (const char* verb : {"info", "summary", "steps", "kernels", "memory", "advice", "critical-path"})
        expect_refused({verb, path}, 1, "there are no traceEvents");
    expect_refused({"query", path, "SELECT 1"}, 1, "there are no traceEvents");
    expect_refused({"import", path, "-o", folder_ / "out.sqlite"}, 1, "there are no traceEvents");
    const Outcome check = tool({"check", path});
    EXPECT_EQ(check.status, 1);
    EXPECT_THAT(check.out, HasSubstr("there are no traceEvents"));
}

TEST_F(TraceTool, InfoOfADeviceWithoutANameIsNull) {
    const std::string path = file("kineto.json", R"({"deviceProperties": [], "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 2, "tid": 0, "ts": 1, "dur": 2,
         "args": {"device": 2, "stream": 0, "correlation": 1}}]})");
    EXPECT_TRUE(json_of({"info", path}).at("device").is_null());
    EXPECT_THAT(tool({"info", path}).out, HasSubstr("unknown"));
}

TEST_F(TraceTool, QueryRefusesWrongAndWritingSql) {
    expect_refused({"query", run_, "SELECT nothing FROM kernels"}, 2, "line 1, column 8");
    expect_refused({"query", run_, "DELETE FROM StringIds"}, 2, "only reads");
    expect_refused({"query", run_, "-- nothing"}, 2, "no statement with a result");
    expect_refused({"query", run_, folder_ / "none.sql"}, 2, "none.sql");
    expect_refused({"query", run_}, 2, "SQL");
}

TEST_F(TraceTool, CheckDistinguishesCompleteFromIncomplete) {
    EXPECT_EQ(tool({"check", run_}).status, 0);
    const std::string killed = folder_ / "killed.sqlite";
    write(killed, false);
    const Outcome unended = tool({"check", killed});
    EXPECT_EQ(unended.status, 1);
    EXPECT_THAT(unended.out, HasSubstr("did not end"));
    const Outcome text = tool({"check", file("text", "no database"), "--format", "json"});
    EXPECT_EQ(text.status, 1);
    EXPECT_EQ(json::parse(text.out).at("whole"), false);
}

// Every table loads, so only a check of the database itself finds the damage: an index that lost an entry.
TEST_F(TraceTool, CheckFindsDamageThatNoTableShows) {
    const std::string damaged = folder_ / "damaged.sqlite";
    fs::copy_file(run_, damaged);
    {
        traces::store::Database database(damaged, traces::store::Database::Mode::read_write);
        database.execute("CREATE INDEX extra ON SHARD_LOSSES(loss)");
        database.execute(
            "PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET sql = replace(sql, '(loss)', '(loss) WHERE loss > 2') "
            "WHERE name = 'extra'");
    }
    EXPECT_EQ(tool({"info", damaged}).status, 0);
    const Outcome check = tool({"check", damaged});
    EXPECT_EQ(check.status, 1);
    EXPECT_THAT(check.out, AllOf(HasSubstr("is damaged ("), HasSubstr("extra")));
    EXPECT_EQ(std::count(check.out.begin(), check.out.end(), '\n'), 1) << check.out;
}

TEST_F(TraceTool, RefusesFilesThatAreNotTraces) {
    const std::string bare = folder_ / "bare";
    fs::create_directory(bare);
    for (const char* verb : {"info", "summary", "modules", "memory", "collectives"}) {
        expect_refused({verb, folder_ / "none"}, 2, "does not exist");
        expect_refused({verb, bare}, 1, "a folder without a trace in it");
        expect_refused({verb, file("text", "no database")}, 1, "not a trace of a known format");
        expect_refused({verb, file("empty", "")}, 1, "is empty");
        expect_refused({verb, file("wide.json", std::string("\xFF\xFE{\0}\0", 6))}, 1, "UTF-16");
    }
    const std::string cut = folder_ / "cut.sqlite";
    fs::copy_file(run_, cut);
    fs::resize_file(cut, fs::file_size(cut) / 2);
    expect_refused({"info", cut}, 1, "truncated");
    expect_refused({"query", cut, "SELECT 1"}, 1, "truncated");
    expect_refused({"compare", run_, cut}, 1, "truncated");
    expect_refused({"compare", run_, folder_ / "none"}, 2, "does not exist");

    const std::string newer = folder_ / "newer.sqlite";
    fs::copy_file(run_, newer);
    traces::store::Database(newer, traces::store::Database::Mode::read_write)
        .execute("PRAGMA user_version = 99");
    expect_refused({"summary", newer}, 1, "newer");
}

TEST_F(TraceTool, ComparesAPartOfEachRun) {
    for (const std::vector<std::string>& by : {std::vector<std::string>{}, {"--by", "kernel"}}) {
        std::vector<std::string> arguments = {"compare", run_, run_, "--rank", "0", "--step", "1"};
        arguments.insert(arguments.end(), by.begin(), by.end());
        const json run = json_of(arguments).at("runs").at(1);
        EXPECT_EQ(run.at("ranks"), 1);
        EXPECT_EQ(run.at("steps"), 1);
    }
    expect_refused({"compare", run_, run_, "--rank", "7"}, 2, "it has 0 to 1");
}

TEST_F(TraceTool, ChecksTracesOfOtherTools) {
    const std::string events =
        R"([{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":10,"dur":5},)"
        R"({"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":2,"ts":20,"dur":5}])";
    const std::string whole = file("rank0.json", events);
    EXPECT_EQ(tool({"check", whole}).status, 0);
    const std::string cut = file("cut.json", events.substr(0, 100));
    EXPECT_EQ(tool({"check", cut}).status, 1);
    EXPECT_THAT(tool({"check", cut}).out, StartsWith(cut + " at byte 77: ")) << "the path stands there once";
    expect_refused({"check", whole, "--finalize"}, 2, "not a database");
    // Shorter than a database's header.
    EXPECT_EQ(tool({"check", file("small.json", "[]")}).status, 0);
    // Its intact part is read on request, and the trace says so.
    expect_refused({"summary", cut}, 1, "--partial");
    EXPECT_EQ(tool({"summary", cut, "--partial"}).status, 0);
    EXPECT_THAT(tool({"info", cut, "--partial"}).out, HasSubstr("damaged"));
}

TEST_F(TraceTool, RefusesWrongCommandLines) {
    expect_refused({}, 2, "there is no command");
    expect_refused({"sumary", run_}, 2, "sumary is not a command");
    expect_refused({"info"}, 2, "FILE");
    expect_refused({"info", run_, "more"}, 2, "more does not exist");
    expect_refused({"info", run_, "--colour"}, 2, "--colour");
    expect_refused({"info", run_, "--format", "yaml"}, 2, "table, json or csv");
    expect_refused({"summary", run_, "--rank", "x"}, 2, "--rank");
    expect_refused({"summary", run_, "--rank", "7"}, 2, "it has 0 to 1");
    expect_refused({"summary", run_, "--step", "5:9"}, 2, "it has 0 to 1");
    expect_refused({"summary", run_, "--step", "1:0"}, 2, "swap");
    expect_refused({"summary", run_, "--step", "a"}, 2, "not a step number");
    expect_refused({"summary", run_, "--range", "5ms"}, 2, "no end");
    expect_refused({"summary", run_, "--range", "5ms:5km"}, 2, "\"5km\" is not a time");
    expect_refused({"summary", run_, "--range", "5ms:4ms"}, 2, "empty");
    expect_refused({"memory", run_, "--space", "gpu"}, 2, "device, pinned, host or disk");
    expect_refused({"memory", run_, "--top", "3"}, 2, "--allocations");
    expect_refused({"memory", run_, "--explain", "--allocations"}, 2, "--explain");
    expect_refused({"compare", run_}, 2, "FILE");
    expect_refused({"compare", run_, run_, "--fail-if", "average_step_us"}, 2, "no comparison");
    expect_refused({"compare", run_, run_, "--fail-if", "average_step_us>five"}, 2, "number");
    expect_refused({"compare", run_, run_, "--fail-if", "average_step_us>5%"}, 2, "sign");
}

TEST_F(TraceTool, RefusesAConditionOnAnUnknownKey) {
    const Outcome outcome = tool({"compare", run_, run_, "--fail-if", "speed>+5%"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("\"speed\""), HasSubstr("average_step_us")));
}

TEST_F(TraceTool, ReportsThatStandardOutputIsFull) {
    const Outcome outcome =
        run_command({"sh", "-c", std::string(SHARDSCOPE_TRACE) + " info '" + run_ + "' > /dev/full"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("standard output cannot be written"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
