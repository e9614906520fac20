// Copies: the panel shows the numbers of the verb, follows rank and time filter, and links to the events.
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "tests/traces/run_builder.h"
#include "tests/traces/temporary_folder.h"
#include "tests/viewer/panel_fixture.h"
#include "traces/analysis/time/copies.h"
#include "traces/store/write/writer.h"
#include "viewer/tables/table.h"
#include "viewer/tables/table_order.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;
using traces::RunBuilder;
using traces::schema::MemcpyRow;
using traces::schema::MemsetRow;

void add_copy(RunBuilder& run, int rank, std::int64_t start, std::int64_t length, std::int64_t bytes,
              int kind) {
    run.sink().add(MemcpyRow{.start = start,
                             .end = start + length,
                             .device = rank,
                             .stream = 8,
                             .global_pid = RunBuilder::pid(rank),
                             .bytes = bytes,
                             .copy_kind = kind});
}

class CopiesPanelTest : public PanelsTest {
  protected:
    CopiesPanelTest() {
        draw::items::keep(true);
        tables::table_memory().clear();
    }
    ~CopiesPanelTest() override { tables::table_memory().clear(); }

    // Rank 0 copies 3 MB and 1 MB to its device, half of the first under a kernel, and 2 MB back, and fills
    // memory of an unknown size; rank 1 copies once.
    void open_copies() {
        RunBuilder run(2);
        run.kernel(0, 150'000, 450'000);
        add_copy(run, 0, 0, 300'000, 3 << 20, traces::schema::kCopyHostToDevice);
        add_copy(run, 0, 500'000, 100'000, 1 << 20, traces::schema::kCopyHostToDevice);
        add_copy(run, 0, 600'000, 310'000, 2 << 20, traces::schema::kCopyDeviceToHost);
        run.sink().add(
            MemsetRow{.start = 950'000, .end = 955'000, .stream = 8, .global_pid = RunBuilder::pid(0)});
        add_copy(run, 1, 700'000, 20'000, 1000, traces::schema::kCopyDeviceToDevice);
        session_.add_trace(run.take(), "copies.sqlite");
    }
    // Clicks near the left, because the rows of the tables are wide.
    void click_row(model::Panel& panel, const std::string& name, bool twice = false) {
        click(panel, name, twice, kNearLeft);
        draw(panel);
    }
    std::int64_t selected_start() const {
        EXPECT_EQ(session_.selected.kind, model::EventKind::device);
        return session_.trace()->device.start.at(static_cast<std::size_t>(session_.selected.index));
    }
};

TEST_F(CopiesPanelTest, ShowsTheRowsOfTheReport) {
    open_copies();
    const auto panel = make_panel("copies");
    EXPECT_THAT(draw(*panel), HasSubstr("Rank 0: 3 kinds of copies and fills"));
    EXPECT_EQ(item("copies.rows"), "3");
    EXPECT_EQ(item("copies.row.0"), "Memcpy HtoD");
    EXPECT_EQ(item("copies.Memcpy HtoD.count"), "2");
    EXPECT_EQ(item("copies.Memcpy HtoD.mb"), "4.00");
    EXPECT_EQ(item("copies.Memcpy HtoD.us"), "400.0");
    EXPECT_EQ(item("copies.Memcpy HtoD.exposed_us"), "250.0");
    EXPECT_EQ(item("copies.Memcpy HtoD.max_us"), "300.0");
    EXPECT_EQ(item("copies.Memcpy HtoD.gbps"), "10.486");  // 4,194,304 bytes in 400,000 ns
    EXPECT_EQ(item("copies.Memcpy DtoH.us"), "310.0");
    EXPECT_EQ(item("copies.Memset.us"), "5.0");
}

TEST_F(CopiesPanelTest, ADashStandsForUnknownBytesAndRates) {
    open_copies();
    const auto panel = make_panel("copies");
    draw(*panel);
    EXPECT_EQ(item("copies.Memset.mb"), "-");
    EXPECT_EQ(item("copies.Memset.gbps"), "-");
}

TEST_F(CopiesPanelTest, EveryColumnHasAMeaningAndEveryNumberAUnit) {
    open_copies();
    const auto panel = make_panel("copies");
    draw(*panel);
    ASSERT_EQ(tables::shown_tables().size(), 1U);
    const auto fields = traces::analysis::copy_fields();
    const auto model = tables::shown_tables().front().model;
    const auto& columns = model->columns();
    ASSERT_EQ(columns.size(), fields.size()) << "all that the verb prints";
    for (std::size_t i = 0; i < columns.size(); ++i) {
        EXPECT_EQ(columns[i].help, fields[i].meaning);
        const bool measured =
            columns[i].kind == tables::TableColumn::Kind::number && columns[i].id != "count";
        EXPECT_NE(columns[i].unit.empty(), measured) << columns[i].id;
    }
}

TEST_F(CopiesPanelTest, IsExportedAsItIsSorted) {
    open_copies();
    const auto panel = make_panel("copies");
    draw(*panel);
    click(*panel, "copies.header.max_us");
    ASSERT_EQ(tables::shown_tables().size(), 1U);
    const tables::ShownTable table = tables::shown_tables().front();
    EXPECT_EQ(table.name, "copies");
    EXPECT_EQ(table_csv(*table.model, table.order.get()),
              "name,count,mb,us,exposed_us,max_us,gbps\n"
              "Memcpy DtoH,1,2,310,310,310,6.765006451612903\n"
              "Memcpy HtoD,2,4,400,250,300,10.48576\n"
              "Memset,1,,5,5,5,\n");
}

TEST_F(CopiesPanelTest, FollowsTheChosenRank) {
    open_copies();
    session_.rank = traces::store::RankIndex(1);
    const auto panel = make_panel("copies");
    EXPECT_THAT(draw(*panel), HasSubstr("Rank 1: 1 kind of copies and fills"));
    EXPECT_EQ(item("copies.rows"), "1");
    EXPECT_EQ(item("copies.Memcpy DtoD.mb"), "< 0.01");
}

TEST_F(CopiesPanelTest, ATimeFilterHoldsForItToo) {
    open_copies();
    session_.current()->limit = model::TimeRange{400'000, 700'000};
    const auto panel = make_panel("copies");
    EXPECT_THAT(draw(*panel), HasSubstr("a time filter is set"));
    EXPECT_EQ(item("copies.rows"), "2");
    EXPECT_EQ(item("copies.Memcpy HtoD.count"), "1");
    EXPECT_EQ(item("copies.Memcpy HtoD.us"), "100.0");
    click_row(*panel, "copies.Memcpy HtoD");
    EXPECT_EQ(item("copies.occurrence"), "1 event");
}

TEST_F(CopiesPanelTest, ARowLeadsToItsLongestCopyInTheTimeline) {
    open_copies();
    const auto panel = make_panel("copies");
    draw(*panel);
    click_row(*panel, "copies.Memcpy HtoD");
    EXPECT_EQ(session_.wanted_panel, "") << "one click chooses";
    EXPECT_EQ(item("copies.occurrence"), "2 events");
    click_row(*panel, "copies.Memcpy HtoD", true);
    EXPECT_EQ(session_.wanted_panel, "timeline");
    EXPECT_EQ(selected_start(), 0);
    EXPECT_LE(session_.current()->visible.from, 0);
    EXPECT_GE(session_.current()->visible.to, 300'000);
    EXPECT_EQ(item("copies.occurrence"), "1 of 2");
    click(*panel, "copies.next");
    EXPECT_EQ(selected_start(), 500'000);
}

TEST_F(CopiesPanelTest, SaysWhyThereIsNothingToShow) {
    const auto panel = make_panel("copies");
    session_.add_trace(std::make_shared<traces::store::Trace>(), "nothing");
    EXPECT_THAT(draw(*panel), HasSubstr("This trace has no copies, because it holds no events of a device."));
    session_.close(0);

    RunBuilder kernels(2);
    kernels.kernel(0, 0, 100);
    session_.add_trace(kernels.take(), "kernels");
    EXPECT_THAT(draw(*panel), HasSubstr("This trace has no copies: its devices only ran kernels"));
    session_.close(0);

    RunBuilder other(2);
    other.kernel(0, 0, 100);
    other.memcpy(1, 0, 100);
    session_.add_trace(other.take(), "other");
    EXPECT_THAT(draw(*panel), HasSubstr("This rank has no copies or fills of memory; other ranks have."));
    session_.rank = traces::store::RankIndex(1);
    session_.current()->limit = model::TimeRange{50, 60};
    EXPECT_THAT(draw(*panel), HasSubstr("This rank has no copies or fills in the time filter."));
    session_.current()->limit.reset();
    EXPECT_THAT(draw(*panel), Not(HasSubstr("no copies")));
}

TEST_F(CopiesPanelTest, KeepsNothingOfATraceThatIsClosed) {
    open_copies();
    const std::weak_ptr<const traces::store::Trace> trace = session_.trace();
    const auto panel = make_panel("copies");
    draw(*panel);
    click_row(*panel, "copies.Memcpy HtoD");
    ASSERT_FALSE(trace.expired());
    session_.close(0);
    for (const model::GoneTrace& gone : session_.take_gone()) panel->closed(*gone.trace, gone.successor);
    session_.poll();
    EXPECT_TRUE(trace.expired()) << trace.use_count() << " still keep it";
}

// --- by memory
// -----------------------------------------------------------------------------------------------

class CopiesByMemory : public CopiesPanelTest {
  protected:
    static MemcpyRow copy(std::int64_t start, std::int64_t length, int from) {
        return {.start = start,
                .end = start + length,
                .device = 0,
                .global_pid = 100,
                .bytes = 1 << 20,
                .src_kind = from};
    }

    traces::TemporaryFolder folder_;
};

TEST_F(CopiesByMemory, TellsPageableFromPinned) {
    const std::string path = folder_ / "run.sqlite";
    traces::store::DatabaseWriter writer({.path = path});
    writer.add(traces::schema::RankRow{.rank = 0, .device = 0, .global_pid = 100});
    writer.add(copy(100'000, 500'000, traces::schema::kMemKindPageable));
    writer.add(copy(700'000, 100'000, traces::schema::kMemKindPinned));
    writer.finish(1'000'000, 0);
    session_.open_file(path);
    while (session_.loading()) session_.poll();
    const auto panel = make_panel("copies");
    settle(*panel);
    EXPECT_EQ(item("copies.rows"), "1");
    click(*panel, "copies.show.by_memory");
    settle(*panel);
    EXPECT_EQ(item("copies.memory.rows"), "2");
    EXPECT_THAT(clipboard_, HasSubstr("Pageable"));
    EXPECT_THAT(clipboard_, HasSubstr("Pinned"));
    ASSERT_EQ(tables::shown_tables().size(), 1U);
    EXPECT_EQ(tables::shown_tables().front().name, "copies_by_memory");
    click_row(*panel, "copies.memory.row.0", true);
    EXPECT_EQ(session_.wanted_panel, "timeline");
    EXPECT_EQ(selected_start(), 100'000);
}

TEST_F(CopiesByMemory, OfAFileThatIsNotADatabaseAreImportedOnRequest) {
    open_copies();
    const auto panel = make_panel("copies");
    settle(*panel);
    click(*panel, "copies.show.by_memory");
    settle(*panel);
    EXPECT_TRUE(draw::items::find("copies.import"));
    EXPECT_FALSE(draw::items::find("copies.memory.rows"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
