// Runs the real shardscope-trace on small traces of communication in which every figure is known.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/trace_tool.h"
#include "tests/traces/kineto_text.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::tools {
namespace TEST_FILE {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class CommunicationTool : public TraceToolTest {};

// One launch of a captured graph, so one correlation id: a gemm of 100 us, an all-reduce of 40 us and a relu
// of 20 us, one after the other. Kineto writes the collective's arguments on its kernel.
class CapturedGraph : public CommunicationTool {
  protected:
    static std::string kernel(const char* name, int at, int took, const char* more = "") {
        return std::string(R"(,{"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "name": ")") + name +
               R"(", "ts": )" + std::to_string(at) + R"(, "dur": )" + std::to_string(took) +
               R"(, "args": {"device": 0, "stream": 7, "correlation": 9, "graph id": 3)" + more + "}}";
    }
    CapturedGraph()
        : trace_(file(
              "graph.json",
              traces::kineto(
                  R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 42, "tid": 43, "ts": 100, "dur": 30},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 42, "tid": 43, "ts": 105, "dur": 10, "args": {"correlation": 9}})" +
                  kernel("gemm", 120, 100) +
                  kernel(
                      "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 220, 40,
                      R"(, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "Seq": 17, "Process Group Name": "0")") +
                  kernel("relu", 260, 20)))) {}

    std::string trace_;
};

TEST_F(CapturedGraph, CountsItsComputeKernelsAsComputation) {
    const json categories = json_of({"summary", trace_})["ranks"][0]["categories"];
    EXPECT_DOUBLE_EQ(categories["Kernel"]["us"], 120);
    EXPECT_DOUBLE_EQ(categories["Communication"]["us"], 40);

    const json operations = json_of({"collectives", trace_})["ranks"][0]["operations"];
    ASSERT_EQ(operations.size(), 1U) << operations;
    EXPECT_EQ(operations[0]["name"], "all_reduce");
    EXPECT_EQ(operations[0]["count"], 1);
    EXPECT_EQ(operations[0]["bytes"], 4000);
    EXPECT_DOUBLE_EQ(operations[0]["us"], 40);

    const json path = json_of({"critical-path", trace_});
    const json& parts = path["ranks"][0]["parts"];
    EXPECT_DOUBLE_EQ(parts["compute"]["us"], 120) << path;
    EXPECT_DOUBLE_EQ(parts["communication"]["us"], 40) << path;
    EXPECT_THAT(text_of({"critical-path", trace_}), Not(HasSubstr("gemm  Communication")));
}

TEST_F(CapturedGraph, HasOneCollectiveInSql) {
    const std::string imported = folder_ / "graph.sqlite";
    ASSERT_EQ(tool({"import", trace_, "-o", imported}).status, 0);
    for (const std::string& of : {trace_, imported}) {
        const json rows =
            json_of({"query", of, "SELECT operation, bytes, duration_ns, stream FROM collectives"});
        EXPECT_EQ(rows["rows"].dump(), R"([["all_reduce",4000,40000,7]])") << of;
        const json kernels = json_of({"query", of, "SELECT name FROM kernels WHERE communication"});
        EXPECT_EQ(kernels["rows"].dump(), R"([["ncclDevKernel_AllReduce_Sum_f32_RING_LL"]])") << of;
    }
    // The imported trace gives the same values.
    EXPECT_DOUBLE_EQ(json_of({"summary", imported})["ranks"][0]["categories"]["Communication"]["us"], 40);
}

