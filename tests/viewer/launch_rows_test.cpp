// Launch sizes and copies: SQL results of a database as rows and as tables.
#include "viewer/panels/work/launch_rows.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/query.h"
#include "traces/store/write/writer.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using traces::store::RankIndex;

namespace fs = std::filesystem;

class LaunchTest : public PanelsTest {
  protected:
    LaunchTest() {
        std::string folder = (fs::temp_directory_path() / "shardscope-launch-XXXXXX").string();
        folder_ = ::mkdtemp(folder.data());
        path_ = folder_ / "run.sqlite";
        traces::store::DatabaseWriter writer({.path = path_.string()});
        writer.add(traces::schema::RankRow{.rank = 0, .device = 0, .global_pid = 100});
        writer.add(traces::schema::RankRow{.rank = 1, .device = 0, .global_pid = 200});
        // Rank 0 has two launches of one size (10 us and 30 us) and one of another; rank 1 has one.
        add_kernel(writer, 100, 1'000, 10'000, {32, 2, 1});
        add_kernel(writer, 100, 50'000, 30'000, {32, 2, 1});
        add_kernel(writer, 100, 90'000, 5'000, {1, 1, 1});
        add_kernel(writer, 200, 95'000, 7'000, {32, 2, 1});
        // 4 MiB in 1 ms and 2 MiB in 1 ms: 6 * 2^20 bytes / 2 * 10^6 ns.
        add_copy(writer, 100'000, 1'000'000, 4 << 20, traces::schema::kMemKindPinned);
        add_copy(writer, 1'200'000, 1'000'000, 2 << 20, traces::schema::kMemKindPinned);
        add_copy(writer, 2'400'000, 500'000, 1 << 20, traces::schema::kMemKindPageable);
        writer.finish(3'000'000, 0);
        trace_ = traces::store::load_trace(path_.string());
    }
    ~LaunchTest() override { fs::remove_all(folder_); }

    struct Size {
        int x, y, z;
    };
    static void add_kernel(traces::store::DatabaseWriter& writer, std::int64_t pid, std::int64_t start,
                           std::int64_t length, Size grid) {
        traces::schema::KernelRow row;
        row.start = start;
        row.end = start + length;
        row.device = 0;
        row.global_pid = pid;
        row.short_name = writer.intern("fill");
        row.grid[0] = grid.x;
        row.grid[1] = grid.y;
        row.grid[2] = grid.z;
        row.block[0] = 128;
        row.registers = 40;
        row.static_shared_memory = 1024;
        row.dynamic_shared_memory = 512;
        writer.add(row);
    }
    static void add_copy(traces::store::DatabaseWriter& writer, std::int64_t start, std::int64_t length,
                         std::int64_t bytes, int from) {
        traces::schema::MemcpyRow row;
        row.start = start;
        row.end = start + length;
        row.device = 0;
        row.global_pid = 100;
        row.bytes = bytes;
        row.src_kind = from;
        writer.add(row);
    }
    std::vector<Launches> launches(const LaunchRange& range = {}) const {
        return launches_of(traces::store::run_query(path_.string(), launches_sql(range)).front(), *trace_);
    }

    fs::path folder_, path_;
    model::TracePtr trace_;
};

TEST_F(LaunchTest, KernelsAreCountedByRankNameAndSize) {
    const std::vector<Launches> all = launches();
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].rank, RankIndex(0));
    EXPECT_EQ(all[0].name, "fill");
    EXPECT_EQ(all[0].count, 2);
    EXPECT_EQ(all[0].ns, 40'000);  // 10,000 + 30,000
    EXPECT_EQ(all[0].longest_ns, 30'000);
    EXPECT_EQ(all[0].longest_start, 50'000);
    EXPECT_EQ(all[0].registers, 40);
    EXPECT_EQ(all[0].shared_bytes, 1536);  // 1024 + 512
    EXPECT_EQ(rows_of(all, RankIndex(1)).size(), 1U);
    const auto table = launch_table(all, RankIndex(0));
    ASSERT_EQ(table->rows(), 2U);
    EXPECT_EQ(table->text(0, 1), "32 x 2 x 1");
    EXPECT_EQ(table->text(0, 2), "128 x 1 x 1");
    EXPECT_EQ(table->text(0, 3), "64");
    EXPECT_EQ(table->text(0, 6), "1.5");   // KB of 1536 bytes
    EXPECT_EQ(table->text(0, 9), "20.0");  // us: 40 / 2
}

TEST_F(LaunchTest, ALimitRangeKeepsWhatStartsInIt) {
    const std::vector<Launches> all = launches({50'000, 90'000});
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].count, 1);
    EXPECT_EQ(all[0].ns, 30'000);
}

TEST_F(LaunchTest, CopiesAreCountedByDirectionAndMemory) {
    const auto all = copies_of(traces::store::run_query(path_.string(), copies_sql({})).front(), *trace_);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].name, "Memcpy HtoD");
    EXPECT_EQ(all[0].from, "Pinned");
    EXPECT_EQ(all[0].to, "Device");
    EXPECT_EQ(all[0].bytes, 6 << 20);
    EXPECT_EQ(all[1].from, "Pageable");
    const auto table = copy_table(all, RankIndex(0));
    EXPECT_EQ(table->text(0, 4), "6.00");
    EXPECT_EQ(table->text(0, 8), "3.15");  // 6,291,456 bytes / 2,000,000 ns
}

