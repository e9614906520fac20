// FSDP units: which range and collective belongs to which unit, and what each costs. Times in nanoseconds.
#include "traces/analysis/fsdp/units.h"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/kineto_run.h"
#include "tests/traces/run_builder.h"
#include "traces/analysis/fsdp/unit_names.h"
#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/report/report.h"
#include "traces/report/text_table.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const UnitPhase& row(const RankUnits& rank, std::string_view name, schema::Phase phase) {
    for (const UnitPhase& row : rank.rows) {
        if (row.name == name && row.phase == phase) return row;
    }
    static const UnitPhase none;
    ADD_FAILURE() << "no row " << name;
    return none;
}

TEST(UnitNames, AreReadFromPyTorchsRanges) {
    const auto expect = [](std::string_view range, UnitMark mark, std::string_view unit) {
        const UnitName name = unit_name(range);
        EXPECT_EQ(name.mark, mark) << range;
        EXPECT_EQ(name.unit, unit) << range;
    };
    expect("FSDP::all_gather (layers.3)", UnitMark::other, "layers.3");
    expect("FSDP::all_gather (layers.3) [pg=1]", UnitMark::other, "layers.3");
    expect("FSDP::all_gather (layers.3 [pg=1])", UnitMark::other, "layers.3");
    expect("FSDP::all_gather (layers.3), seq = 4, op_id = 7", UnitMark::other, "layers.3");
    expect("FSDP::pre_forward", UnitMark::pre_forward, "");
    expect("FSDP::post_backward_reduce (model.layers.0)", UnitMark::post_backward, "model.layers.0");
    expect("FSDP::backward_prefetch for layers.2", UnitMark::backward_prefetch, "layers.2");
    expect("FSDP::something_new (x)", UnitMark::other, "x");
    expect("FSDP::cast_forward_inputs", UnitMark::none, "");
    expect("FullyShardedDataParallel.forward", UnitMark::forward, "");
    expect("FullyShardedDataParallel._pre_backward_hook", UnitMark::pre_backward, "");
    expect("FullyShardedDataParallel.rate_limiter", UnitMark::limiter, "");
    expect("nn.Module: FullyShardedDataParallel_3", UnitMark::module_frame, "FullyShardedDataParallel_3");
    expect("nn.Module: Linear_3", UnitMark::none, "");
    expect("FSDP::all_gather (", UnitMark::none, "");
}

TEST(Units, AreThoseThatTheRangesOfAnFsdp2TraceName) {
    const auto trace = fsdp2_step();
    const UnitsReport report = units_report(*trace);
    ASSERT_TRUE(report.any_unit);
    ASSERT_THAT(report.ranks, SizeIs(1));
    const RankUnits& rank = report.ranks[0];
    EXPECT_EQ(rank.steps, 1);
    ASSERT_THAT(rank.rows, SizeIs(4));

    const UnitPhase& forward = row(rank, "layers.0", schema::Phase::forward);
    EXPECT_EQ(forward.sum.gathers, 1);
    EXPECT_EQ(forward.sum.gather_bytes, 1024);
    EXPECT_EQ(forward.sum.gather_ns, 300);           // 1400..1700
    EXPECT_EQ(forward.sum.issue_to_ready_ns, 1380);  // 1700 - 320
    EXPECT_EQ(forward.sum.wait_ns, 200);  // its copy-out could run from 1500, when the stream was free
    EXPECT_EQ(forward.sum.gather_exposed_ns, 200);  // 1500..1700: no compute
    EXPECT_EQ(forward.hidden_by, "(root)");         // its copy-out and embedding: 1400..1500
    EXPECT_EQ(forward.hidden_ns, 100);
    EXPECT_EQ(forward.sum.held_ns, 600);  // 1400..2000, when its mm ended
    EXPECT_EQ(forward.sum.reductions, 0);

    const UnitPhase& backward = row(rank, "layers.0", schema::Phase::backward);
    EXPECT_EQ(backward.sum.gathers, 1);               // prefetched in the root's pre-backward
    EXPECT_EQ(backward.sum.issue_to_ready_ns, 1230);  // 2300 - 1070
    EXPECT_EQ(backward.sum.wait_ns, 50);              // 2250..2300
    EXPECT_EQ(backward.sum.gather_exposed_ns, 50);    // 2250..2300
    EXPECT_EQ(backward.sum.reductions, 1);
    EXPECT_EQ(backward.sum.reduce_ns, 400);          // 2900..3300
    EXPECT_EQ(backward.sum.reduce_exposed_ns, 300);  // the embedding's backward covers 2900..3000
    EXPECT_EQ(backward.hidden_by, "(root)");
    EXPECT_EQ(backward.hidden_ns, 250 + 100);  // gather: 2000..2250, reduction: 2900..3000
    EXPECT_EQ(backward.sum.regathers, 1);      // gathered, used, freed, and immediately gathered again
    EXPECT_EQ(backward.sum.held_ns, 900);      // 2000..2900
    EXPECT_EQ(backward.sum.freed_ns, 0);       // its forward ended at 2000

    const UnitPhase& root = row(rank, "(root)", schema::Phase::forward);
    EXPECT_EQ(root.sum.gather_bytes, 4096);
    EXPECT_EQ(root.sum.wait_ns, 1250);           // its copy-out was launched at 150
    EXPECT_EQ(root.sum.gather_exposed_ns, 400);  // nothing else ran
    EXPECT_EQ(root.hidden_by, "");
    EXPECT_EQ(root.sum.held_ns, 2000);  // 1000..3000: not freed after the forward
    EXPECT_EQ(row(rank, "(root)", schema::Phase::backward).sum.reduce_exposed_ns, 200);
    EXPECT_EQ(row(rank, "(root)", schema::Phase::backward).sum.gathers, 0);

    EXPECT_EQ(rank.sum.gathers, 3);
    EXPECT_EQ(rank.sum.exposed_ns(), 200 + 50 + 300 + 400 + 200);
    EXPECT_EQ(rank.shard_bytes, 4096 / 2 + 1024 / 2);
    EXPECT_EQ(rank.busy_ns, 2500);  // 1000..3500 without a gap
}

