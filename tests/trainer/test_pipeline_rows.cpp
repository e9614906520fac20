// A schedule's replay as a trace: the analysis of traces finds in it what the replay says of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/pipeline_testing.h"
#include "traces/analysis/pipeline/pipeline.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"
#include "trainer/pipeline/lower.h"
#include "trainer/pipeline/rows.h"

namespace shardscope::trainer::pipeline {
namespace TEST_FILE {

using ::testing::SizeIs;
using traces::analysis::PipelineRank;
using traces::analysis::PipelineReport;

std::unique_ptr<traces::store::Trace> traced(const Schedule& schedule, const ScheduleReplay& replay) {
    traces::store::ColumnSink sink;
    write_replay(schedule, replay, sink);
    return sink.take();
}

TEST(PipelineRows, TheAnalysisAgreesWithTheReplay) {
    int compared = 0;
    for (const ScheduleKind& kind : schedule_kinds()) {
        for (const Costs& costs :
             {Costs{}, Costs{2, 1, 3, 0, 1}, Costs{2, 2, 1, 1, 1}, Costs{4, 3, 2, 5, 2}}) {
            const Schedule schedule = make_schedule(kind, {4, 8, kind.fewest_chunks});
            const ScheduleReplay own = replay(schedule, costs);
            const PipelineReport report = traces::analysis::pipeline_report(*traced(schedule, own));
            ASSERT_THAT(report.ranks, SizeIs(4));
            for (std::size_t r = 0; r < 4; ++r) {
                const PipelineRank& found = report.ranks[r];
                const ReplayedRank& rank = own.ranks[r];
                const auto ns = [&](std::int64_t ticks) { return replayed_ns(costs, ticks); };
                const std::string where = std::string(kind.name) + ", rank " + std::to_string(r);
                EXPECT_EQ(found.makespan, ns(own.makespan)) << where;
                EXPECT_EQ(found.busy, ns(rank.busy)) << where;
                EXPECT_EQ(found.warm_up, ns(rank.warm_up)) << where;
                EXPECT_EQ(found.peer, ns(rank.peer)) << where;
                EXPECT_EQ(found.communication, ns(rank.communication)) << where;
                EXPECT_EQ(found.drain, ns(rank.drain)) << where;
                EXPECT_EQ(found.host + found.imbalance, 0) << where;
                EXPECT_EQ(found.peak_in_flight, rank.peak_in_flight) << where;
                EXPECT_EQ(found.other_orders, 0) << where;
                ++compared;
            }
            EXPECT_NEAR(report.bubble_percent(), 100 * own.bubble().value(), 1e-9) << kind.name;
        }
    }
    EXPECT_EQ(compared, 4 * 4 * static_cast<int>(schedule_kinds().size()));
}

TEST(PipelineRows, TheBubbleOfGPipeIsItsClosedForm) {
    for (const int p : {1, 2, 4, 7}) {
        for (const int m : {1, 3, 8}) {
            const Schedule schedule = made("gpipe", p, m);
            const PipelineReport report =
                traces::analysis::pipeline_report(*traced(schedule, replay(schedule, {})));
            EXPECT_DOUBLE_EQ(report.bubble_percent(), 100.0 * (p - 1) / (m + p - 1)) << p << " ranks, " << m;
        }
    }
}

TEST(PipelineRows, HaveEveryActionInItsOrder) {
    const Schedule schedule = lower(made("dualpipe_v", 2, 4));
    for (int place = 0; place < 2; ++place) {
        const auto rows = schedule_rows(schedule, place, 10 + place);
        const std::vector<Action>& actions = schedule.actions[static_cast<std::size_t>(place)];
        ASSERT_EQ(rows.size(), actions.size());
        for (std::size_t at = 0; at < rows.size(); ++at) {
            const traces::schema::ScheduleRow& row = rows[at];
            EXPECT_EQ(row.rank, 10 + place);
            EXPECT_EQ(row.position, static_cast<int>(at));
            std::string text = std::to_string(row.stage) + row.kind;
            if (row.micro_batch >= 0) text += std::to_string(row.micro_batch);
            EXPECT_EQ(text, text_of(actions[at]));
            EXPECT_EQ(row.with_next, actions[at].with_next);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::pipeline