TEST_F(CapturedGraph, IsExportedWithOneCollective) {
    const std::string imported = folder_ / "graph.sqlite", exported = folder_ / "again.json";
    ASSERT_EQ(tool({"import", trace_, "-o", imported}).status, 0);
    for (const std::string& of : {trace_, imported}) {
        ASSERT_EQ(tool({"export", of, "--to", "chrome", "-o", exported, "--overwrite"}).status, 0);
        std::ifstream read(exported);
        int collectives = 0, kernels = 0;
        const json again = json::parse(read);
        for (const json& event : again["traceEvents"]) {
            if (event.value("cat", "") != "kernel") continue;
            ++kernels;
            const bool collective = event["args"].contains("Collective name");
            collectives += collective;
            EXPECT_EQ(collective, event["name"].get<std::string>().starts_with("nccl")) << event;
        }
        EXPECT_EQ(collectives, 1);
        EXPECT_EQ(kernels, 3);
    }
}

TEST_F(CapturedGraph, IsNotAdvisedToCommunicateLess) {
    // 40 us of 180 us communicate: 22 %, not the 72 % of gemm and all-reduce together.
    const std::string advice = text_of({"advice", trace_});
    EXPECT_THAT(advice, HasSubstr("40.0 µs of each step (22.2 %)"));
    EXPECT_THAT(advice, Not(HasSubstr("140.0 µs of each step")));
}

constexpr const char* kOneAllReduce =
    R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 10, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": 9, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 10, "Group size": 2}})";

TEST_F(CommunicationTool, CheckFindsImpossibleBytes) {
    const std::string database = folder_ / "big.sqlite";
    const std::string trace = file("one.json", traces::kineto(kOneAllReduce));
    ASSERT_EQ(tool({"import", trace, "-o", database}).status, 0);
    {
        traces::store::Database opened(database, traces::store::Database::Mode::read_write);
        opened.execute("UPDATE SHARD_COLLECTIVES SET bytes = 9000000000000000000");
    }
    const Outcome check = tool({"check", database});
    EXPECT_EQ(check.status, 1);
    EXPECT_THAT(check.out, HasSubstr("1 event is ignored"));
    EXPECT_THAT(text_of({"collectives", database}), Not(HasSubstr("-8")));
}

TEST_F(CommunicationTool, AKernelThatOnlyItsMetadataNamesIsCommunicationInTheViews) {
    const std::string trace = file(
        "own.json",
        traces::kineto(
            R"({"ph": "X", "cat": "kernel", "name": "all_reduce_one_shot", "pid": 0, "tid": 7, "ts": 10, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": 9, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 10, "Group size": 2}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": 10}})"));
    const std::string database = folder_ / "own.sqlite";
    ASSERT_EQ(tool({"import", trace, "-o", database}).status, 0);
    EXPECT_EQ(text_of({"query", database, "SELECT name, communication FROM kernels ORDER BY start_ns",
                       "--format", "csv"}),
              "name,communication\nall_reduce_one_shot,1\ngemm,0\n");
}

TEST_F(CommunicationTool, UnknownBytesAreNullInTheViews) {
    const std::string database = folder_ / "bytes.sqlite";
    const std::string trace = file("bytes.json", traces::kineto(kOneAllReduce));
    ASSERT_EQ(tool({"import", trace, "-o", database}).status, 0);
    const std::vector<std::string> query = {"query", database, "SELECT typeof(bytes) AS t FROM collectives",
                                            "--format", "csv"};
    EXPECT_EQ(text_of(query), "t\ninteger\n");
    {
        traces::store::Database opened(database, traces::store::Database::Mode::read_write);
        opened.execute("UPDATE SHARD_COLLECTIVES SET bytes = 0");
    }
    EXPECT_EQ(text_of(query), "t\nnull\n");
}

