// The search's text with filters, what they let through, and where the found events are marked.
#include "viewer/timeline/find_query.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/mlp_sample.h"
#include "viewer/timeline/details.h"
#include "viewer/timeline/find_text.h"
#include "viewer/timeline/hit_marks.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::atomic<bool> kGoOn = false;

TEST(FindQuery, SeparatesTextFromFilters) {
    const FindQuery query =
        parse_find("  relu  kind:kernel rank:0,3 dur>10us dur<=1.5ms unit:blocks.3 module:Linear_0 x ");
    EXPECT_EQ(query.wrong, "");
    EXPECT_EQ(query.text, "relu x");
    EXPECT_THAT(query.kinds, ElementsAre("kernel"));
    EXPECT_THAT(query.ranks, ElementsAre(0, 3));
    EXPECT_THAT(query.units, ElementsAre("blocks.3"));
    EXPECT_THAT(query.modules, ElementsAre("Linear_0"));
    EXPECT_EQ(query.shortest, 10'001);
    EXPECT_EQ(query.longest, 1'500'000);
    EXPECT_TRUE(query.has_filters());
}

TEST(FindQuery, NamesWithColonsAreText) {
    for (const std::string_view name : {"nn.Module: Linear_0", "nccl:all_reduce", "aten::mm",
                                        "void f<int>(int)", "kind::of", "rank", "dur"}) {
        const FindQuery query = parse_find(name);
        EXPECT_EQ(query.text, name);
        EXPECT_FALSE(query.has_filters()) << name;
        EXPECT_EQ(quoted(name), name);
    }
    EXPECT_EQ(quoted("rank:3"), "\"rank:3\"");
    EXPECT_EQ(parse_find(quoted("rank:3 of  4")).text, "rank:3 of  4");
    EXPECT_FALSE(parse_find(quoted("rank:3")).has_filters());
}

TEST(FindQuery, AWrongFilterIsOneSentence) {
    EXPECT_EQ(parse_find("dur>10").wrong,
              "dur>10 is not a limit of durations; write it as dur>10us, with ns, us, ms or s.");
    for (const char* text : {"dur>", "dur<ms", "dur>=1e3us", "dur>1parsec", "dur>99999999999s"})
        EXPECT_THAT(parse_find(text).wrong, HasSubstr("is not a limit of durations")) << text;
    for (const char* text : {"rank:x", "rank:1,", "rank:-1", "rank:1-3"})
        EXPECT_THAT(parse_find(text).wrong, HasSubstr("is not a rank")) << text;
    EXPECT_EQ(parse_find("a unit:").wrong, "unit: needs a value.");
}

class FilteredFind : public testing::Test {
  protected:
    FoundEvents find(const std::string& text) const { return find_text(*trace_, text, kGoOn); }

    model::TracePtr trace_ = mlp_sample({.per_linear = true, .ranks = 2}, "no such file");
};

TEST_F(FilteredFind, KeepsEventsThatPassAllFilters) {
    const FoundEvents all = find("kind:kernel");
    ASSERT_GT(all.size(), 0U);
    std::size_t kernels = 0, expected = 0;
    for (std::size_t i = 0; i < trace_->device.size(); ++i) {
        if (trace_->device.kind[i] != traces::store::DeviceKind::kernel) continue;
        ++kernels;
        if (trace_->device.end[i] - trace_->device.start[i] > 2'000 && trace_->device.rank[i] == 1)
            ++expected;
    }
    EXPECT_EQ(all.size(), kernels);
    ASSERT_GT(expected, 0U);
    ASSERT_LT(expected, kernels);
    EXPECT_EQ(find("kind:kernel rank:1 dur>2us").size(), expected);
    EXPECT_EQ(find("kind:kernel rank:0,1").size(), kernels);
    EXPECT_EQ(find("dur>2us dur<2us").size(), 0U);
    const FoundEvents of_unit = find("kind:communication unit:net.0");
    ASSERT_GT(of_unit.size(), 0U);
    for (std::size_t i = 0; i < of_unit.size(); ++i)
        EXPECT_THAT(bar_label(*trace_, of_unit.event(i)), testing::EndsWith("net.0"));
    EXPECT_GT(find("module:net.0").size(), 0U);
    EXPECT_EQ(find("Linear kind:module").size() + find("Linear kind:backward").size() +
                  find("Linear kind:range").size() + find("Linear kind:communication").size() +
                  find("Linear kind:kernel").size(),
              find("Linear").size());
}

TEST_F(FilteredFind, WaitingIsFoundByItsKindOnly) {
    EXPECT_EQ(find("kind:waiting").size(), trace_->synchronizations.size());
    EXPECT_EQ(find("a kind:waiting").size(), 0U);
}

TEST_F(FilteredFind, ToldWhatIsWrongForThisTrace) {
    EXPECT_EQ(find("rank:7").wrong, "This trace has no rank 7.");
    EXPECT_EQ(find("unit:layers.9").wrong, "No unit of this trace is called layers.9.");
    EXPECT_EQ(find("module:Conv").wrong, "No module of this trace is called Conv.");
    EXPECT_EQ(find("kind:horse").wrong, "No kind of event of this trace is called horse.");
    EXPECT_EQ(find("dur>x").wrong, parse_find("dur>x").wrong);
    EXPECT_EQ(find("dur>x").size(), 0U);
}

TEST_F(FilteredFind, EveryFoundEventIsMarkedInItsLane) {
    const Tracks tracks = make_tracks(*trace_);
    const FoundEvents found = find("Linear");
    const HitMarks marks = make_hit_marks(*trace_, tracks, found, 512, kGoOn);
    std::size_t marked = 0;
    for (std::size_t t = 0; t < tracks.tracks.size(); ++t) {
        const bool joined = tracks.tracks[t].kind == Track::Kind::collectives;
        for (std::size_t l = 0; l < tracks.tracks[t].lanes.size(); ++l) {
            const auto& items = marks.of(static_cast<int>(t), static_cast<int>(l));
            EXPECT_TRUE(std::is_sorted(items.begin(), items.end()));
            for (const std::uint32_t item : items)
                EXPECT_TRUE(found.place_of(*trace_, tracks.tracks[t].lanes[l].event(item)));
            marked += joined ? 0 : items.size();
        }
    }
    EXPECT_EQ(marked, found.size());
    EXPECT_TRUE(std::find(marks.strip.begin(), marks.strip.end(), true) != marks.strip.end());
    EXPECT_TRUE(std::find(marks.strip.begin(), marks.strip.end(), false) != marks.strip.end());
}

TEST_F(FilteredFind, TheListNamesStepAndRow) {
    const auto tracks = std::make_shared<const Tracks>(make_tracks(*trace_));
    const auto steps =
        std::make_shared<const traces::analysis::TraceSteps>(traces::analysis::find_steps(*trace_));
    const auto found = std::make_shared<const FoundEvents>(find("kind:communication rank:1"));
    ASSERT_GT(found->size(), 0U);
    const MatchTable table(trace_, found, tracks, steps);
    ASSERT_EQ(table.columns().size(), 6U);
    EXPECT_EQ(table.columns()[4].id, "step");
    EXPECT_EQ(table.columns()[5].id, "row");
    for (std::size_t row = 0; row < table.rows(); ++row) {
        const auto event = static_cast<std::size_t>(table.event(row).index);
        EXPECT_EQ(table.text(row, 5), trace_->streams[trace_->device.stream[event]].name);
        const int at = steps->event[event];
        EXPECT_EQ(table.text(row, 4),
                  at < 0 ? "-" : std::to_string(steps->ranks[1].steps[static_cast<std::size_t>(at)].number));
    }
}

// A lane of `count` events of 3 ns, one every 10 ns.
Lane lane_of(std::int64_t count) {
    Lane lane;
    for (std::int64_t i = 0; i < count; ++i) lane.add(10 * i, 10 * i + 3, {model::EventKind::device, i}, 0);
    lane.finish();
    return lane;
}

TEST(FoldHits, CostsNoMoreThanThePixelsAndLosesNone) {
    const Lane lane = lane_of(100'000);
    std::vector<std::uint32_t> every_third;
    for (std::uint32_t i = 0; i < 100'000; i += 3) every_third.push_back(i);
    for (const model::TimeView view : {model::TimeView{0, 1'000'000, 500}, model::TimeView{4'000, 9'000, 500},
                                       model::TimeView{2'990, 3'100, 500}}) {
        const std::vector<HitRun> runs = fold_hits(lane, every_third, view);
        EXPECT_LE(runs.size(), 251U);
        for (const std::uint32_t item : every_third) {
            if (lane.end(item) <= view.from || lane.start(item) >= view.to) continue;
            const auto x = static_cast<float>(std::max(0.0, view.pixel(lane.start(item))));
            EXPECT_TRUE(std::any_of(runs.begin(), runs.end(), [&](const HitRun& run) {
                return run.x0 <= x + 0.01F && run.x1 >= x - 0.01F;
            })) << item;
        }
    }
    const std::vector<HitRun> wide = fold_hits(lane, {5, 6, 50}, {0, 100, 500});
    ASSERT_EQ(wide.size(), 2U);  // the third one is out of sight
    EXPECT_FLOAT_EQ(wide[0].x0, 250);
    EXPECT_FLOAT_EQ(wide[0].x1, 265);
    EXPECT_TRUE(wide[0].outlined);
}

TEST(FoldHits, ManyInOnePixelAreOneRun) {
    const Lane lane = lane_of(100'000);
    std::vector<std::uint32_t> all(100'000);
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    const std::vector<HitRun> runs = fold_hits(lane, all, {0, 1'000'000, 500});
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_FALSE(runs[0].outlined);
    EXPECT_FLOAT_EQ(runs[0].x0, 0);
    EXPECT_GE(runs[0].x1, 499);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