TEST(Units, PrintAsJsonUnderFixedKeysAndAsATableThatFits) {
    const auto trace = fsdp2_step();
    const UnitsReport report = units_report(*trace);
    const auto json = nlohmann::json::parse(render(report, report::Format::json));
    const auto& unit = json.at("ranks").at(0).at("units").at(0);
    EXPECT_EQ(json.at("ranks").at(0).at("rank"), 0);
    EXPECT_EQ(unit.at("name"), "layers.0");
    EXPECT_EQ(unit.at("phase"), "forward");
    EXPECT_EQ(unit.at("gathers"), 1);
    EXPECT_EQ(unit.at("bytes"), 1024);
    EXPECT_DOUBLE_EQ(unit.at("gather_us"), 0.3);
    EXPECT_DOUBLE_EQ(unit.at("wait_us"), 0.2);
    EXPECT_DOUBLE_EQ(unit.at("exposed_us"), 0.2);
    EXPECT_DOUBLE_EQ(unit.at("reduce_us"), 0);
    EXPECT_DOUBLE_EQ(unit.at("gather_per_step_us"), 0.3);  // of one step
    std::istringstream table(render(report, report::Format::table));
    for (std::string line; std::getline(table, line);) EXPECT_LE(report::display_width(line), 120U) << line;
    // One line of CSV for each unit and phase, and the header.
    const std::string csv = render(report, report::Format::csv);
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 4);
}

TEST(Units, SumsAndMeansOfAStepHaveNamesOfTheirOwn) {
    UnitPhase row{.name = "layers.0", .phase = schema::Phase::forward};
    row.sum.gathers = 4;
    row.sum.gather_ns = 600;
    row.sum.gather_bytes = 0;  // unknown
    UnitsReport report;
    report.ranks.push_back({.rank = 0, .steps = 4, .rows = {row}, .sum = row.sum});
    const auto json =
        nlohmann::json::parse(render(report, report::Format::json)).at("ranks").at(0).at("units").at(0);
    EXPECT_DOUBLE_EQ(json.at("gather_us"), 0.6);
    EXPECT_DOUBLE_EQ(json.at("gather_per_step_us"), 0.15);
    EXPECT_DOUBLE_EQ(json.at("gathers_per_step"), 1);
    EXPECT_TRUE(json.at("bytes").is_null());
    EXPECT_TRUE(json.at("bytes_per_step").is_null());
    std::istringstream csv(render(report, report::Format::csv));
    std::string names, values;
    std::getline(csv, names);
    std::getline(csv, values);
    const auto column = [&](const std::string& name) {
        const std::string before = names.substr(0, ("," + names + ",").find("," + name + ","));
        std::istringstream cells(values);
        std::string cell;
        for (auto n = std::count(before.begin(), before.end(), ','); n >= 0; --n)
            std::getline(cells, cell, ',');
        return cell;
    };
    EXPECT_EQ(column("gather_us"), "0.6");
    EXPECT_EQ(column("gather_per_step_us"), "0.15");
    EXPECT_EQ(column("bytes"), "");
}