// Two ranks of a job on processors: PyTorch records Gloo's collectives as ranges of Gloo's threads, with the
// tensor that a rank contributes; the operator that requested a gather took both buffers. One step of 1,000
// us.
class GlooJob : public CommunicationTool {
  protected:
    static std::string rank(int number, int gather_us) {
        const std::string thread = R"("pid": )" + std::to_string(100 + number) + R"(, "tid": )";
        const std::string main = thread + std::to_string(100 + number), gloo = thread + "900";
        const auto range = [](const std::string& on, const char* cat, const char* name, int at, int took,
                              const std::string& args) {
            return R"({"ph": "X", )" + on + R"(, "cat": ")" + cat + R"(", "name": ")" + name +
                   R"(", "ts": )" + std::to_string(at) + R"(, "dur": )" + std::to_string(took) +
                   R"(, "args": {)" + args + "}},\n";
        };
        return traces::kineto(
            range(main, "user_annotation", "ProfilerStep#1", 1000, 1000, "") +
                range(main, "cpu_op", "c10d::_allgather_base_", 1010, 20,
                      R"("Input Dims": [[2000], [1000], []], "Input type": ["float", "float", ""])") +
                range(gloo, "cpu_op", "gloo:all_gather", 1100, gather_us,
                      R"("Input Dims": [[1000]], "Input type": ["float"])") +
                range(gloo, "cpu_op", "gloo:all_reduce", 1700, 50,
                      R"("Input Dims": [[500]], "Input type": ["float"])") +
                R"({"ph": "i", "s": "t", "name": "[memory]", )" + main +
                R"(, "ts": 1200, "args": {"Device Type": 0, "Device Id": -1, "Addr": 64, "Bytes": 4096, "Total Allocated": 4096}})",
            R"("distributedInfo": {"backend": "gloo", "rank": )" + std::to_string(number) +
                R"(, "world_size": 2},)");
    }
    GlooJob() {
        std::filesystem::create_directory(std::string(folder_ / "job"));
        file("job/rank0.json", rank(0, 400));
        file("job/rank1.json", rank(1, 300));
    }
    std::string job_ = folder_ / "job";
};

TEST_F(GlooJob, ListsTheCollectivesOfItsHostThreads) {
    const json ranks = json_of({"collectives", job_})["ranks"];
    ASSERT_EQ(ranks.size(), 2U);
    const json& operations = ranks[0]["operations"];
    ASSERT_EQ(operations.size(), 2U) << operations;
    const json& gather = operations[0]["name"] == "all_gather" ? operations[0] : operations[1];
    const json& reduce = operations[0]["name"] == "all_gather" ? operations[1] : operations[0];
    EXPECT_EQ(gather["on"], "host");
    EXPECT_EQ(gather["count"], 1);
    EXPECT_EQ(gather["bytes"], 8000);  // gathered: 2,000 floats
    EXPECT_DOUBLE_EQ(gather["us"], 400);
    EXPECT_DOUBLE_EQ(gather["transfer_us"], 300);  // rank 1's
    EXPECT_DOUBLE_EQ(gather["waiting_us"], 100);
    EXPECT_TRUE(gather["exposed_us"].is_null());
    EXPECT_EQ(reduce["name"], "all_reduce");
    EXPECT_EQ(reduce["bytes"], 2000);
    EXPECT_TRUE(reduce["busbw_gbps"].is_null()) << "the number of ranks is not in the range";
    EXPECT_THAT(text_of({"collectives", job_}), HasSubstr("Gloo"));
}

TEST_F(GlooJob, HasNoZeroDeviceTimes) {
    for (const char* verb : {"overlap", "temporal", "idle", "kernels", "units"}) {
        EXPECT_THAT(text_of({verb, job_}), HasSubstr("Nothing is recorded on a device")) << verb;
        EXPECT_TRUE(json_of({verb, job_})["ranks"].empty()) << verb;
        EXPECT_EQ(tool({verb, job_, "--format", "csv"}).status, 0) << verb;
    }
}

