// `nsys stats` of Nsight Systems on a trace of ours: every report that applies gives our numbers. Skipped if
// Nsight Systems is not installed (PATH, or $NSYS).
#include <algorithm>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/nsys_tool.h"
#include "tests/tools/run_command.h"
#include "tests/traces/sample_run.h"
#include "traces/store/write/writer.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::IsEmpty;
using ::testing::Not;

// The names of a report until 2022, and since 2023.
struct Report {
    const char* old_name;
    const char* name;
};
constexpr Report kReports[] = {
    {"apigpusum", "cuda_api_gpu_sum"},
    {"cudaapisum", "cuda_api_sum"},
    {"cudaapitrace", "cuda_api_trace"},
    {"gpukernsum", "cuda_gpu_kern_sum"},
    {"", "cuda_gpu_kern_gb_sum"},
    {"gpumemsizesum", "cuda_gpu_mem_size_sum"},
    {"gpumemtimesum", "cuda_gpu_mem_time_sum"},
    {"gpusum", "cuda_gpu_sum"},
    {"gputrace", "cuda_gpu_trace"},
    {"kernexecsum", "cuda_kern_exec_sum"},
    {"kernexectrace", "cuda_kern_exec_trace"},
    {"nvtxgpuproj", "nvtx_gpu_proj_trace"},
    {"", "nvtx_gpu_proj_sum"},
    {"nvtxkernsum", "nvtx_kern_sum"},
    {"nvtxppsum", "nvtx_pushpop_sum"},
    {"nvtxpptrace", "nvtx_pushpop_trace"},
    {"nvtxsesum", "nvtx_startend_sum"},
    {"nvtxsum", "nvtx_sum"},
};

class NsysStats : public ::testing::Test {
  protected:
    void SetUp() override {
        nsys_ = NsysTool::find();
        if (!nsys_) GTEST_SKIP() << "Nsight Systems is not here: put nsys into PATH, or its path into $NSYS";
        traces::store::DatabaseWriter writer({.path = path_});
        traces::write_sample_run(writer);
        writer.add(traces::schema::RangeRow{.start = 100 * traces::kSampleUs,
                                            .end = 900 * traces::kSampleUs,
                                            .event_type = traces::schema::kNvtxStartEnd,
                                            .text = writer.intern("request"),
                                            .global_tid = traces::sample_tid(0)});
        writer.finish(3 * traces::kSampleMs, 0);
    }
    // The name in this version of the tool; "" if it has no such report.
    std::string name_of(const char* name) const {
        for (const Report& report : kReports) {
            if (std::string(report.name) != name) continue;
            if (nsys_->reports().contains(report.name)) return report.name;
            if (nsys_->reports().contains(report.old_name)) return report.old_name;
        }
        return "";
    }
    NsysTool::Answer answer(const char* name) const { return nsys_->report(name_of(name), path_); }
    std::string content() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    TemporaryFolder folder_;
    const std::string path_ = folder_ / "run.sqlite";
    std::optional<NsysTool> nsys_;
};

TEST_F(NsysStats, EveryReportThatAppliesAnswers) {
    const std::string before = content();
    int answered = 0, asked = 0;
    for (const Report& report : kReports) {
        const std::string name = name_of(report.name);
        if (name.empty()) continue;
        ++asked;
        const NsysTool::Answer given = nsys_->report(name, path_);
        EXPECT_EQ(given.complaint, "") << name;
        EXPECT_THAT(given.rows, Not(IsEmpty())) << name;
        if (given.complaint.empty() && !given.rows.empty()) ++answered;
    }
    std::printf("  %s: %d of %d reports answered\n", nsys_->version().c_str(), answered, asked);
    EXPECT_GE(asked, 16);
    EXPECT_TRUE(content() == before) << "nothing was changed";
}

// The numbers follow from sample_run.h: 2 ranks, 2 steps.
TEST_F(NsysStats, TheAnswersAreOurFigures) {
    const NsysTool::Answer kernels = answer("cuda_gpu_kern_sum");
    EXPECT_EQ(kernels.cell("sgemm(float*, int)", "Instances"), "4");
    EXPECT_EQ(kernels.cell("sgemm(float*, int)", "Total Time (ns)"), "1200000");
    EXPECT_EQ(kernels.cell("ncclDevKernel_AllGather_local", "Total Time (ns)"), "200000");
    const NsysTool::Answer calls = answer("cuda_api_sum");
    EXPECT_EQ(calls.cell("cudaLaunchKernel", "Num Calls"), "4");  // without the version's suffix
    EXPECT_EQ(calls.cell("cudaLaunchKernel", "Total Time (ns)"), "8000");
    const NsysTool::Answer ranges = answer("nvtx_pushpop_sum");
    EXPECT_TRUE(std::any_of(ranges.rows.begin(), ranges.rows.end(), [](const auto& row) {
        return row.back().find("nn.Module: Linear_0") != std::string::npos && row[1] == "800000" &&
               row[2] == "4";
    })) << "4 ranges of 200 µs";
    // Four launches in the range, 1200 us of sgemm; the report counts them per thread.
    const NsysTool::Answer in_ranges = answer("nvtx_kern_sum");
    EXPECT_FALSE(in_ranges.cell("sgemm(float*, int)", "Total Time (ns)").empty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