TEST(Units, AreThoseOfASelectedStepsCollectives) {
    const auto trace = fsdp2_step();
    const UnitsReport other = units_report(*trace, {.first_step = 1});
    ASSERT_THAT(other.ranks, SizeIs(1));
    EXPECT_THAT(other.ranks[0].rows, IsEmpty());
    const UnitsReport late = units_report(*trace, {.from_ns = 2900});
    EXPECT_EQ(late.ranks[0].sum.gathers, 0);
    EXPECT_EQ(late.ranks[0].sum.reductions, 2);
}

// Unit names by range, in the order of the ranges.
std::vector<std::string> units_of(const store::Trace& trace, std::string_view range_name) {
    const UnitRanges units = find_units(trace);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < trace.ranges.size(); ++i) {
        if (trace.strings[trace.ranges.name[i]] != range_name) continue;
        found.push_back(units.unit[i].known() ? units.names[units.unit[i].at()] : "-");
    }
    return found;
}

// FSDP1 without module frames: a root around two units. `root_hooks`: the root has parameters of its own.
std::unique_ptr<store::Trace> fsdp1_step(bool root_hooks) {
    KinetoRun run;
    run.annotation(0, 4000, "ProfilerStep#0");
    run.annotation(100, 900, "FullyShardedDataParallel.forward");
    for (const std::int64_t at : {200, 400}) {
        run.annotation(at, at + 100, "FullyShardedDataParallel.forward");
        run.annotation(at + 2, at + 20, "FullyShardedDataParallel._pre_forward");
        run.annotation(at + 4, at + 10, "FullyShardedDataParallel.rate_limiter");
        run.gather(at + 12, 1000 + at, 1100 + at, 512);
        run.op(at + 40, at + 60, "aten::linear");
        run.kernel(at + 50, 1100 + at, 1200 + at);
    }
    run.on_autograd();
    if (root_hooks) run.annotation(1000, 1010, "FullyShardedDataParallel._pre_backward_hook");
    run.annotation(1100, 1150, "FullyShardedDataParallel._pre_backward_hook");
    run.gather(1110, 2000, 2100, 512);
    run.annotation(1120, 1140, "FullyShardedDataParallel._pre_backward_prefetch");
    run.gather(1130, 2100, 2200, 512);
    run.op(1155, 1170, "autograd::engine::evaluate_function: AddmmBackward0");
    run.kernel(1160, 2200, 2300);
    run.annotation(1200, 1250, "FullyShardedDataParallel._post_backward_hook");
    run.reduce(1210, 2300, 2350, 512);
    run.annotation(1300, 1310, "FullyShardedDataParallel._pre_backward_hook");
    run.op(1340, 1360, "autograd::engine::evaluate_function: AddmmBackward0");
    run.kernel(1350, 2350, 2400);
    run.annotation(1400, 1420, "FullyShardedDataParallel._post_backward_hook");
    run.reduce(1410, 2400, 2500, 512);
    if (root_hooks) run.annotation(1500, 1520, "FullyShardedDataParallel._post_backward_hook");
    return run.take();
}

