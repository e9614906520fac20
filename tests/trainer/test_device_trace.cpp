// The trace of a run on the CUDA device (simulated on the CPU), with CUPTI simulated, too: everything that
// the streams execute is in the trace with the rank, stream and call that enqueued it.
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "played_job.h"
#include "profiler/recorder/cuda_clock.h"
#include "profiler/recorder/recorder.h"
#include "tests/profiler/cuda/fake_library.h"
#include "tests/profiler/memory_sink.h"
#include "trainer/executor/device_trace.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using profiler::testing::Environment;
using profiler::testing::FakeLibrary;
using profiler::testing::MemorySink;
using profiler::testing::Received;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const FakeLibrary& fake() {
    static const FakeLibrary library(FAKE_CUPTI);
    return library;
}

// Reports to the fake CUPTI each call that enqueues a piece of work, and what the streams then do for it.
class PlayedCupti final : public device::WorkMarks, public played_cuda::Observer {
  public:
    explicit PlayedCupti(device::WorkMarks& marks) : marks_(marks) { played_cuda::observe(this); }
    ~PlayedCupti() override { played_cuda::observe(nullptr); }

    void begin(const profiler::DeviceWork& work) override {
        marks_.begin(work);
        const std::uint32_t call = ++calls_;
        fake().call(0, "cudaLaunchKernel_v7000", call);
        played_cuda::set_tag(call);
    }
    void end() override {
        played_cuda::set_tag(0);
        marks_.end();
    }

    void carry_out(played_cuda::Activity activity, std::uint64_t call,
                   const std::function<void()>& work) override {
        const std::int64_t start = FakeLibrary::now();
        work();
        const std::int64_t end = FakeLibrary::now();
        if (call == 0) return;
        ++done;
        // Records go to arbitrary buffers, and the buffers come back in arbitrary order.
        const int lane = 1 + static_cast<int>(call % 15);
        const auto correlation = static_cast<std::uint32_t>(call);
        switch (activity) {
            case played_cuda::Activity::memcpy:
                return fake().emit(
                    lane, timed(cupti_record<profiler::cupti::Memcpy>(profiler::cupti::kKindMemcpy), start,
                                end, correlation));
            case played_cuda::Activity::memset:
                return fake().emit(
                    lane, timed(cupti_record<profiler::cupti::Memset>(profiler::cupti::kKindMemset), start,
                                end, correlation));
            default:
                return fake().kernel(lane, correlation, start, end);
        }
    }

    std::atomic<std::size_t> done{0};

  private:
    template <typename Record>
    static Record cupti_record(std::uint32_t kind) {
        Record record{};
        record.kind = kind;
        return record;
    }
    template <typename Record>
    static Record timed(Record record, std::int64_t start, std::int64_t end, std::uint32_t call) {
        record.start = static_cast<std::uint64_t>(start);
        record.end = static_cast<std::uint64_t>(end);
        record.correlation = call;
        return record;
    }

    device::WorkMarks& marks_;
    std::atomic<std::uint32_t> calls_{0};
};

// A row of device work of any kind.
struct DeviceRow {
    int device, stream;
    std::int64_t start, end;
};

// A small job, run once with its trace in memory.
struct TracedRun {
    TracedRun() {
        fake();
        job::Job job = testing::with_wrap(testing::mlp_job(3, 16, 4, 2), "module:Linear");
        job.run.steps = 3;
        profiler::Recorder recorder(std::make_unique<MemorySink>(got), nullptr);
        RunOptions options;
        options.recorder = &recorder;
        options.on_warning = [this](const std::string& warning) { warnings.push_back(warning); };
        options.make_device = [this](const DeviceRequest& request) {
            testing::PlayedOptions played;
            if (device::WorkMarks* marks = request.trace.open()) played.marks = &cupti.emplace(*marks);
            return testing::played_device(played)(request);
        };
        losses = testing::run(job, options).losses;
        recorder.finish();
        for (const auto& row : got.kernels) add(row);
        for (const auto& row : got.memcpys) add(row);
        for (const auto& row : got.memsets) add(row);
    }

    Received got;
    std::optional<PlayedCupti> cupti;
    std::vector<double> losses;
    std::vector<std::string> warnings;
    std::multimap<std::int64_t, DeviceRow> rows;  // of the device, by correlation

  private:
    template <typename Row>
    void add(const Row& row) {
        rows.insert({row.correlation, {row.device, row.stream, row.start, row.end}});
    }
};

TEST(DeviceTraceTest, ContainsAllThatTheStreamsDo) {
    const TracedRun run;
    EXPECT_THAT(run.warnings, IsEmpty());
    EXPECT_THAT(run.got.diagnostics, IsEmpty());
    ASSERT_GT(run.rows.size(), 0u);
    EXPECT_EQ(run.rows.size(), run.cupti->done);
    EXPECT_FALSE(run.got.memcpys.empty());

    // Each row was enqueued by one call of its rank, before it began.
    std::map<std::int64_t, const traces::schema::RuntimeRow*> calls;
    for (const traces::schema::RuntimeRow& call : run.got.runtimes) calls.emplace(call.correlation, &call);
    std::set<int> ranks, streams;
    for (const auto& [correlation, row] : run.rows) {
        const auto call = calls.find(correlation);
        ASSERT_NE(call, calls.end()) << correlation;
        EXPECT_GE(row.start, call->second->start - profiler::CudaClock::kStep);
        EXPECT_EQ(correlation >> 32, row.device);
        ranks.insert(row.device);
        streams.insert(row.stream);
    }
    EXPECT_THAT(ranks, ElementsAre(0, 1));
    EXPECT_GT(streams.size(), 2u);  // compute, unshard, copies …
}

TEST(DeviceTraceTest, JoinsCollectivesWithTheirKernels) {
    const TracedRun run;
    ASSERT_FALSE(run.got.collectives.empty());
    for (const traces::schema::CollectiveRow& collective : run.got.collectives) {
        const auto [first, last] = run.rows.equal_range(collective.correlation);
        ASSERT_NE(first, last) << "no kernel of collective " << collective.sequence;
        for (auto row = first; row != last; ++row) EXPECT_EQ(row->second.device, collective.rank);
    }
}

TEST(DeviceTraceTest, ContinuesWithoutCuptiAndNotesIt) {
    const TracedRun traced;
    const Environment held("FAKE_CUPTI_HOLDER", "Nsight Systems");
    const TracedRun other;
    EXPECT_EQ(other.losses, traced.losses);
    const auto says = HasSubstr("\"Nsight Systems\" uses CUPTI in this process");
    EXPECT_THAT(other.warnings, ElementsAre(says));
    ASSERT_EQ(other.got.diagnostics.size(), 1u);
    EXPECT_THAT(other.got.diagnostics[0].text, says);
    EXPECT_TRUE(other.rows.empty());
    EXPECT_FALSE(other.got.runtimes.empty());
    EXPECT_FALSE(other.got.collectives.empty());
}

TEST(DeviceTraceTest, RequestsNothingWithoutATrace) {
    DeviceTrace trace(nullptr);
    EXPECT_EQ(trace.open(), nullptr);
    EXPECT_EQ(trace.problem(), "");
    trace.finish();
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