// Without a device, everything that the ranks do together is known except how much compute hides.
TEST_F(GlooJob, IsDistributedByTheTimesOfItsHostThreads) {
    const json report = json_of({"distributed", job_});
    ASSERT_EQ(report["ranks"].size(), 2U) << report;
    const json& first = report["ranks"][0];
    EXPECT_EQ(first["on"], "host");
    for (const char* unknown :
         {"computation_us", "overlapped_us", "exposed_communication_us", "other_us", "overlap_percent"}) {
        EXPECT_TRUE(first[unknown].is_null()) << unknown;
    }
    EXPECT_EQ(first["collectives"], 2);
    EXPECT_EQ(first["bytes"], 10000);            // 2,000 and 500 floats
    EXPECT_DOUBLE_EQ(first["us"], 450);          // 400 + 50
    EXPECT_DOUBLE_EQ(first["waiting_us"], 100);  // for rank 1's gather of 300
    EXPECT_DOUBLE_EQ(report["ranks"][1]["waiting_us"], 0);
    EXPECT_EQ(report["collectives"], 2);  // each counted once, for any number of ranks
    ASSERT_EQ(report["traffic"].size(), 2U);
    for (const json& traffic : report["traffic"]) {
        EXPECT_EQ(traffic["on"], "host");
        EXPECT_TRUE(traffic["group_size"].is_null());
        EXPECT_TRUE(traffic["busbw_gbps"].is_null());
        EXPECT_EQ(traffic["parts"], 2);
        EXPECT_GT(traffic["algbw_gbps"], 0);
    }
    ASSERT_EQ(report["slowest"].size(), 1U);
    EXPECT_EQ(report["slowest"][0]["name"], "all_gather");
    EXPECT_DOUBLE_EQ(report["slowest"][0]["waiting_us"], 100);
    EXPECT_EQ(report["slowest"][0]["last_rank"], 1);
    EXPECT_TRUE(report["hosts"]["skew"]["collectives"].is_null());

    const std::string text = text_of({"distributed", job_});
    EXPECT_THAT(text, HasSubstr("Gloo executed these collectives on host threads"));
    EXPECT_THAT(text, HasSubstr("all_gather"));
    EXPECT_THAT(text, Not(HasSubstr("NCCL")));
    const std::string row = text.substr(text.find("\n   0 "), 60);
    EXPECT_THAT(row, ::testing::ContainsRegex("-  +-  +-  +-")) << text;
    // With one rank selected, its own parts count, compared with those of the other rank.
    const json one = json_of({"distributed", job_, "--rank", "1"});
    ASSERT_EQ(one["ranks"].size(), 1U);
    EXPECT_EQ(one["traffic"][0]["parts"], 1);
}

TEST_F(GlooJob, IsAdvisedInTermsOfItsBackend) {
    const json report = json_of({"advice", job_});
    ASSERT_EQ(report["findings"].size(), 1U) << report;
    const json& finding = report["findings"][0];
    EXPECT_EQ(finding["id"], "host-communication");
    // In the step of 1,000 us rank 0 spends 450 in Gloo, of which it waits for 100, and rank 1 spends 350.
    EXPECT_EQ(
        finding["what"],
        "Gloo communicates on host threads for 400.0 µs of each step (40.0 %), in 2 collectives of 9.8 KiB "
        "together. On average a rank waits 50.0 µs of it for others. Rank 1 waits least: the others "
        "wait for it.");
    EXPECT_EQ(finding["weight"], "notable");
    EXPECT_TRUE(finding["gain_us"].is_null());
    EXPECT_THAT(finding["expected"].get<std::string>(), HasSubstr("Unknown, because"));
    ASSERT_EQ(report["notes"].size(), 2U) << report;
    EXPECT_EQ(report["notes"][0], "Where the time went is unknown, because the trace has no device work.");
    EXPECT_THAT(report["notes"][1].get<std::string>(),
                HasSubstr("How much of Gloo's communication compute hides"));
    EXPECT_THAT(text_of({"advice", job_}), Not(HasSubstr("NCCL")));
}