TEST(Units, FollowFromTheOrderOfForwardsForFsdp1Hooks) {
    for (const bool root_hooks : {false, true}) {
        const auto trace = fsdp1_step(root_hooks);
        const std::string zero = "FullyShardedDataParallel_0", one = "FullyShardedDataParallel_1",
                          two = "FullyShardedDataParallel_2";
        EXPECT_THAT(units_of(*trace, "FullyShardedDataParallel.forward"), ElementsAre(zero, one, two));
        const auto before = units_of(*trace, "FullyShardedDataParallel._pre_backward_hook");
        const auto after = units_of(*trace, "FullyShardedDataParallel._post_backward_hook");
        if (root_hooks) {
            EXPECT_THAT(before, ElementsAre(zero, two, one));
            EXPECT_THAT(after, ElementsAre(two, one, zero));
        } else {
            EXPECT_THAT(before, ElementsAre(two, one));
            EXPECT_THAT(after, ElementsAre(two, one));
        }
        EXPECT_THAT(units_of(*trace, "FullyShardedDataParallel._pre_backward_prefetch"), ElementsAre(one));
        EXPECT_THAT(units_of(*trace, "autograd::engine::evaluate_function: AddmmBackward0"),
                    ElementsAre(two, one));
        const UnitsReport report = units_report(*trace);
        const UnitPhase& forward = row(report.ranks[0], two, schema::Phase::forward);
        EXPECT_EQ(forward.sum.gathers, 1);
        EXPECT_EQ(forward.sum.limiter_ns, 6);  // 404..410
        EXPECT_EQ(forward.hidden_by, "");      // 1400..1500 runs after unit 1's compute of 1300..1400
        const UnitPhase& backward = row(report.ranks[0], one, schema::Phase::backward);
        EXPECT_EQ(backward.sum.gathers, 1);  // the prefetched one
        EXPECT_EQ(backward.sum.reductions, 1);
        EXPECT_EQ(backward.sum.wait_ns, 0);  // ready at 2200, its compute started at 2350
        EXPECT_EQ(row(report.ranks[0], two, schema::Phase::backward).sum.regathers, 1);
    }
}

TEST(Units, AreNamedAfterModuleFramesUnderFsdp1) {
    KinetoRun run;
    run.frame(100, 900, "nn.Module: FullyShardedDataParallel_0");
    run.annotation(110, 890, "FullyShardedDataParallel.forward");
    run.frame(200, 300, "nn.Module: FullyShardedDataParallel_4");
    run.annotation(210, 290, "FullyShardedDataParallel.forward");
    run.op(220, 230, "aten::linear");
    run.op(310, 320, "aten::relu");
    const auto trace = run.take();
    EXPECT_THAT(units_of(*trace, "aten::linear"), ElementsAre("FullyShardedDataParallel_4"));
    EXPECT_THAT(units_of(*trace, "aten::relu"), ElementsAre("FullyShardedDataParallel_0"));
    EXPECT_THAT(find_units(*trace).names, SizeIs(2));
}

TEST(Units, AnOperatorOfAutogradBelongsToTheUnitOfItsForward) {
    KinetoRun run;
    run.annotation(100, 120, "FSDP::pre_forward (a)");
    run.op(130, 140, "aten::mm");
    run.annotation(150, 160, "FSDP::post_forward (a)");
    run.on_autograd();
    run.op(500, 600, "autograd::engine::evaluate_function: MmBackward0");  // no hook precedes it
    run.op(510, 590, "MmBackward0");
    run.builder().sink().add(schema::LinkRow{.kind = schema::LinkKind::backward,
                                             .from_tid = RunBuilder::tid(0),
                                             .from_time = 130,
                                             .to_tid = RunBuilder::other_tid(0),
                                             .to_time = 500});
    const auto trace = run.take();
    EXPECT_THAT(units_of(*trace, "MmBackward0"), ElementsAre("a"));
}

TEST(Units, OfTwoPassesInAStepAreDistinguished) {
    // Accumulation: forward and backward twice; the second forward does not belong to the first backward.
    KinetoRun run;
    for (const std::int64_t at : {0, 1000}) {
        run.annotation(at + 100, at + 200, "FullyShardedDataParallel.forward");
        run.annotation(at + 300, at + 310, "FullyShardedDataParallel._pre_backward_hook");
        run.annotation(at + 400, at + 410, "FullyShardedDataParallel._post_backward_hook");
    }
    const auto trace = run.take();
    const std::string only = "FullyShardedDataParallel_0";
    EXPECT_THAT(units_of(*trace, "FullyShardedDataParallel.forward"), ElementsAre(only, only));
    EXPECT_THAT(units_of(*trace, "FullyShardedDataParallel._post_backward_hook"), ElementsAre(only, only));
}

