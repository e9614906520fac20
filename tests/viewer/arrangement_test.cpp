// The arrangement of rows: grouped, moved, hidden, pinned, filtered, collapsed; stored as JSON.
#include "viewer/model/arrangement.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/mlp_sample.h"
#include "viewer/timeline/rows.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ArrangementTest : public testing::Test {
  protected:
    RowLayout lay_out() const { return layout_rows(*trace_, tracks_, arrangement_, {}); }
    static std::vector<std::string> keys(const RowLayout& layout) {
        std::vector<std::string> keys;
        for (const RowEntry& entry : layout.entries) keys.push_back(entry.key);
        return keys;
    }
    static std::vector<std::string> headings(const RowLayout& layout) {
        std::vector<std::string> keys;
        for (const Row& row : layout.rows) {
            if (row.kind == Row::Kind::group)
                keys.push_back(layout.groups[static_cast<std::size_t>(row.group)].key);
        }
        return keys;
    }
    static void expect_no_overlap(const RowLayout& layout) {
        for (std::size_t i = 0; i + 1 < layout.rows.size(); ++i)
            ASSERT_LE(layout.rows[i].y + layout.rows[i].height, layout.rows[i + 1].y) << "row " << i;
    }

    std::shared_ptr<const traces::store::Trace> trace_ = mlp_sample({.ranks = 2}, "sample");
    Tracks tracks_ = make_tracks(*trace_);
    model::RowArrangement arrangement_;
};

TEST_F(ArrangementTest, StartsWithTheCollectivesAndGoesRankByRank) {
    EXPECT_THAT(headings(lay_out()), ElementsAre("collectives", "rank 0", "rank 1"));
}

TEST_F(ArrangementTest, PutsStreamsOfAKindTogether) {
    arrangement_.grouping = model::RowArrangement::Grouping::kind;
    const RowLayout layout = lay_out();
    EXPECT_THAT(headings(layout), Contains("kind kernel"));
    EXPECT_THAT(headings(layout), Contains("kind communication"));
    EXPECT_THAT(headings(layout), Not(Contains("rank 0")));
    EXPECT_EQ(keys(layout).size(), keys(layout_rows(*trace_, tracks_, {}, {})).size());
    expect_no_overlap(layout);
}

TEST_F(ArrangementTest, ShowsTheHeadingAloneOfACollapsedGroup) {
    arrangement_.toggle_collapsed("rank 0");
    for (const Row& row : lay_out().rows) EXPECT_TRUE(row.rank.value != 0 || row.kind == Row::Kind::group);
    arrangement_.toggle_collapsed("rank 0");
    EXPECT_EQ(arrangement_, model::RowArrangement());
}

TEST_F(ArrangementTest, LeavesOutWhatIsHidden) {
    const std::string first = keys(lay_out())[2];
    arrangement_.hide(first);
    EXPECT_THAT(keys(lay_out()), Not(Contains(first)));
    arrangement_.hide("rank 1");
    EXPECT_THAT(headings(lay_out()), ElementsAre("collectives", "rank 0"));
    arrangement_.show_all();
    EXPECT_THAT(keys(lay_out()), Contains(first));
}

TEST_F(ArrangementTest, MovesRowsAndGroupsByHand) {
    arrangement_.step("rank 1", -1, lay_out().siblings("rank 1"));
    EXPECT_THAT(headings(lay_out()), ElementsAre("collectives", "rank 1", "rank 0"));
    arrangement_.step("collectives", 1, lay_out().siblings("collectives"));
    EXPECT_THAT(headings(lay_out()), ElementsAre("rank 1", "collectives", "rank 0"));
    const auto before = lay_out().siblings("rank 0/memory");
    ASSERT_GE(before.size(), 2U);
    arrangement_.move(before.back(), before.front(), before);
    EXPECT_EQ(lay_out().siblings("rank 0/memory").front(), before.back());
    expect_no_overlap(lay_out());
}

