// SQL and reports that people use on exports of Nsight Systems, on the trace of a real run: they run
// unchanged, and agree with shardscope-trace. tests/traces/nsight_idioms_test.cpp tests every kind on known
// figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/nsys_tool.h"
#include "tests/tools/train/train_tool.h"
#include "tests/traces/sql_rows.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::IsEmpty;
using ::testing::Not;

class RunInNsightsLanguage : public ::testing::Test {
  protected:
    static void SetUpTestSuite() { run_ = std::make_unique<TracedRun>(Way::per_layer); }
    static void TearDownTestSuite() { run_.reset(); }
    static std::int64_t value(const std::string& sql) { return number(run_->trace(), sql); }

    static std::unique_ptr<TracedRun> run_;
};
std::unique_ptr<TracedRun> RunInNsightsLanguage::run_;

TEST_F(RunInNsightsLanguage, AllWorkFindsItsOneCallByCorrelation) {
    for (const char* kind : {"KERNEL", "MEMCPY", "MEMSET"}) {
        const std::string table = std::string("CUPTI_ACTIVITY_KIND_") + kind;
        const std::int64_t all = value("SELECT count(*) FROM " + table);
        EXPECT_GT(all, 0) << kind;
        EXPECT_EQ(value("SELECT count(*) FROM " + table +
                        " t JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
                        "ON t.correlationId = r.correlationId AND t.start >= r.start"),
                  all)
            << kind;
        // Both serialized ids name the same process.
        EXPECT_EQ(
            value(
                "SELECT count(*) FROM " + table +
                " t JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
                "ON t.correlationId = r.correlationId AND t.globalPid = (r.globalTid & 0xFFFFFFFFFF000000)"),
            all)
            << kind;
    }
}

TEST_F(RunInNsightsLanguage, CommunicationKernelsAreTheCollectives) {
    double us = 0;
    int count = 0;
    const Json report = trace_json({"collectives", run_->trace()});
    for (const Json& rank : report.at("ranks")) {
        for (const Json& operation : rank.at("operations")) {
            us += operation.at("us").get<double>();
            count += operation.at("count").get<int>();
        }
    }
    const std::string kernels =
        " FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName "
        "WHERE s.value LIKE 'nccl%'";
    EXPECT_EQ(value("SELECT count(*)" + kernels), count);
    EXPECT_NEAR(static_cast<double>(value("SELECT sum(k.end - k.start)" + kernels)) / 1000, us, 1);
    // On the host: one range of NCCL's domain for each.
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE eventType IN (59, 60) AND domainId = "
                    "(SELECT domainId FROM NVTX_EVENTS WHERE eventType = 75 AND text = 'NCCL' LIMIT 1)"),
              count);
}

// NCCL records the bytes of one rank's part: what it contributes to a gather, and what it gets from a
// reduce-scatter.
TEST_F(RunInNsightsLanguage, PayloadsContainTheBytesOfCollectives) {
    for (const auto& [call, operation] : {std::pair{"ncclAllGather", 0}, std::pair{"ncclReduceScatter", 1}}) {
        const std::int64_t bytes =
            value("SELECT sum(" + traces::number_at("n.binaryData", "32 + COALESCE(e.offset, 0)") +
                  ") FROM NVTX_EVENTS n JOIN NVTX_PAYLOAD_SCHEMA_ENTRIES e ON e.domainId = n.domainId AND "
                  "e.schemaId = " +
                  traces::number_at("n.binaryData", "8") +
                  " WHERE e.name = 'Message size [bytes]' AND n.text = '" + call + "'");
        EXPECT_GT(bytes, 0) << call;
        EXPECT_EQ(bytes * run_->ranks(), value("SELECT sum(bytes) FROM SHARD_COLLECTIVES WHERE operation = " +
                                               std::to_string(operation)))
            << call;
    }
}

TEST_F(RunInNsightsLanguage, MemoryInUseReachesThePeak) {
    const Json report = trace_json({"memory", run_->trace()});
    for (const Json& rank : report.at("ranks")) {
        const std::string device = std::to_string(rank.at("rank").get<int>());
        EXPECT_EQ(value("SELECT max(in_use) FROM (SELECT sum(CASE memoryOperationType WHEN 0 THEN bytes ELSE "
                        "-bytes END) "
                        "OVER (ORDER BY start, rowid) AS in_use FROM CUDA_GPU_MEMORY_USAGE_EVENTS "
                        "WHERE memKind = 2 AND deviceId = " +
                        device + ")"),
                  rank.at("peak_bytes").get<std::int64_t>());
    }
}