// A unit's full parameters exist until its last compute: the copies into the buffers of its next gather read
// the shard, and those into its reduction's read the gradients, however late they run.
TEST(Units, CopiesForTheNextCollectiveUseNothingOfTheUnit) {
    KinetoRun run;
    run.annotation(0, 4000, "ProfilerStep#0");
    run.annotation(100, 200, "FSDP::pre_forward (a)");
    run.annotation(110, 130, "FSDP::all_gather (a)");
    run.kernel(112, 150, 200, 8, "split_with_sizes_copy");
    run.gather(120, 200, 400, 1024);
    run.annotation(140, 160, "FSDP::all_gather_copy_out (a)");
    run.kernel(150, 450, 500);
    run.op(210, 220, "aten::mm");
    run.kernel(215, 500, 700);
    run.annotation(230, 240, "FSDP::post_forward (a)");
    run.on_autograd();
    run.annotation(800, 900, "FSDP::pre_backward (a)");
    run.annotation(810, 830, "FSDP::all_gather (a)");
    run.kernel(812, 850, 950, 8, "split_with_sizes_copy");  // into the gather, while nothing is gathered
    run.gather(820, 950, 1100, 1024);
    run.annotation(840, 860, "FSDP::all_gather_copy_out (a)");
    run.kernel(850, 1100, 1120);
    run.op(1000, 1050, "autograd::engine::evaluate_function: MmBackward0");
    run.kernel(1010, 1120, 1500);
    run.annotation(1200, 1250, "FSDP::post_backward_reduce (a)");
    run.kernel(1210, 1600, 1700, 9, "chunk_cat");
    run.reduce(1220, 1700, 1900, 1024);
    const auto trace = run.take();
    const RankUnits rank = units_report(*trace).ranks.at(0);
    const UnitCosts& forward = row(rank, "a", schema::Phase::forward).sum;
    EXPECT_EQ(forward.held_ns, 500);  // 200..700, when its mm ended
    EXPECT_EQ(forward.wait_ns, 250);  // its copy-out was launched at 150; the gather ended at 400
    EXPECT_EQ(forward.freed_ns, 0);
    const UnitCosts& backward = row(rank, "a", schema::Phase::backward).sum;
    EXPECT_EQ(backward.held_ns, 550);   // 950..1500, when its mm ended
    EXPECT_EQ(backward.freed_ns, 250);  // 700..950
    EXPECT_EQ(backward.regathers, 1);
}

// The host has launched the gather of the backward, and the device has completed it, before the forward
// computes: two copies exist for a while, each from its gather to the last compute launched before the next.
TEST(Units, ComputeUsesTheGatherBeforeItsLaunch) {
    KinetoRun run;
    run.annotation(0, 1000, "ProfilerStep#0");
    run.annotation(10, 100, "FSDP::pre_forward (a)");
    run.annotation(20, 30, "FSDP::all_gather (a)");
    run.gather(25, 100, 200, 1024);
    run.op(110, 120, "aten::mm");
    run.kernel(115, 500, 600);
    run.annotation(130, 140, "FSDP::post_forward (a)");
    run.on_autograd();
    run.annotation(150, 200, "FSDP::pre_backward (a)");
    run.annotation(160, 170, "FSDP::all_gather (a)");
    run.gather(165, 300, 400, 1024);
    run.op(210, 220, "autograd::engine::evaluate_function: MmBackward0");
    run.kernel(215, 600, 900);
    const auto trace = run.take();
    const RankUnits rank = units_report(*trace).ranks.at(0);
    EXPECT_EQ(row(rank, "a", schema::Phase::forward).sum.held_ns, 500);   // 100..600
    EXPECT_EQ(row(rank, "a", schema::Phase::backward).sum.held_ns, 600);  // 300..900
    EXPECT_EQ(row(rank, "a", schema::Phase::backward).sum.freed_ns, 0);
}

// How long a step keeps parameters gathered does not depend on which other steps are shown.
TEST(Units, AStepThatIsNotSelectedEndsThePreviousOnesGathers) {
    KinetoRun run;
    for (int step = 0; step < 3; ++step) {
        const std::int64_t at = 1000 * step;
        run.annotation(at, at + 900, "ProfilerStep#" + std::to_string(step));
        run.annotation(at + 10, at + 100, "FSDP::pre_forward (a)");
        run.annotation(at + 20, at + 30, "FSDP::all_gather (a)");
        run.gather(at + 25, at + 100, at + 200, 1024);
        run.op(at + 110, at + 120, "aten::mm");
        run.kernel(at + 115, at + 300, at + 400);
        run.annotation(at + 130, at + 140, "FSDP::post_forward (a)");
    }
    const auto trace = run.take();
    const auto held = [&](const Selection& selection) {
        return row(units_report(*trace, selection).ranks.at(0), "a", schema::Phase::forward).sum.held_ns;
    };
    EXPECT_EQ(held({}), 3 * 300);  // 100..400 of each
    EXPECT_EQ(held({.first_step = 1}), 600);
    EXPECT_EQ(held({.last_step = 0}), 300);
}