TEST_F(GlooJob, IsSummarizedWithoutDeviceTimes) {
    const json rank = json_of({"summary", job_})["ranks"][0];
    for (const char* category : {"Kernel", "Memcpy", "Memset", "Communication"}) {
        EXPECT_TRUE(rank["categories"][category]["us"].is_null()) << category;
        EXPECT_TRUE(rank["per_step"][0]["categories_ns"][category].is_null()) << category;
    }
    EXPECT_GT(rank["categories"]["CPU Exec"]["us"], 0);
    const std::string text = text_of({"summary", job_});
    const std::string line =
        text.substr(text.find("Kernel"), text.find('\n', text.find("Kernel")) - text.find("Kernel"));
    EXPECT_THAT(line, HasSubstr("-"));
    EXPECT_THAT(line, Not(HasSubstr("0.0")));
}

TEST_F(GlooJob, HasNoDeviceTimesInStepsAndScaling) {
    const json step = json_of({"steps", job_})["ranks"][0]["steps"][0];
    EXPECT_TRUE(step["device_busy_us"].is_null());
    EXPECT_TRUE(step["device_events"].is_null());
    EXPECT_TRUE(step["categories_us"]["Kernel"].is_null());
    EXPECT_GT(step["categories_us"]["CPU Exec"], 0);
    EXPECT_THAT(text_of({"steps", job_}), Not(HasSubstr("nan")));
    const json run = json_of({"scaling", job_, job_})["runs"][1];
    EXPECT_TRUE(run["categories_us"]["Kernel"].is_null());
    EXPECT_TRUE(run["grew"].is_null());
    EXPECT_EQ(tool({"scaling", job_, job_}).out.find("nan"), std::string::npos);
}

TEST_F(GlooJob, ShowsTheHostsMemory) {
    const json memory = json_of({"memory", job_})["ranks"][0];
    EXPECT_EQ(memory["space"], "host");
    EXPECT_EQ(memory["peak_bytes"], 4096);
    EXPECT_THAT(text_of({"memory", job_}), HasSubstr("Allocated host memory"));
    EXPECT_EQ(json_of({"memory", job_, "--space", "device"})["ranks"][0]["space"], "device");
}

TEST_F(GlooJob, IsComparedByItsHostThreads) {
    const json run = json_of({"compare", job_, job_})["runs"][1];
    EXPECT_DOUBLE_EQ(run["average_step_us"], 1000);
    EXPECT_DOUBLE_EQ(run["communication_us"], 400);  // 450 and 350
    for (const char* key : {"exposed_communication_us", "memcpy_us", "device_busy_percent"})
        EXPECT_TRUE(run[key].is_null()) << key << " " << run[key];
    EXPECT_TRUE(run["categories"]["Kernel"]["us"].is_null());
    EXPECT_EQ(run["space"], "host");
    EXPECT_EQ(run["peak_bytes"], 4096);
    ASSERT_EQ(run["collectives"].size(), 2U);
    EXPECT_EQ(run["collectives"][0]["on"], "host");
    EXPECT_TRUE(run["collectives"][0]["exposed_us"].is_null());
    std::string text = text_of({"compare", job_, job_});
    const std::string busy = text.substr(text.find("Device busy"));
    std::replace(text.begin(), text.end(), '\n', ' ');  // a paragraph has line breaks
    EXPECT_THAT(text, HasSubstr("contains no device work"));
    EXPECT_THAT(text, HasSubstr("is host memory: nothing was allocated on a device"));
    EXPECT_THAT(busy.substr(0, busy.find('\n')), Not(HasSubstr("0.00")));
    const Outcome csv = tool({"compare", job_, job_, "--format", "csv"});
    EXPECT_THAT(csv.out, Not(HasSubstr("nan")));
}

TEST_F(GlooJob, HasHostTimesOfItsPartsCompared) {
    const json parts = json_of({"compare", job_, job_, "--by", "collective"});
    EXPECT_EQ(parts["on"], "host");
    ASSERT_EQ(parts["parts"].size(), 2U) << parts["parts"];
    const json gather = parts["runs"][0]["collectives_by_name"]["all_gather"];
    EXPECT_DOUBLE_EQ(gather["us"], 350);
    EXPECT_DOUBLE_EQ(gather["bytes"], 8000);
    const json operators = json_of({"compare", job_, job_, "--by", "operator"});
    EXPECT_GT(operators["runs"][0]["operators"]["c10d::_allgather_base_"]["us"], 0);
    EXPECT_THAT(text_of({"compare", job_, job_, "--by", "operator"}), HasSubstr("Host time per step"));
}

