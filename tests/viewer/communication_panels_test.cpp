// The communication panels drawn without a screen: they show what the analyses compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "tests/viewer/panel_fixture.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/fsdp/shard_states.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/time/overlap.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::HasSubstr;
using testing::Not;
using traces::analysis::ShardState;
using traces::store::RankIndex;
using traces::store::UnitIndex;

class CommunicationPanels : public PanelsTest {
  protected:
    CommunicationPanels() { draw::items::keep(true); }

    static std::string us(std::int64_t ns, std::int64_t steps) {
        return draw::format_decimal(static_cast<double>(ns) * 1e-3 / static_cast<double>(steps), 1);
    }
    const traces::store::Trace& trace() { return *session_.trace(); }
};

TEST_F(CommunicationPanels, SayNothingOfAStepWhereTheTraceNamesNone) {
    traces::store::ColumnSink sink;
    write_mlp_sample({.per_linear = true}, sink);
    auto trace = sink.take();
    trace->steps.clear();
    session_.add_trace(std::move(trace), "run");
    const auto collectives = make_panel("collectives"), distributed = make_panel("distributed");
    EXPECT_THAT(draw(*collectives), Not(HasSubstr("step")));
    EXPECT_THAT(item("collectives.headline"), HasSubstr("The whole time of rank 0"));
    EXPECT_THAT(draw(*distributed), Not(HasSubstr(" per step")));
    click(*distributed, "distributed.show.ranks");
    EXPECT_THAT(draw(*distributed), Not(HasSubstr("per step")));
}

// --- Units
// -----------------------------------------------------------------------------------------------------

TEST_F(CommunicationPanels, UnitsShowTheMeansOfTheChosenRank) {
    open({.per_linear = true}, "linear.sqlite");
    session_.rank = RankIndex(1);
    const auto panel = make_panel("units");
    draw(*panel);
    const traces::analysis::UnitsReport report = traces::analysis::units_report(trace());
    const traces::analysis::RankUnits& rank = report.ranks[1];
    EXPECT_EQ(item("units.rows"), std::to_string(rank.rows.size()));
    for (const traces::analysis::UnitPhase& row : rank.rows) {
        const std::string key = "units." + row.name + " " + std::string(traces::schema::name(row.phase));
        EXPECT_EQ(item(key + ".exposed_per_step_us"), us(row.sum.exposed_ns(), rank.steps));
        if (row.sum.gathers > 0) {
            EXPECT_EQ(item(key + ".gather_per_step_us"), us(row.sum.gather_ns, rank.steps));
        }
    }
}

TEST_F(CommunicationPanels, UnitsShowSumsToo) {
    open({.per_linear = true}, "linear.sqlite");
    const auto panel = make_panel("units");
    draw(*panel);
    click(*panel, "units.show.sum_of_the_steps");
    const traces::analysis::UnitsReport report = traces::analysis::units_report(trace());
    const traces::analysis::UnitPhase& row = report.ranks[0].rows.front();
    EXPECT_EQ(item("units." + row.name + " forward.gather_us"), us(row.sum.gather_ns, 1));
}

TEST_F(CommunicationPanels, AClickOnAUnitsBarChoosesItAndADoubleClickGoesToItsGather) {
    open({.per_linear = true}, "linear.sqlite");
    const auto panel = make_panel("units");
    draw(*panel);
    const std::string unit = trace().units[2].name;
    click(*panel, "units.bar." + unit + " backward");
    EXPECT_EQ(session_.selected_unit, UnitIndex(2));
    EXPECT_EQ(session_.wanted_panel, "");
    click(*panel, "units.bar." + unit + " backward", true);
    EXPECT_EQ(session_.wanted_panel, "timeline");
    ASSERT_EQ(session_.selected.kind, model::EventKind::device);
    const auto row = static_cast<std::size_t>(
        trace().device.collective[static_cast<std::size_t>(session_.selected.index)]);
    EXPECT_EQ(trace().collectives.unit[row], trace().units[2].id);
    EXPECT_EQ(trace().collectives.phase[row], traces::schema::Phase::backward);
}

TEST_F(CommunicationPanels, UnitsObeyTheLimitRange) {
    open({.per_linear = true}, "linear.sqlite");
    const traces::store::Step& step = trace().steps[1];
    session_.open[0].limit = model::TimeRange{step.start, step.end};
    draw(*make_panel("units"));
    const traces::analysis::UnitsReport report =
        traces::analysis::units_report(trace(), model::Session::selection(session_.open[0]));
    const traces::analysis::UnitPhase& row = report.ranks[0].rows.front();
    EXPECT_EQ(item("units." + row.name + " forward.gather_per_step_us"),
              us(row.sum.gather_ns, report.ranks[0].steps));
}