TEST_F(ArrangementTest, KeepsPinnedRowsOnTopWhileTheRestScrolls) {
    arrangement_.toggle_pinned("rank 1/memory");
    const RowLayout layout = lay_out();
    EXPECT_EQ(keys(layout).front(), "rank 1/memory");
    const Row& pinned = layout.rows.front();
    EXPECT_TRUE(pinned.pinned);
    EXPECT_EQ(layout.under(1, 200), &pinned);
    EXPECT_FLOAT_EQ(layout.on_screen(pinned, 200), 0);
    // Below the pinned rows are the rows 200 pixels further down.
    const Row* below = layout.under(layout.pinned_height + 1, 200);
    ASSERT_NE(below, nullptr);
    EXPECT_EQ(below, layout.at(layout.pinned_height + 201));
    // No row is returned twice, not even one that is behind the pinned rows.
    const auto shown = layout.shown(200, 300);
    EXPECT_EQ(std::count(shown.begin(), shown.end(), &pinned), 1);
    for (const Row* row : shown) {
        if (row->pinned) continue;
        EXPECT_GT(layout.on_screen(*row, 200) + row->height, layout.pinned_height);
    }
    expect_no_overlap(layout);
}

TEST_F(ArrangementTest, FiltersRowsByTheirWords) {
    arrangement_.filter = "RANK 1 stream";
    const RowLayout layout = lay_out();
    EXPECT_THAT(headings(layout), ElementsAre("rank 1"));
    EXPECT_THAT(keys(layout), Each(HasSubstr("rank 1/stream")));
    EXPECT_GT(layout.filtered_out, 0U);
    EXPECT_TRUE(model::matches_filter("Rank 1 compute", "comp  rank"));
    EXPECT_FALSE(model::matches_filter("Rank 1 compute", "comm"));
}

TEST_F(ArrangementTest, IsRestoredFromJson) {
    arrangement_.grouping = model::RowArrangement::Grouping::kind;
    arrangement_.collapsed = {"rank 0"};
    arrangement_.hidden = {"rank 1/memory"};
    arrangement_.pinned = {"b", "a"};
    arrangement_.order = {"z", "y"};
    arrangement_.filter = "gather";
    EXPECT_EQ(model::arrangement_from_json(to_json(arrangement_)), arrangement_);
}

TEST_F(ArrangementTest, BearsAnyText) {
    for (const char* text : {"", "[", "[1,2]", "{\"pinned\": 3, \"order\": [1, \"a\"], \"filter\": {}}",
                             "{\"grouping\": 7, \"collapsed\": \"x\"}"}) {
        const model::RowArrangement read = model::arrangement_from_json(text);
        EXPECT_EQ(read.grouping, model::RowArrangement::Grouping::rank);
        EXPECT_TRUE(read.pinned.empty() && read.collapsed.empty() && read.filter.empty());
    }
    arrangement_.order = {"bad \xFF utf"};
    EXPECT_NO_THROW(model::arrangement_from_json(to_json(arrangement_)));
}

TEST_F(ArrangementTest, MakesALayoutAnewOnlyWhereSomethingChanged) {
    const auto tracks = std::make_shared<const Tracks>(make_tracks(*trace_));
    KeptLayout kept;
    const Row* before = kept.update(*trace_, tracks, arrangement_, {}).rows.data();
    EXPECT_EQ(kept.update(*trace_, tracks, arrangement_, {}).rows.data(), before);
    arrangement_.toggle_collapsed("rank 0");
    EXPECT_LT(kept.update(*trace_, tracks, arrangement_, {}).rows.size(), 1000U);
    EXPECT_EQ(headings(kept.update(*trace_, tracks, arrangement_, {})).size(), 3U);
}

// --- collectives -------------------------------------------------------------------------------------------

TEST_F(ArrangementTest, JoinsTheRanksOfACollectiveInOneRow) {
    ASSERT_EQ(tracks_.tracks[0].kind, Track::Kind::collectives);
    const Track& joined = tracks_.tracks[0];
    std::size_t parts = 0, transfers = 0;
    for (std::size_t i = 0; i < trace_->device.size(); ++i)
        parts += trace_->device.collective[i] >= 0 ? 1 : 0;
    for (const Lane& lane : joined.lanes) {
        for (std::size_t i = 0; i < lane.size(); ++i) {
            if (lane.paint(i) != kTransferPaint) continue;
            ++transfers;
            // The transfer begins when its last rank arrives.
            const auto last = static_cast<std::size_t>(lane.event(i).index);
            EXPECT_EQ(lane.start(i), trace_->device.start[last]);
            EXPECT_GE(lane.end(i), trace_->device.end[last]);
        }
    }
    EXPECT_EQ(transfers * 2, parts);  // each with two ranks
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