// In our own traces rows have units and phases; modules show to which unit compute belongs.
TEST(Units, AreTheRowsOfOurTraces) {
    RunBuilder run(2);
    for (int m = 0; m < 3; ++m) {
        run.sink().add(
            schema::ModuleRow{.id = m,
                              .parent = m == 2 ? 1 : 0,
                              .name = m == 2 ? "Linear_0" : "FullyShardedDataParallel_" + std::to_string(m),
                              .class_name = "",
                              .path = ""});
    }
    run.sink().add(schema::UnitRow{.id = 5, .module = 1, .name = "net.0", .shard_bytes = 100, .bytes = 200});
    for (int rank = 0; rank < 2; ++rank) {
        run.step(rank, 0, 0, 1000);
        run.range(rank, 10, 400, "nn.Module: FullyShardedDataParallel_1", 1);
        run.range(rank, 20, 60, "FullyShardedDataParallel.rate_limiter");
        run.range(rank, 200, 300, "nn.Module: Linear_0", 2);
        run.collective(rank, 100, 500,
                       {.bytes = 200, .sequence = 0, .group_size = 2, .unit = 5, .launched = 70});
        run.kernel(rank, 500, 600, 210);
        // Rank 1 is busy for longer.
        if (rank == 1) run.kernel(rank, 600, 800, 220);
        run.allocate(rank, 5, 0x100, 60 + 40 * rank, {.category = schema::MemoryCategory::parameters});
    }
    const auto trace = run.take();
    const UnitsReport report = units_report(*trace);
    ASSERT_THAT(report.ranks, SizeIs(2));
    ASSERT_THAT(report.ranks[0].rows, SizeIs(1));
    const UnitPhase& unit = report.ranks[0].rows[0];
    EXPECT_EQ(unit.name, "net.0");
    EXPECT_EQ(unit.sum.gathers, 1);
    EXPECT_EQ(unit.sum.issue_to_ready_ns, 430);  // 500 - 70
    EXPECT_EQ(unit.sum.wait_ns, 290);            // launched at 210, ready at 500
    EXPECT_EQ(unit.sum.gather_exposed_ns, 400);
    EXPECT_EQ(unit.sum.limiter_ns, 40);
    EXPECT_EQ(unit.sum.held_ns, 500);                         // 100..600: Linear_0 lies in the unit's module
    EXPECT_DOUBLE_EQ(report.uneven.shard_bytes, 100.0 / 80);  // 60 and 100
    EXPECT_DOUBLE_EQ(report.uneven.busy, 700.0 / 600);        // 100..600 and 100..800
    ASSERT_THAT(report.all_ranks, SizeIs(1));
    EXPECT_EQ(report.all_ranks[0].sum.gathers, 2);
    EXPECT_EQ(report.rank_steps, 2);
}

TEST(Units, TheHostsOwnWaitForAGatherCounts) {
    // The host waits for the gather before it launches what needs it: the stream is idle until then.
    KinetoRun run;
    run.annotation(0, 1000, "FSDP::pre_forward (a)");
    run.annotation(10, 30, "FSDP::all_gather (a)");
    run.gather(20, 100, 500, 8);
    run.builder().sink().add(
        schema::RuntimeRow{.start = 40,
                           .end = 510,
                           .global_tid = RunBuilder::tid(0),
                           .correlation = 9000,
                           .name = run.builder().sink().intern("cudaStreamSynchronize")});
    run.kernel(520, 530, 600);
    const auto trace = run.take();
    EXPECT_EQ(units_report(*trace).ranks[0].rows[0].sum.wait_ns, 460);  // 40..500
}

TEST(Units, FilesDoNotKeepARankBusy) {
    RunBuilder run;
    run.step(0, 0, 0, 400);
    run.kernel(0, 100, 200, 10);
    run.file(0, schema::kCopyDiskToHost, 150, 390, 20);
    EXPECT_EQ(units_report(*run.take()).ranks[0].busy_ns, 200 - 100);
}

TEST(Units, ATraceWithoutAnySaysSo) {
    RunBuilder run;
    run.kernel(0, 0, 10);
    EXPECT_FALSE(units_report(*run.take()).any_unit);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
