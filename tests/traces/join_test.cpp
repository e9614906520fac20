// Traces that are opened together: the rows of a part whose rank, modules or units get other numbers in the
// joined trace follow them.
#include "traces/import/join/join.h"

#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

using testing::ElementsAre;

std::unique_ptr<store::Trace> joined(std::unique_ptr<store::Trace> first,
                                     std::unique_ptr<store::Trace> second) {
    std::vector<std::unique_ptr<store::Trace>> parts;
    parts.push_back(std::move(first));
    parts.push_back(std::move(second));
    return join_traces(std::move(parts));
}

// An export of Nsight Systems numbers its processes from 0, so that the recorded rank 0 gets another number.
TEST(Join, RowsFollowTheirRankToItsNewNumber) {
    store::ColumnSink exported, recorded;
    exported.add(schema::RankRow{.rank = 0});
    recorded.add(schema::RankRow{.rank = 0});
    recorded.add(schema::PredictionRow{.rank = 0, .peak_bytes = 64, .where = {}});
    recorded.add(
        schema::PredictionPartRow{.rank = 0, .kind = schema::PredictionPart::step, .id = 3, .name = {}});
    recorded.add(schema::ClockRow{.rank = 0});
    recorded.add(schema::StopRow{.rank = 0, .first_rank = 7, .reason = {}, .waiting = {}});
    recorded.add(schema::FlightRow{.rank = 0});
    recorded.add(schema::AllocatorEventRow{.rank = 0});
    auto ours = recorded.take();
    ours->schema_version = 1;
    const auto all = joined(exported.take(), std::move(ours));
    ASSERT_EQ(all->ranks.size(), 2u);
    EXPECT_EQ(all->predictions.at(0).rank, 1);
    EXPECT_EQ(all->prediction_parts.at(0).rank, 1);
    EXPECT_EQ(all->prediction_parts.at(0).id, 3) << "the step's number";
    EXPECT_EQ(all->clocks.at(0).rank, 1);
    EXPECT_EQ(all->stops.at(0).rank, 1);
    EXPECT_EQ(all->stops.at(0).first_rank, 7) << "a rank of another file";
    EXPECT_EQ(all->flight.at(0).rank, 1);
    EXPECT_EQ(all->allocator_events.at(0).rank, 1);
}

TEST(Join, AGroupThatSeveralPartsReportIsThereOnce) {
    const auto part = [](int rank) {
        store::ColumnSink sink;
        sink.add(schema::RankRow{.rank = rank});
        for (const int group : {4, 1})
            sink.add(schema::GroupRow{
                .group = group, .axis = "tensor", .ranks = {}, .name = {}, .description = {}});
        return sink.take();
    };
    const auto all = joined(part(0), part(1));
    ASSERT_EQ(all->groups.size(), 2u);
    EXPECT_EQ(all->groups[0].group, 1);
    EXPECT_EQ(all->groups[1].group, 4);
}

// The parts describe different models under the same ids.
TEST(Join, PredictionsFollowTheirModulesAndUnits) {
    const auto part = [](int rank, const char* name) {
        store::ColumnSink sink;
        sink.add(schema::RankRow{.rank = rank});
        sink.add(schema::ModuleRow{.id = 0, .name = name, .class_name = {}, .path = {}});
        sink.add(schema::UnitRow{.id = 0, .name = name});
        for (const auto kind : {schema::PredictionPart::unit, schema::PredictionPart::module,
                                schema::PredictionPart::buffer, schema::PredictionPart::step}) {
            const std::int64_t id = kind == schema::PredictionPart::buffer ? -1 : 0;
            sink.add(schema::PredictionPartRow{.rank = rank, .kind = kind, .id = id, .name = {}});
        }
        auto trace = sink.take();
        trace->schema_version = 1;
        return trace;
    };
    const auto all = joined(part(0, "a"), part(1, "b"));
    ASSERT_EQ(all->modules.size(), 2u);
    ASSERT_EQ(all->units.size(), 2u);
    std::vector<std::int64_t> ids;
    for (const schema::PredictionPartRow& row : all->prediction_parts) ids.push_back(row.id);
    EXPECT_THAT(ids, ElementsAre(0, 0, -1, 0, 1, 1, -1, 0));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