// --- Collectives
// -------------------------------------------------------------------------------------------------

TEST_F(CommunicationPanels, CollectivesByOperationAreThoseOfTheReport) {
    open({.per_linear = true}, "linear.sqlite");
    draw(*make_panel("collectives"));
    const traces::analysis::CollectivesReport report = traces::analysis::collectives_report(trace());
    EXPECT_EQ(item("collectives.rows"), std::to_string(report.ranks[0].operations.size()));
    for (const traces::analysis::OperationStats& o : report.ranks[0].operations) {
        const std::string key = "collectives." + std::string(traces::schema::name(o.operation));
        EXPECT_EQ(item(key + ".count"), draw::format_count(o.count));
        EXPECT_EQ(item(key + ".us"), draw::format_decimal(o.us, 1));
        EXPECT_EQ(item(key + ".busbw_gbps"), draw::format_decimal(o.busbw_gbps, 3));
    }
}

TEST_F(CommunicationPanels, EachCollectiveCanBeFoundOnTheTimeline) {
    open({.per_linear = true}, "linear.sqlite");
    const auto panel = make_panel("collectives");
    draw(*panel);
    click(*panel, "collectives.show.each");
    click(*panel, "collectives.each.row.3");
    ASSERT_EQ(session_.selected.kind, model::EventKind::device);
    const auto event = static_cast<std::size_t>(session_.selected.index);
    EXPECT_EQ(session_.open[0].cursor, trace().device.start[event]);
    EXPECT_EQ(session_.wanted_panel, "");
    click(*panel, "collectives.each.row.3", true);
    EXPECT_EQ(session_.wanted_panel, "timeline");
}

TEST_F(CommunicationPanels, StragglersNameTheLatestRank) {
    open({.per_linear = true, .ranks = 3}, "linear.sqlite");
    const auto panel = make_panel("collectives");
    draw(*panel);
    click(*panel, "collectives.show.stragglers");
    const traces::analysis::StragglersReport report = traces::analysis::straggler_report(trace());
    ASSERT_EQ(report.ranks.size(), 3u);
    EXPECT_EQ(item("collectives.latest"), std::to_string(report.ranks[0].rank));
    EXPECT_EQ(item("collectives.stragglers.row.0"), std::to_string(report.ranks[0].rank));
}

// --- Distributed
// -------------------------------------------------------------------------------------------------

TEST_F(CommunicationPanels, DistributedShowsEveryRankOfTheReport) {
    open({.per_linear = true, .ranks = 3}, "linear.sqlite");
    const auto panel = make_panel("distributed");
    draw(*panel);
    click(*panel, "distributed.show.ranks");
    const traces::analysis::DistributedReport report = traces::analysis::distributed_report(trace());
    const traces::analysis::OverlapReport overlap = traces::analysis::overlap_report(trace());
    for (std::size_t r = 0; r < 3; ++r) {
        const traces::analysis::RankTraffic& rank = report.ranks[r];
        const std::string key = "distributed." + std::to_string(rank.rank);
        EXPECT_EQ(item(key + ".exposed_us"), us(rank.parts.exposed_communication, rank.steps));
        EXPECT_EQ(item(key + ".exposed_us"), us(overlap.ranks[r].sum.exposed_communication, rank.steps));
        EXPECT_EQ(item(key + ".waiting_us"), us(rank.ns - rank.transfer_ns, rank.steps));
    }
    click(*panel, "distributed.bar.2");
    EXPECT_EQ(session_.rank, RankIndex(2));
}

TEST_F(CommunicationPanels, DistributedShowsTheHostsOfTheReport) {
    open({.per_linear = true, .ranks = 3}, "linear.sqlite");
    const auto panel = make_panel("distributed");
    draw(*panel);
    click(*panel, "distributed.show.hosts");
    const traces::analysis::HostsReport hosts = traces::analysis::distributed_report(trace()).hosts;
    ASSERT_EQ(hosts.hosts.size(), 1u);
    EXPECT_EQ(item("distributed.hosts." + hosts.hosts[0].name + ".ranks"), "0-2");
}