TEST_F(GlooJob, IsReportedInHtmlByItsHostThreads) {
    const std::string other = folder_ / "other", page = folder_ / "runs.html";
    std::filesystem::copy(job_, other);
    text_of({"report", job_, other, "-o", page});
    std::ifstream stream(page);
    const std::string html{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_THAT(html, HasSubstr("Operators (host time of the operator itself)"));
    EXPECT_THAT(html, Not(HasSubstr("device time launched in")));
}

// The memory allocated for communication grows at each step's end: 1, 2 and 3 MB. PyTorch does not record the
// frees, which a thread of Gloo makes.
TEST_F(CommunicationTool, SaysThatCommunicationMemoryGrows) {
    const auto trace = [](const char* range, bool freed) {
        std::string events;
        const auto event = [&](const std::string& text) { events += (events.empty() ? "" : ",\n") + text; };
        const std::string thread = R"("pid": 7, "tid": 7, )";
        for (int s = 0; s < 3; ++s) {
            const auto at = [&](int offset) { return std::to_string(1000 * s + offset); };
            event(R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)" + std::to_string(s) +
                  R"(", )" + thread + R"("ts": )" + at(10) + R"(, "dur": 900})");
            event(R"({"ph": "X", "cat": "cpu_op", "name": ")" + std::string(range) + R"(", )" + thread +
                  R"("ts": )" + at(100) + R"(, "dur": 100})");
            const auto memory = [&](int offset, int bytes) {
                event(R"({"ph": "i", "s": "t", "name": "[memory]", )" + thread + R"("ts": )" + at(offset) +
                      R"(, "args": {"Device Type": 0, "Device Id": -1, "Addr": )" +
                      std::to_string(4096 * (s + 1)) + R"(, "Bytes": )" + std::to_string(bytes) + "}}");
            };
            memory(150, 1 << 20);
            if (freed) memory(800, -(1 << 20));
        }
        return traces::kineto(events);
    };
    const std::string gloo = file("gloo.json", trace("gloo:all_reduce", false));
    const json growth = json_of({"memory", gloo})["ranks"][0]["growth"];
    EXPECT_EQ(growth["category"], "communication");
    EXPECT_EQ(growth["steps"], 3);
    EXPECT_EQ(growth["first_bytes"], 1 << 20);
    EXPECT_EQ(growth["last_bytes"], 3 << 20);
    EXPECT_EQ(growth["host_library"], "Gloo");
    const auto one_line = [](std::string text) {
        std::replace(text.begin(), text.end(), '\n', ' ');
        return text;
    };
    EXPECT_THAT(
        one_line(text_of({"memory", gloo})),
        HasSubstr("Communication memory grows in each of 3 steps, from 1.00 MiB at the end of the first "
                  "to 3.00 MiB at the end of the last: PyTorch does not record what Gloo's threads free"));
    const std::string other = file("other.json", trace("c10d::allreduce_", false));
    EXPECT_THAT(one_line(text_of({"memory", other})), HasSubstr("the trace has no frees of it"));
    const std::string freed = file("freed.json", trace("gloo:all_reduce", true));
    EXPECT_TRUE(json_of({"memory", freed})["ranks"][0]["growth"].is_null());
    EXPECT_THAT(text_of({"memory", freed}), Not(HasSubstr("grows")));
}

TEST_F(GlooJob, IsCheckedAsAFolder) {
    const Outcome check = tool({"check", job_});
    EXPECT_EQ(check.status, 0) << check.out << check.err;
    EXPECT_EQ(tool({"check", "--finalize", job_}).status, 2);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
