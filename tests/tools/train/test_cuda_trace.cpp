// The trace of a run on the CUDA device (simulated on the CPU; device work is timed as CUPTI would): the same
// tools make the same queries as on the CPU's trace of the same job, and the answers are the same except for
// the times.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include "profiler/recorder/recorder.h"
#include "tests/tools/train/train_tool.h"
#include "tests/trainer/played_cuda/nccl.h"
#include "tests/trainer/played_job.h"
#include "traces/store/write/writer.h"
#include "trainer/cli/trace_output.h"
#include "trainer/executor/cuda_module.h"
#include "trainer/job/job.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace trainer = shardscope::trainer;
namespace testing = shardscope::trainer::testing;
namespace fs = std::filesystem;

// Times each piece of simulated device work and gives it to the recorder with the device and stream of its
// launch.
class TimedWork final : public trainer::device::WorkMarks, public played_cuda::Observer {
  public:
    explicit TimedWork(profiler::Recorder& recorder) : recorder_(recorder) { played_cuda::observe(this); }
    ~TimedWork() override { played_cuda::observe(nullptr); }

    void begin(const profiler::DeviceWork& work) override {
        const std::lock_guard lock(mutex_);
        works_.push_back(work);
        played_cuda::set_tag(works_.size());
    }
    void end() override { played_cuda::set_tag(0); }

    void carry_out(played_cuda::Activity activity, std::uint64_t tag,
                   const std::function<void()>& work) override {
        const profiler::Ticks start = profiler::ticks();
        work();
        const profiler::Ticks end = profiler::ticks();
        if (tag == 0) return;
        profiler::DeviceWork own;
        {
            const std::lock_guard lock(mutex_);
            own = works_[tag - 1];
        }
        profiler::ThreadLog& log = *recorder_.attach_thread("", -1);
        switch (activity) {
            case played_cuda::Activity::kernel:
                return log.kernel(start, end, own);
            case played_cuda::Activity::memcpy:
                return log.memcpy(start, end, own);
            default:
                return log.memset(start, end, own);
        }
    }

  private:
    profiler::Recorder& recorder_;
    std::mutex mutex_;
    std::deque<profiler::DeviceWork> works_;
};

std::int64_t clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void record_played(const trainer::job::Job& job, const std::string& path) {
    traces::store::WriterOptions options;
    options.path = path;
    options.start_utc_ns = clock_ns(CLOCK_REALTIME);
    options.start_system_ns = clock_ns(CLOCK_MONOTONIC);
    profiler::RecorderOptions recorder_options;
    recorder_options.start_system_ns = options.start_system_ns;
    profiler::Recorder recorder(
        std::make_unique<traces::store::DatabaseWriter>(options),
        [](traces::store::EventSink& sink, std::int64_t duration_ns, std::int64_t dropped) {
            static_cast<traces::store::DatabaseWriter&>(sink).finish(duration_ns, dropped);
        },
        recorder_options);
    {
        TimedWork timed(recorder);
        trainer::executor::RunOptions run;
        run.recorder = &recorder;
        trainer::testing::run_played(job, run, {.marks = &timed});
    }
    recorder.finish();
}

class CudaTrace : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        folder_ = std::make_unique<TemporaryFolder>();
        write_file(*folder_ / "job.toml", R"(
[run]
steps = 3
ranks = 2
[model]
type = "mlp"
width = 32
layers = 4
[data]
batch = 4
[fsdp]
wrap = "module:Linear"
cpu_offload = true
[optimizer]
type = "adamw"
)");
        cpu_ = *folder_ / "cpu.sqlite";
        cuda_ = *folder_ / "cuda.sqlite";
        ASSERT_EQ(train({*folder_ / "job.toml", "--trace", cpu_}).status, 0);
        record_played(trainer::job::load_job(*folder_ / "job.toml", {}), cuda_);
    }
    static void TearDownTestSuite() { folder_.reset(); }

    // Expects the same answer to a statement from both traces.
    static void expect_same(const std::string& sql) {
        EXPECT_EQ(texts(cuda_, sql), texts(cpu_, sql)) << sql;
        EXPECT_FALSE(texts(cpu_, sql).empty()) << sql;
    }

    static inline std::unique_ptr<TemporaryFolder> folder_;
    static inline std::string cpu_, cuda_;
};