TEST_F(CommunicationPanels, DistributedSaysWhereAxesAreUnknown) {
    open({.per_linear = true, .ranks = 3}, "linear.sqlite");
    const auto panel = make_panel("distributed");
    draw(*panel);
    EXPECT_THAT(click(*panel, "distributed.show.by_axis"),
                HasSubstr("No collective on a device belongs to a communicator whose axis is known."));
}

// --- Shard map
// ---------------------------------------------------------------------------------------------------

TEST_F(CommunicationPanels, TheShardMapShowsEveryCellsStateAtTheCursor) {
    open({.per_linear = true}, "linear.sqlite");
    const auto panel = make_panel("shardmap");
    draw(*panel);
    ASSERT_TRUE(session_.open[0].cursor) << "the busiest moment of a step in the middle";
    const traces::analysis::ShardStates states = traces::analysis::shard_states(trace());
    const auto cells_agree = [&] {
        for (std::size_t rank = 0; rank < 2; ++rank) {
            for (std::size_t u = 0; u < states.units.size(); ++u) {
                const std::string cell = "shardmap.cell." + states.units[u] + "." + std::to_string(rank);
                EXPECT_EQ(item(cell),
                          traces::analysis::name(
                              states.of(RankIndex(rank), UnitIndex(u)).at(*session_.open[0].cursor).state));
            }
        }
    };
    cells_agree();
    for (const traces::analysis::ShardChange& change : states.of(RankIndex(1), UnitIndex(2)).changes) {
        session_.open[0].cursor = change.time;
        draw(*panel);
        cells_agree();
        EXPECT_EQ(item("shardmap.cell." + states.units[2] + ".1"), traces::analysis::name(change.state));
    }
}

TEST_F(CommunicationPanels, TheShardMapIsSteppedFromChangeToChange) {
    open({.per_linear = true}, "linear.sqlite");
    const auto panel = make_panel("shardmap");
    draw(*panel);
    const std::int64_t start = *session_.open[0].cursor;
    panel->act("shard_next", session_);
    const std::int64_t next = *session_.open[0].cursor;
    EXPECT_GT(next, start);
    panel->act("shard_previous", session_);
    EXPECT_LE(*session_.open[0].cursor, start);
    draw(*panel);
    click(*panel, "shardmap.next");
    EXPECT_EQ(*session_.open[0].cursor, next);
}

TEST_F(CommunicationPanels, TheShardMapIsScrubbedOnLanesAndCurve) {
    open({.per_linear = true}, "linear.sqlite");
    const auto panel = make_panel("shardmap");
    draw(*panel);
    for (const std::string& name :
         {std::string("shardmap.curve"), "shardmap.lane." + trace().units[1].name}) {
        const auto place = draw::items::find(name);
        ASSERT_TRUE(place) << name;
        const float y = (place->min.y + place->max.y) / 2, width = place->max.x - place->min.x;
        click_at(*panel, {place->min.x + width * 0.25F, y});
        const std::int64_t early = *session_.open[0].cursor;
        click_at(*panel, {place->min.x + width * 0.75F, y});
        const std::int64_t late = *session_.open[0].cursor;
        EXPECT_GT(late, early) << name;
    }
}

TEST_F(CommunicationPanels, TheShardMapStaysInTheLimitRange) {
    open({.per_linear = true}, "linear.sqlite");
    const traces::store::Step& step = trace().steps[2];
    session_.open[0].limit = model::TimeRange{step.start, step.end};
    session_.open[0].cursor = step.start - 1000;
    draw(*make_panel("shardmap"));
    EXPECT_EQ(session_.open[0].cursor, step.start);
}