TEST_F(LaunchTest, ShowsNoSizesIfNoneAreKnown) {
    Launches row;
    row.rank = RankIndex(0);
    row.grid[0] = row.grid[1] = row.grid[2] = row.block[0] = row.block[1] = row.block[2] = 1;
    row.count = 1;
    EXPECT_FALSE(row.known());
    EXPECT_EQ(launch_table({row}, RankIndex(0))->text(0, 1), "-");
    row.registers = 16;  // so that it was really one thread
    EXPECT_TRUE(row.known());
}

// --- the panel ---------------------------------------------------------------------------------------------

class LaunchPanelTest : public LaunchTest {
  protected:
    LaunchPanelTest() {
        draw::items::keep(true);
        session_.open_file(path_.string());
        while (session_.loading()) session_.poll();
    }
};

TEST_F(LaunchPanelTest, AsksTheDatabaseAndLeadsToTheLongest) {
    const auto panel = make_panel("kernels");
    settle(*panel);
    click(*panel, "kernels.show.by_launch_size");
    settle(*panel);
    EXPECT_EQ(item("kernels.launches.rows"), "2");
    click(*panel, "kernels.launches.row.0", true, kNearLeft);
    EXPECT_EQ(session_.wanted_panel, "timeline");
    const model::SelectedEvent chosen = session_.selected;
    ASSERT_EQ(chosen.kind, model::EventKind::device);
    EXPECT_EQ(trace_->device.start[static_cast<std::size_t>(chosen.index)], 50'000);
    click(*panel, "kernels.show.copies");
    settle(*panel);
    EXPECT_EQ(item("kernels.copies.rows"), "2");
}

TEST_F(LaunchPanelTest, ALimitRangeHoldsForItToo) {
    const auto panel = make_panel("kernels");
    settle(*panel);
    click(*panel, "kernels.show.by_launch_size");
    settle(*panel);
    session_.current()->limit = model::TimeRange{50'000, 90'000};
    settle(*panel);
    EXPECT_EQ(item("kernels.launches.rows"), "1");
}

TEST_F(LaunchPanelTest, AChosenKernelIsTheOnlyOneShown) {
    const auto panel = make_panel("kernels");
    settle(*panel);
    click(*panel, "kernels.row.0", false, kNearLeft);
    click(*panel, "kernels.show.by_launch_size");
    settle(*panel);
    EXPECT_EQ(item("kernels.launches.filter"), "fill");
}

TEST_F(LaunchPanelTest, AFileThatIsNotADatabaseIsImportedOnlyOnRequest) {
    session_.close(0);
    std::unique_ptr<traces::store::Trace> other = traces::store::load_trace(path_.string());
    other->path = "/nowhere/trace.json";
    session_.add_trace(model::TracePtr(std::move(other)), "trace.json");
    const auto panel = make_panel("kernels");
    settle(*panel);
    click(*panel, "kernels.show.copies");
    settle(*panel);
    EXPECT_TRUE(draw::items::find("kernels.import"));
    click(*panel, "kernels.import");
    settle(*panel);
    EXPECT_THAT(clipboard_, ::testing::HasSubstr("/nowhere/trace.json"));  // the reason
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
