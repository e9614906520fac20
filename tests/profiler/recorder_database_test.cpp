// The recorder with the database sink: the file contains what threads record, and opens.
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "profiler/recorder/calibration.h"
#include "profiler/recorder/recorder.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/query.h"
#include "traces/store/write/writer.h"

namespace shardscope::profiler {
namespace TEST_FILE {

class RecorderOnDisk : public ::testing::Test {
  protected:
    ~RecorderOnDisk() override {
        std::error_code ignored;
        for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix, ignored);
    }

    std::unique_ptr<Recorder> start() {
        traces::store::WriterOptions writer;
        writer.path = path_;
        writer.start_system_ns = monotonic_ns();
        RecorderOptions options;
        options.start_system_ns = writer.start_system_ns;
        return std::make_unique<Recorder>(
            std::make_unique<traces::store::DatabaseWriter>(writer),
            [](traces::store::EventSink& sink, std::int64_t duration_ns, std::int64_t dropped) {
                static_cast<traces::store::DatabaseWriter&>(sink).finish(duration_ns, dropped);
            },
            options);
    }

    std::int64_t count(const std::string& table) const {
        const auto results = traces::store::run_query(path_, "SELECT count(*) FROM " + table);
        return std::get<std::int64_t>(results.at(0).rows.at(0).at(0));
    }

    const std::string path_ = (std::filesystem::temp_directory_path() /
                               ("shardscope-recorder-" + std::to_string(::getpid()) + ".sqlite"))
                                  .string();
};

TEST_F(RecorderOnDisk, opens_again_with_everything_in_it) {
    auto recorder = start();
    recorder->describe(traces::schema::RunInfoRow{"model.width", "64"});
    for (int rank = 0; rank < 2; ++rank) {
        std::thread([&] {
            ThreadLog* log = recorder->attach_thread("rank " + std::to_string(rank), rank);
            traces::schema::RankRow row;
            row.rank = row.device = rank;
            row.global_pid = traces::schema::global_pid(::getpid());
            recorder->describe(row);
            recorder->describe(traces::schema::StreamRow{rank, 1, "compute"});
            const NameId step = recorder->name("ProfilerStep#1"), gemm = recorder->name("sgemm_nt");
            const NameId launch = recorder->name("cudaLaunchKernel_v7000");
            const Ticks begin = ticks();
            log->push(step);
            for (int i = 0; i < 500; ++i) {
                const std::int64_t correlation = 1 + rank * 500 + i;
                const Ticks a = ticks(), b = ticks();
                log->runtime(launch, a, b, correlation);
                DeviceWork work;
                work.name = gemm;
                work.device = rank;
                work.stream = 1;
                work.correlation = correlation;
                log->kernel(b, ticks(), work);
            }
            log->pop();
            log->step(rank, 1, begin, ticks());
        }).join();
    }
    recorder->finish();

    EXPECT_EQ(count("CUPTI_ACTIVITY_KIND_KERNEL"), 2 * 500);
    EXPECT_EQ(count("CUPTI_ACTIVITY_KIND_RUNTIME"), 2 * 500);
    EXPECT_EQ(count("NVTX_EVENTS WHERE text = 'ProfilerStep#1'"), 2);
    // A kernel starts when its launch has returned, in ticks and therefore in nanoseconds.
    EXPECT_EQ(count("CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) "
                    "WHERE k.start < r.\"end\""),
              0);
    const auto trace = traces::store::load_trace(path_);
    EXPECT_EQ(trace->ranks.size(), 2u);
    EXPECT_EQ(trace->ranges.size(), 2u);
}

TEST_F(RecorderOnDisk, is_readable_while_it_records) {
    auto recorder = start();
    recorder->attach_thread("main", -1)->mark(recorder->name("early"));
    // The sink commits every half second.
    for (int i = 0; i < 3000 && count("NVTX_EVENTS WHERE text = 'early'") == 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(count("NVTX_EVENTS WHERE text = 'early'"), 1);
    recorder->finish();
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