TEST_F(RunInNsightsLanguage, RangesAreFoundByTextAndByTextId) {
    const std::int64_t all = value("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59");
    EXPECT_EQ(all, trace_json({"info", run_->trace()}).at("counts").at("ranges"));
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS n JOIN StringIds s ON s.id = n.textId "
                    "WHERE n.eventType = 59 AND s.value = n.text"),
              all);
    // Each rank has a step with all of its kernels below it: the projection of a step is not empty.
    EXPECT_EQ(value("SELECT count(DISTINCT n.rowid) FROM NVTX_EVENTS n JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
                    "ON r.globalTid = n.globalTid AND r.start BETWEEN n.start AND n.end "
                    "JOIN CUPTI_ACTIVITY_KIND_KERNEL k USING (correlationId) "
                    "WHERE n.eventType = 59 AND n.text LIKE 'ProfilerStep#%'"),
              run_->ranks() * kSteps);
    EXPECT_EQ(
        value("SELECT count(DISTINCT t.globalTid) FROM NVTX_EVENTS n JOIN ThreadNames t USING (globalTid) "
              "WHERE n.eventType = 59"),
        run_->ranks());
}

TEST_F(RunInNsightsLanguage, EveryKernelAndCallBelongsToANamedProcess) {
    EXPECT_EQ(value("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN PROCESSES p USING (globalPid) "
                    "WHERE p.name = 'shardscope-train' AND p.pid = (k.globalPid >> 24 & 0xFFFFFF)"),
              value("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"));
    EXPECT_EQ(value("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r "
                    "JOIN PROCESSES p ON p.globalPid == (r.globalTid & 0xFFFFFFFFFF000000)"),
              value("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"));
}

TEST_F(RunInNsightsLanguage, DevicesAreRanks) {
    EXPECT_EQ(value("SELECT count(DISTINCT deviceId) FROM CUPTI_ACTIVITY_KIND_KERNEL"), run_->ranks());
    EXPECT_EQ(value("SELECT count(*) FROM (SELECT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL "
                    "GROUP BY deviceId HAVING count(DISTINCT globalPid) = 1)"),
              run_->ranks());
    EXPECT_EQ(
        value("SELECT count(*) FROM TARGET_INFO_GPU g JOIN TARGET_INFO_CUDA_DEVICE d ON d.gpuId = g.id"),
        run_->ranks());
}

// The reports of Nsight Systems that apply to this run: all except those of start/end ranges.
TEST_F(RunInNsightsLanguage, NsysStatsAnswers) {
    const auto nsys = NsysTool::find();
    if (!nsys) GTEST_SKIP() << "Nsight Systems is not here: put nsys into PATH, or its path into $NSYS";
    int answered = 0;
    for (const char* report : {"apigpusum",     "cuda_api_gpu_sum",
                               "cudaapisum",    "cuda_api_sum",
                               "cudaapitrace",  "cuda_api_trace",
                               "gpukernsum",    "cuda_gpu_kern_sum",
                               "gpumemsizesum", "cuda_gpu_mem_size_sum",
                               "gpumemtimesum", "cuda_gpu_mem_time_sum",
                               "gpusum",        "cuda_gpu_sum",
                               "gputrace",      "cuda_gpu_trace",
                               "kernexecsum",   "cuda_kern_exec_sum",
                               "kernexectrace", "cuda_kern_exec_trace",
                               "nvtxgpuproj",   "nvtx_gpu_proj_trace",
                               "nvtxkernsum",   "nvtx_kern_sum",
                               "nvtxppsum",     "nvtx_pushpop_sum",
                               "nvtxpptrace",   "nvtx_pushpop_trace",
                               "nvtxsum",       "nvtx_sum"}) {
        if (!nsys->reports().contains(report)) continue;
        const NsysTool::Answer answer = nsys->report(report, run_->trace());
        EXPECT_EQ(answer.complaint, "") << report;
        EXPECT_THAT(answer.rows, Not(IsEmpty())) << report;
        ++answered;
    }
    EXPECT_EQ(answered, 15);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
