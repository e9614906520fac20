// Large traces get a file of their columns, once, in the background.
#include "viewer/timeline/columns_keeper.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/sample_run.h"
#include "tests/traces/temporary_folder.h"
#include "traces/store/beside/column_file.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

namespace fs = std::filesystem;

class Keeper : public testing::Test {
  protected:
    Keeper() {
        traces::store::DatabaseWriter writer({.path = path_});
        traces::write_sample_run(writer);
        writer.finish(3 * traces::kSampleMs, 0);
        fs::last_write_time(path_, fs::file_time_type::clock::now() - std::chrono::seconds(10));
    }
    model::TracePtr load() const { return traces::store::load_trace(path_); }
    // Frames until nothing is being written: what was said.
    static std::string said(ColumnsKeeper& keeper, const model::TracePtr& trace) {
        const auto tracks = std::make_shared<const traces::lanes::Tracks>(traces::lanes::make_tracks(*trace));
        std::string all;
        do {
            all += keeper.keep(trace, tracks);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } while (keeper.busy());
        return all + keeper.keep(trace, tracks);
    }

    traces::TemporaryFolder folder_;
    std::string path_ = folder_ / "run.sqlite", columns_ = traces::store::column_path(path_);
};

TEST_F(Keeper, WritesTheFileOfALargeTraceOnceAndSaysSo) {
    ColumnsKeeper keeper(1);
    const model::TracePtr trace = load();
    EXPECT_THAT(
        said(keeper, trace),
        testing::MatchesRegex(".*run.sqlite.shardscope-columns \\([0-9.]+ MiB\\) is written: the trace "
                              "opens faster from now on."));
    ASSERT_TRUE(fs::exists(columns_));
    fs::remove(columns_);
    EXPECT_EQ(said(keeper, trace), "");
    EXPECT_FALSE(fs::exists(columns_));
}

TEST_F(Keeper, LeavesSmallTracesAndThoseThatHaveTheFile) {
    ColumnsKeeper large;
    EXPECT_EQ(said(large, load()), "");
    EXPECT_FALSE(fs::exists(columns_));
    ColumnsKeeper keeper(1);
    EXPECT_NE(said(keeper, load()), "");
    const model::TracePtr kept = load();
    ASSERT_NE(kept->beside, nullptr);
    EXPECT_EQ(said(keeper, kept), "");
}

TEST_F(Keeper, SaysWhyItCouldNotBeWritten) {
    const model::TracePtr trace = load();
    fs::create_directory(columns_);  // which no file can replace
    ColumnsKeeper keeper(1);
    EXPECT_THAT(said(keeper, trace),
                testing::AllOf(testing::HasSubstr("The columns of"), testing::HasSubstr("are not kept ("),
                               testing::HasSubstr("as slowly as before.")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