TEST_F(CudaTrace, HasTheCpusCollectivesCopiesMemoryAndModules) {
    expect_same(
        "SELECT rank || ' ' || operation || ' ' || count(*) || ' ' || sum(bytes) FROM collectives "
        "GROUP BY rank, operation ORDER BY 1");
    expect_same(
        "SELECT deviceId || ' ' || copyKind || ' ' || count(*) || ' ' || sum(bytes) FROM "
        "CUPTI_ACTIVITY_KIND_MEMCPY GROUP BY deviceId, copyKind ORDER BY 1");
    expect_same("SELECT DISTINCT path FROM modules WHERE path <> '' ORDER BY 1");
    EXPECT_EQ(trace_json({"memory", cuda_}).at("ranks").at(0).at("peak_bytes"),
              trace_json({"memory", cpu_}).at("ranks").at(0).at("peak_bytes"));
}

TEST_F(CudaTrace, HasAKernelForEachCollectiveAndEachLaunch) {
    EXPECT_EQ(number(cuda_,
                     "SELECT count(*) FROM SHARD_COLLECTIVES c WHERE NOT EXISTS (SELECT 1 FROM "
                     "CUPTI_ACTIVITY_KIND_KERNEL k WHERE k.correlationId = c.correlationId)"),
              0);
    EXPECT_EQ(number(cuda_,
                     "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE NOT EXISTS (SELECT 1 FROM "
                     "CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId)"),
              0);
    EXPECT_EQ(number(cuda_,
                     "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
                     "USING (correlationId) WHERE k.start < r.start"),
              0);
}

// As shardscope-train records it: NCCL (simulated) starts with the variables that name the files.
TEST_F(CudaTrace, HasTheTopologyThatNcclWrote) {
    const testing::PlayedMachine gpus({.gpus = 2});
    const auto record = [&](trainer::job::CommKind comm, const std::string& name) {
        trainer::job::Job job = trainer::job::load_job(*folder_ / "job.toml", {});
        job.run.device = trainer::job::DeviceKind::cuda;
        job.run.comm = comm;
        job.run.trace = *folder_ / name;
        job.run.counters = false;
        trainer::cli::TraceOutput trace(job, nullptr);
        trainer::executor::RunOptions run;
        run.recorder = trace.recorder();
        const bool nccl = comm == trainer::job::CommKind::nccl;
        testing::run_played(
            job, run,
            {.group = nccl ? trainer::device::GroupKind::nccl : trainer::device::GroupKind::local,
             .nccl = &played_nccl::library()});
        EXPECT_FALSE(trace.finish().failed);
        return job.run.trace;
    };
    const std::string with = record(trainer::job::CommKind::nccl, "nccl.sqlite");
    EXPECT_EQ(texts(with,
                    "SELECT fromDevice || ' ' || toDevice || ' ' || link || ' ' || source FROM "
                    "SHARD_TOPOLOGY WHERE toDevice = 'GPU1'"),
              Words{"GPU0 GPU1 NV18 nccl"});
    EXPECT_EQ(texts(with, "SELECT value FROM SHARD_RUN WHERE key LIKE 'nccl.rings.%'"), Words{"0,1"});
    EXPECT_EQ(std::getenv("NCCL_TOPO_DUMP_FILE"), nullptr) << "the next run has its own";
    const std::string without = record(trainer::job::CommKind::local, "local.sqlite");
    EXPECT_EQ(number(without, "SELECT count(*) FROM SHARD_TOPOLOGY"), 0);
}