// Two places of a pipeline, each with a unit of its own and a tensor group of two; FSDP over the two copies.
TEST_F(CommunicationPanels, TheShardMapShowsSharesOfTensorAndPipeline) {
    traces::RunBuilder run(0);
    for (int rank = 0; rank < 8; ++rank) {
        run.sink().add(traces::schema::RankRow{.rank = rank,
                                               .device = rank,
                                               .global_pid = run.pid(rank),
                                               .global_tid = run.tid(rank),
                                               .host = "",
                                               .device_name = "",
                                               .shard = rank / 2 % 2,
                                               .tensor = rank % 2,
                                               .pipeline = rank / 4,
                                               .cpus = {}});
        run.sink().add(traces::schema::ThreadRow{.global_tid = run.tid(rank), .name = "rank", .rank = rank});
        run.collective(rank, 100, 200,
                       {.bytes = 64, .sequence = 0, .group = rank / 4, .group_size = 2, .unit = rank / 4});
        run.kernel(rank, 200, 300);
    }
    for (int unit = 0; unit < 2; ++unit)
        run.sink().add(traces::schema::UnitRow{.id = unit, .name = unit == 0 ? "first" : "second"});
    session_.add_trace(run.take(), "mesh.sqlite");
    const auto panel = make_panel("shardmap");
    const std::string text = draw(*panel);
    EXPECT_EQ(item("shardmap.cell.second.0"), "elsewhere");
    EXPECT_EQ(item("shardmap.cell.first.7"), "elsewhere");
    EXPECT_THAT(item("shardmap.cell.first.3"), Not(testing::Eq("elsewhere")));
    EXPECT_THAT(item("shardmap.share"),
                testing::AllOf(HasSubstr("Tensor slice 0 of 2 (from 0)"), HasSubstr("keeps 1/4"),
                               HasSubstr("1/2 while the unit is gathered")));
    EXPECT_THAT(text, HasSubstr("only other stages have it"));
}

// --- all of them
// ---------------------------------------------------------------------------------------------------

TEST_F(CommunicationPanels, SayWhatIsMissingFromATraceWithNothingInIt) {
    session_.add_trace(std::make_shared<traces::store::Trace>(), "empty.sqlite");
    EXPECT_THAT(draw(*make_panel("units")), HasSubstr("contains no FSDP units"));
    EXPECT_THAT(draw(*make_panel("collectives")), HasSubstr("holds no collectives"));
    EXPECT_THAT(draw(*make_panel("distributed")), HasSubstr("no work of a device"));
    EXPECT_THAT(draw(*make_panel("shardmap")), HasSubstr("holds no FSDP units"));
}

TEST_F(CommunicationPanels, TheShardMapSaysThatDdpShardsNothing) {
    auto ddp = std::make_shared<traces::store::Trace>();
    ddp->config = {{"parallel.mode", "ddp"}};
    session_.add_trace(ddp, "ddp.sqlite");
    EXPECT_THAT(draw(*make_panel("shardmap")), HasSubstr("data parallel (DDP)"));
}

TEST_F(CommunicationPanels, SurviveAnySizeAndAMouseThatClicksEverywhere) {
    open({.per_linear = true, .layers = 30}, "linear.sqlite");
    open({.per_linear = false}, "root.sqlite");
    for (const auto& panel : {make_panel("units"), make_panel("collectives"), make_panel("distributed"),
                              make_panel("shardmap")}) {
        for (const float size : {1.0F, 40.0F, 200.0F, 1000.0F}) draw(*panel, size, size);
        draw(*panel);
        EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12000) << panel->name();
        EXPECT_LT(commands(), 100) << panel->name();
        for (float y = 5; y < 800; y += 41) {
            for (float x = 5; x < 1600; x += 67) {
                ImGui::GetIO().MousePos = {x, y};
                ImGui::GetIO().MouseWheel = static_cast<int>(y) % 3 == 0 ? 1.0F : 0.0F;
                ImGui::GetIO().MouseDown[0] = static_cast<int>(x) % 2 == 0;
                frame(*panel, 1600, 820);
            }
        }
        ImGui::GetIO().MouseDown[0] = false;
        ImGui::GetIO().MousePos = {-1e9F, -1e9F};
    }
    EXPECT_LT(session_.active, session_.open.size());
}

// Two sizes of one operation on four ranks: a curve of two points.
TEST_F(CommunicationPanels, BandwidthIsACurveOverSize) {
    traces::RunBuilder run(4);
    std::int64_t sequence = 0;
    for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{1} << 20}) {
        for (int rank = 0; rank < 4; ++rank)
            run.collective(rank, 10'000 * (sequence + 1), 10'000 * (sequence + 1) + 2'000,
                           {.bytes = bytes, .sequence = sequence, .group = 1, .group_size = 4});
        ++sequence;
    }
    session_.add_trace(run.take(), "run");
    const auto panel = make_panel("collectives");
    draw(*panel);
    click(*panel, "collectives.show.bandwidth");
    EXPECT_EQ(item("collectives.chart"), "1 curve, 2 points");
    EXPECT_EQ(item("collectives.bandwidth.rows"), "2");
    for (const float size : {1.0F, 60.0F, 300.0F, 1000.0F}) draw(*panel, size, size);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