TEST_F(CudaTrace, AnswersEveryVerb) {
    for (const char* verb :
         {"info", "check", "summary", "modules", "units", "memory", "operators", "kernels", "collectives",
          "distributed", "overlap", "idle", "temporal", "critical-path", "stragglers", "advice", "steps"}) {
        const Json of_cuda = trace_json({verb, cuda_}), of_cpu = trace_json({verb, cpu_});
        EXPECT_FALSE(of_cuda.empty()) << verb;
        // The same results have the same members.
        std::vector<std::string> cuda_keys, cpu_keys;
        for (const auto& [key, value] : of_cuda.items()) cuda_keys.push_back(key);
        for (const auto& [key, value] : of_cpu.items()) cpu_keys.push_back(key);
        EXPECT_EQ(cuda_keys, cpu_keys) << verb;
    }
    const Json summary = trace_json({"summary", cuda_});
    for (const Json& rank : summary.at("ranks")) {
        EXPECT_EQ(rank.at("steps"), 3);
        EXPECT_GT(rank.at("categories").at("Kernel").at("us").get<double>(), 0);
        EXPECT_GT(rank.at("categories").at("Communication").at("us").get<double>(), 0);
        EXPECT_GT(rank.at("categories").at("Memcpy").at("us").get<double>(), 0);
    }
}

// A cost model can be fitted to the trace, as to the CPU's.
TEST_F(CudaTrace, CanBeCalibratedWith) {
    const std::string model = *folder_ / "cuda.toml", trace = *folder_ / "said.sqlite";
    record_played(trainer::job::load_job(*folder_ / "job.toml", {{"run.device", "cuda"}}), trace);
    const Json fitted = train_json({"calibrate", trace, "-o", model});
    EXPECT_EQ(fitted.at("base"), "h100_ib");  // the GPU's name is unknown
    std::map<std::string, int> work;
    for (const Json& own : fitted.at("residuals")) ++work[own.at("work")];
    for (const char* name : {"matmul", "elementwise", "all_gather", "reduce_scatter", "copy to device"})
        EXPECT_EQ(work[name], 1) << name;
    const Json simulated = train_json({*folder_ / "job.toml", "--run.device=sim", "--sim.cluster=" + model});
    EXPECT_GT(simulated.at("average_step_us"), 0);
}

TEST_F(CudaTrace, AnswersEveryShippedQuery) {
    for (const auto& entry : fs::directory_iterator(fs::path(sample("mlp.toml")).parent_path() / "queries")) {
        if (entry.path().extension() != ".sql") continue;
        const auto answer = [&](const std::string& trace) {
            const Outcome outcome = trace_tool({"query", trace, entry.path().string(), "--format", "csv"});
            EXPECT_EQ(outcome.status, 0) << entry.path() << ": " << outcome.err;
            return std::count(outcome.out.begin(), outcome.out.end(), '\n');
        };
        const auto of_cuda = answer(cuda_), of_cpu = answer(cpu_);
        EXPECT_EQ(of_cuda > 1, of_cpu > 1) << entry.path() << ": rows where the CPU's trace has some";
    }
}

#ifdef SHARDSCOPE_VIEW
TEST_F(CudaTrace, OpensInEveryPanel) {
    for (const char* panel :
         {"runs", "timeline", "modules", "units", "memory", "summary", "operators", "kernels", "copies",
          "collectives", "distributed", "shardmap", "idle", "advice", "compare", "query"}) {
        const std::string picture = *folder_ / (std::string(panel) + ".png");
        const Outcome outcome = run_command(
            {SHARDSCOPE_VIEW, cuda_, "--panel", panel, "--screenshot", picture, "--size", "800x500"});
        EXPECT_EQ(outcome.status, 0) << panel << ": " << outcome.err;
        EXPECT_TRUE(fs::exists(picture)) << panel;
    }
}
#endif

}  // namespace TEST_FILE
}  // namespace shardscope::tools
