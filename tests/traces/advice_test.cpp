// Advice: each rule is tested once with a trace that shows its evidence, and once with one that does not.
#include "traces/analysis/advice/advice.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;

const Finding* find(const AdviceReport& report, std::string_view id) {
    const auto at = std::find_if(report.findings.begin(), report.findings.end(),
                                 [id](const Finding& f) { return f.id == id; });
    return at == report.findings.end() ? nullptr : &*at;
}

double figure(const Finding& finding, std::string_view name) {
    for (const AdviceFigure& f : finding.figures) {
        if (f.name == name) return f.value;
    }
    ADD_FAILURE() << "no figure " << name;
    return 0;
}

AdviceReport advice_of(RunBuilder& run) {
    const auto trace = run.take();
    return advice(*trace);
}

void configure(RunBuilder& run, const std::string& key, const std::string& value) {
    run.sink().add(schema::RunInfoRow{key, value});
}

void add_unit(RunBuilder& run, int id, std::int64_t elements, std::int64_t padded, int ranks) {
    run.sink().add(schema::UnitRow{.id = id,
                                   .module = -1,
                                   .name = "unit." + std::to_string(id),
                                   .elements = elements,
                                   .padded_elements = padded,
                                   .shard_bytes = padded * 4 / ranks,
                                   .bytes = padded * 4});
}

// Compute of 1000 us in a step slightly longer than 1000 us, launched immediately: nothing to advise.
void add_good_step(RunBuilder& run, int rank = 0, std::int64_t number = 1) {
    const std::int64_t at = (number - 1) * 1'000'000;
    run.step(rank, number, at, at + 1'000'000);
    run.kernel(rank, at + 1'000, at + 999'000, at + 10);
}

TEST(Advice, FindsNothingInAGoodRun) {
    RunBuilder run;
    add_good_step(run);
    const AdviceReport report = advice_of(run);
    EXPECT_TRUE(report.findings.empty());
    EXPECT_EQ(report.rules, advice_rules().size());
}

TEST(Advice, FindsNothingInAnEmptyTrace) {
    const store::Trace empty;
    EXPECT_TRUE(advice(empty).findings.empty());
}

TEST(Advice, RulesHaveIdsOfTheirOwn) {
    std::set<std::string_view> ids;
    for (const AdviceRule& rule : advice_rules()) EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
}

// The table of rules in docs/definitions.md: its first column has each rule's id, and no other.
TEST(Advice, OfEachRuleThePageSaysWhereItFires) {
    std::ifstream page(SHARDSCOPE_DEFINITIONS_PAGE);
    std::multiset<std::string> named, rules;
    bool in_table = false;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("| rule | fires if |")) {
            in_table = true;
            std::getline(page, line);  // the line below the head
            continue;
        }
        if (!in_table || !line.starts_with("| ")) {
            in_table = false;
            continue;
        }
        std::istringstream ids(line.substr(2, line.find(" |", 2) - 2));
        for (std::string id; std::getline(ids >> std::ws, id, ',');) named.insert(id);
    }
    for (const AdviceRule& rule : advice_rules()) rules.emplace(rule.id);
    EXPECT_EQ(named, rules);
}

// A step of 1000 us: compute, then a collective that is entirely exposed.
AdviceReport with_exposed(std::int64_t exposed_ns) {
    RunBuilder run;
    run.step(0, 1, 0, 900'000);
    run.kernel(0, 1'000, 1'000'000 - exposed_ns, 10);
    run.runtime(0, 20, 21, "cudaStreamWaitEvent");
    run.collective(0, 1'000'000 - exposed_ns, 1'000'000,
                   {.operation = schema::Operation::reduce_scatter, .launched = 30});
    return advice_of(run);
}

TEST(Advice, FindsExposedCommunicationOverATenth) {
    const AdviceReport report = with_exposed(200'000);
    const Finding* finding = find(report, "exposed-communication");
    ASSERT_NE(finding, nullptr);
    EXPECT_DOUBLE_EQ(figure(*finding, "exposed_communication"), 200);
    EXPECT_DOUBLE_EQ(figure(*finding, "share_of_step"), 20);
    EXPECT_THAT(finding->what, HasSubstr("20.0 %"));
    // If it were free, the device would end at 800 us, and the step with the host at 900 us.
    EXPECT_THAT(finding->expected, HasSubstr("(-10.0 %)"));
    EXPECT_FALSE(finding->job_setting.empty());
    EXPECT_FALSE(finding->pytorch.empty());
    EXPECT_EQ(find(with_exposed(90'000), "exposed-communication"), nullptr);  // 9 %, below the limit
}

TEST(Advice, FindsASlowDataLoader) {
    const auto with_loader = [](std::int64_t ns) {
        RunBuilder run;
        run.step(0, 1, 0, 1'000'000);
        run.range(0, 0, ns, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
        run.kernel(0, ns + 1'000, 1'000'000, ns + 10);
        return advice_of(run);
    };
    const AdviceReport report = with_loader(80'000);
    const Finding* finding = find(report, "data-loader");
    ASSERT_NE(finding, nullptr);
    EXPECT_DOUBLE_EQ(figure(*finding, "data_loader"), 80);
    EXPECT_DOUBLE_EQ(finding->gain_us.value_or(0), 80);
    EXPECT_EQ(find(with_loader(40'000), "data-loader"), nullptr);
}

TEST(Advice, FindsAHostThatDoesNotKeepUp) {
    const auto with_gaps = [](std::int64_t gap) {
        RunBuilder run;
        run.step(0, 1, 0, 1'000'000);
        std::int64_t at = 1'000;
        while (at + 100'000 < 1'000'000) {  // launched only after the device has been idle for a while
            run.kernel(0, at, at + 90'000, at - 500);
            at += 90'000 + gap;
        }
        return advice_of(run);
    };
    const AdviceReport report = with_gaps(60'000);  // 60 of each 150 us
    const Finding* finding = find(report, "host-bound");
    ASSERT_NE(finding, nullptr);
    EXPECT_GT(figure(*finding, "host_wait"), 30);
    EXPECT_THAT(finding->expected, HasSubstr("twice as fast"));
    EXPECT_EQ(find(with_gaps(5'000), "host-bound"), nullptr);
}

TEST(Advice, NamesTheRankThatOthersWaitFor) {
    const auto with_late_rank = [](std::int64_t late) {
        RunBuilder run(3);
        for (int r = 0; r < 3; ++r) {
            run.step(r, 1, 0, 900'000);
            const std::int64_t start = r == 2 ? 500'000 + late : 500'000;
            run.kernel(r, 1'000, start - 100, 10);
            run.runtime(r, 20, 21, "cudaStreamWaitEvent");
            run.collective(r, start, 1'000'000, {.sequence = 1, .group_size = 3, .launched = 30});
        }
        return advice_of(run);
    };
    const AdviceReport report = with_late_rank(300'000);
    const Finding* finding = find(report, "straggler");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(figure(*finding, "rank"), 2);
    EXPECT_DOUBLE_EQ(figure(*finding, "waiting"), 200);  // two of three ranks wait 300 us each
    EXPECT_EQ(find(with_late_rank(20'000), "straggler"), nullptr);
}

// The 2 % refer to the rank's own steps, for any number of ranks and steps.
TEST(Advice, SaysWhatOnlyTheStragglerDoes) {
    RunBuilder run(3);
    for (int step = 0; step < 4; ++step) {
        const std::int64_t at = step * 1'000'000;
        for (int r = 0; r < 3; ++r) {
            run.step(r, step + 1, at, at + 900'000);
            run.kernel(r, at + 1'000, at + 480'000, at + 10);
            if (r == 2) run.memcpy(r, at + 490'000, at + 510'000, at + 15);
            run.runtime(r, at + 20, at + 21, "cudaStreamWaitEvent");
            run.collective(r, r == 2 ? at + 800'000 : at + 500'000, at + 1'000'000,
                           {.sequence = step, .group_size = 3, .launched = at + 30});
        }
    }
    const AdviceReport report = advice_of(run);
    const Finding* finding = find(report, "straggler");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(figure(*finding, "rank"), 2);
    EXPECT_THAT(finding->what, HasSubstr("its copying takes time, and the others' none"));
}

TEST(Advice, FindsCopiesOnThePath) {
    const auto with_copy = [](std::int64_t ns, const char* offload) {
        RunBuilder run;
        configure(run, "fsdp.cpu_offload", offload);
        run.step(0, 1, 0, 900'000);
        run.memcpy(0, 1'000, 1'000 + ns, 10, 7);
        run.kernel(0, 1'100 + ns, 1'000'000, 20);
        return advice_of(run);
    };
    const AdviceReport report = with_copy(300'000, "true");
    const Finding* finding = find(report, "copies-on-path");
    ASSERT_NE(finding, nullptr);
    EXPECT_DOUBLE_EQ(figure(*finding, "copies_on_path"), 300);
    EXPECT_EQ(finding->job_setting, "fsdp.cpu_offload = false");
    EXPECT_EQ(find(with_copy(20'000, "true"), "copies-on-path"), nullptr);
}

// The host waits for a read and a write at once until the kernel begins.
TEST(Advice, FindsWaitsForFiles) {
    const auto with_read = [](std::int64_t ns, const char* folder) {
        RunBuilder run;
        configure(run, "memory.nvme", folder);
        run.step(0, 1, 0, 900'000);
        run.kernel(0, 100, 1'000, 10);
        run.file(0, schema::kCopyDiskToHost, 1'000, 1'000 + ns, {}, 10);
        run.file(0, schema::kCopyHostToDisk, 1'000, 1'000 + ns, {}, 11);
        run.sink().add(schema::SynchronizationRow{
            .start = 1'000, .end = 1'000 + ns, .device = 0, .global_pid = RunBuilder::pid(0)});
        run.kernel(0, 1'100 + ns, 1'000'000, 1'050 + ns);
        return advice_of(run);
    };
    const AdviceReport report = with_read(300'000, "/mnt/nvme");
    const Finding* finding = find(report, "file-waits");
    ASSERT_NE(finding, nullptr);
    EXPECT_DOUBLE_EQ(figure(*finding, "file_waits"), 300);
    EXPECT_THAT(finding->job_setting, HasSubstr("memory.nvme"));
    EXPECT_EQ(find(report, "copies-on-path"), nullptr);
    EXPECT_EQ(find(with_read(20'000, "/mnt/nvme"), "file-waits"), nullptr);
    EXPECT_EQ(find(with_read(300'000, ""), "file-waits"), nullptr);

    // The device is idle meanwhile, but not since the host is slow.
    EXPECT_EQ(find(report, "host-bound"), nullptr);
    EXPECT_NE(find(with_read(300'000, ""), "host-bound"), nullptr);
}

TEST(Advice, FindsAnIdleDeviceWithAllocatedMemory) {
    const auto busy = [](std::int64_t ns) {
        RunBuilder run;
        run.allocate(0, 0, 1, 1 << 20);
        run.step(0, 1, 0, 1'000'000);
        run.kernel(0, 1'000, 1'000 + ns, 10);
        return advice_of(run);
    };
    EXPECT_NE(find(busy(100'000), "idle-device"), nullptr);
    EXPECT_EQ(find(busy(500'000), "idle-device"), nullptr);

    RunBuilder waiting;  // for a disk
    waiting.allocate(0, 0, 1, 1 << 20);
    waiting.step(0, 1, 0, 1'000'000);
    waiting.kernel(0, 1'000, 101'000, 10);
    waiting.file(0, schema::kCopyDiskToHost, 101'000, 900'000, 20);
    EXPECT_NE(find(advice_of(waiting), "idle-device"), nullptr);

    RunBuilder snapshot;  // only memory is recorded, so device work is unknown
    snapshot.allocate(0, 0, 1, 1 << 20);
    snapshot.step(0, 1, 0, 1'000'000);
    EXPECT_EQ(find(advice_of(snapshot), "idle-device"), nullptr);
}

TEST(Advice, FindsLowOccupancyIfItIsKnown) {
    const auto with_occupancy = [](float occupancy) {
        RunBuilder run;
        run.step(0, 1, 0, 1'000'000);
        run.sink().add(schema::KernelRow{.start = 1'000,
                                         .end = 999'000,
                                         .device = 0,
                                         .stream = 7,
                                         .global_pid = RunBuilder::pid(0),
                                         .short_name = run.sink().intern("tiny"),
                                         .occupancy = occupancy});
        return advice_of(run);
    };
    const AdviceReport report = with_occupancy(10);
    const Finding* finding = find(report, "low-occupancy");
    ASSERT_NE(finding, nullptr);
    EXPECT_THAT(finding->what, HasSubstr("\"tiny\""));
    EXPECT_EQ(find(with_occupancy(60), "low-occupancy"), nullptr);
    EXPECT_EQ(find(with_occupancy(-1), "low-occupancy"), nullptr);  // unknown
}

// --- memory ------------------------------------------------------------------------------------------------

AdviceReport with_memory(schema::MemoryCategory category, std::int64_t bytes, const std::string& key = "x",
                         const std::string& value = "") {
    RunBuilder run;
    add_good_step(run);
    configure(run, key, value);
    run.allocate(0, 10, 1, bytes, {.category = category});
    run.allocate(0, 20, 2, 1000, {.category = schema::MemoryCategory::parameters});
    return advice_of(run);
}

TEST(Advice, NamesWhatMakesThePeak) {
    const AdviceReport activations = with_memory(schema::MemoryCategory::activations, 3000);
    const Finding* finding = find(activations, "activations-are-peak");
    ASSERT_NE(finding, nullptr);  // 3000 of 4000
    EXPECT_EQ(figure(*finding, "activations_at_peak"), 3000);
    EXPECT_EQ(find(with_memory(schema::MemoryCategory::activations, 800), "activations-are-peak"), nullptr);
    EXPECT_EQ(find(with_memory(schema::MemoryCategory::activations, 3000, "memory.activation_checkpointing",
                               "module:Block"),
                   "activations-are-peak"),
              nullptr);
    EXPECT_NE(find(with_memory(schema::MemoryCategory::optimizer_state, 1000), "optimizer-is-peak"),
              nullptr);  // half
    EXPECT_EQ(find(with_memory(schema::MemoryCategory::optimizer_state, 500), "optimizer-is-peak"), nullptr);
}

TEST(Advice, FindsOneUnitThatMakesThePeak) {
    const auto with_units = [](std::int64_t largest) {
        RunBuilder run;
        add_good_step(run);
        add_unit(run, 0, largest, largest, 2);
        for (int u = 1; u < 3; ++u) add_unit(run, u, 500, 500, 2);
        run.allocate(0, 10, 1, 4 * largest,
                     {.category = schema::MemoryCategory::unsharded_parameters, .unit = 0});
        run.allocate(0, 20, 2, 1000, {.category = schema::MemoryCategory::parameters});
        return advice_of(run);
    };
    EXPECT_NE(find(with_units(2000), "wrap-too-coarse"), nullptr);  // 8000 of 9000; 67 % of the model
    EXPECT_EQ(find(with_units(400), "wrap-too-coarse"), nullptr);   // none has half of the model
}

TEST(Advice, FindsGradientsStoredTwice) {
    const auto with_gradients = [](std::int64_t bytes, const char* layout) {
        RunBuilder run;
        add_good_step(run);
        configure(run, "fsdp.layout", layout);
        add_unit(run, 0, 250, 250, 2);  // 1000 bytes
        run.allocate(0, 10, 1, bytes, {.category = schema::MemoryCategory::unsharded_gradients, .unit = 0});
        return advice_of(run);
    };
    EXPECT_NE(find(with_gradients(2000, "fsdp1"), "gradient-double-buffer"), nullptr);
    EXPECT_EQ(find(with_gradients(1000, "fsdp1"), "gradient-double-buffer"), nullptr);
    EXPECT_EQ(find(with_gradients(2000, "lean"), "gradient-double-buffer"), nullptr);
}

TEST(Advice, FindsADeviceThatIsNearlyFull) {
    const auto with_device = [](std::int64_t memory) {
        RunBuilder run(0);
        run.sink().add(schema::RankRow{.rank = 0,
                                       .device = 0,
                                       .global_pid = RunBuilder::pid(0),
                                       .global_tid = RunBuilder::tid(0),
                                       .host = "host",
                                       .device_name = "gpu",
                                       .device_memory = memory});
        add_good_step(run);
        run.allocate(0, 10, 1, 950);
        return advice_of(run);
    };
    EXPECT_NE(find(with_device(1000), "memory-near-limit"), nullptr);
    EXPECT_EQ(find(with_device(2000), "memory-near-limit"), nullptr);
    EXPECT_EQ(find(with_device(0), "memory-near-limit"), nullptr);  // unknown
}

// A memory snapshot that ended out of memory: it has steps and annotations, and no device work.
TEST(Advice, ASnapshotThatRanOutOfMemoryGetsOnlyMemoryAdvice) {
    RunBuilder run;
    run.step(0, 0, 0, 1'000'000);
    run.range(0, 0, 900'000, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    run.allocate(0, 10, 1, 1000, {.category = schema::MemoryCategory::activations});
    run.sink().add(
        schema::DiagnosticRow{20, schema::Severity::error, "Out of memory on rank 0: requested 2.00 MiB"});
    const AdviceReport report = advice_of(run);
    const Finding* memory = find(report, "out-of-memory");
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(memory, &report.findings.front());
    EXPECT_EQ(memory->weight, FindingWeight::serious);
    EXPECT_NE(memory->what.find("requested 2.00 MiB"), std::string::npos);
    EXPECT_EQ(find(report, "data-loader"), nullptr);
    EXPECT_EQ(find(report, "idle-device"), nullptr);
    EXPECT_THAT(memory->expected, HasSubstr("the trace ends with the failure"));
}

TEST(Advice, FindsMemoryOutsideTheAllocator) {
    const auto with_used = [](double used) {
        RunBuilder run;
        add_good_step(run);
        run.allocate(0, 10, 1, 1000);
        run.sink().add(schema::CounterRow{
            .time = 20, .rank = 0, .name = run.sink().intern("gpu_memory_used_bytes"), .value = used});
        return advice_of(run);
    };
    const AdviceReport report = with_used(1500);
    ASSERT_NE(find(report, "untracked-memory"), nullptr);
    EXPECT_EQ(figure(*find(report, "untracked-memory"), "outside_allocator"), 500);
    EXPECT_EQ(find(with_used(1050), "untracked-memory"), nullptr);
}

// --- sharding
// ------------------------------------------------------------------------------------------------

TEST(Advice, FindsAWrapPolicyThatMatchedNothing) {
    const auto wrapped = [](const char* wrap, int units) {
        RunBuilder run;
        add_good_step(run);
        configure(run, "parallel.mode", "fsdp");
        configure(run, "fsdp.wrap", wrap);
        for (int u = 0; u < units; ++u) add_unit(run, u, 100, 100, 2);
        return advice_of(run);
    };
    EXPECT_NE(find(wrapped("module:Blokc", 1), "policy-matched-nothing"), nullptr);
    EXPECT_EQ(find(wrapped("module:Block", 4), "policy-matched-nothing"), nullptr);
    EXPECT_EQ(find(wrapped("root", 1), "policy-matched-nothing"), nullptr);  // as requested
}

// Gathers of two units in the forward, again in recomputation if requested, and in the backward.
struct Gathered {
    std::int64_t padding = 0;
    bool recompute = false;
    std::int64_t step_ns = 1'000'000;
};
AdviceReport with_gathers(const Gathered& g) {
    RunBuilder run;
    for (int u = 0; u < 2; ++u) add_unit(run, u, 100, 100, 2);
    run.step(0, 1, 0, g.step_ns - 5'000);
    std::int64_t at = 1'000, sequence = 0;
    const auto gather = [&](int unit, schema::Phase phase) {
        const std::int64_t id = run.kernel(0, at, at + 1'000, at - 500, 20, "ncclDevKernel_AllGather");
        run.sink().add(schema::CollectiveRow{.rank = 0,
                                             .correlation = id,
                                             .operation = schema::Operation::all_gather,
                                             .bytes = 1000,
                                             .padding = g.padding,
                                             .group_size = 2,
                                             .sequence = sequence++,
                                             .unit = unit,
                                             .phase = phase});
        at += 2'000;
    };
    for (int u = 0; u < 2; ++u) gather(u, schema::Phase::forward);
    run.kernel(0, at, g.step_ns - 20'000, at - 100);
    at = g.step_ns - 15'000;
    for (int u = 1; u >= 0; --u) {
        if (g.recompute) gather(u, schema::Phase::recompute);
        gather(u, schema::Phase::backward);
    }
    run.runtime(0, at - 8'200, at - 8'100);  // the stream waits for the last gather
    run.kernel(0, at, g.step_ns, at - 8'000);
    return advice_of(run);
}

TEST(Advice, FindsPadding) {
    const AdviceReport report = with_gathers({.padding = 100});
    ASSERT_NE(find(report, "padding"), nullptr);
    EXPECT_DOUBLE_EQ(figure(*find(report, "padding"), "padding"), 10);
    EXPECT_EQ(find(with_gathers({.padding = 20}), "padding"), nullptr);
}

TEST(Advice, FindsCheckpointsThatGatherOnceMore) {
    EXPECT_NE(find(with_gathers({.recompute = true}), "checkpoint-regather"), nullptr);
    EXPECT_EQ(find(with_gathers({}), "checkpoint-regather"), nullptr);
}

TEST(Advice, FindsGathersThatNothingHides) {
    // Besides the first, 3 gathers of 1 us each: 6 % of a step of 50 us, and a negligible part of 1000 us.
    const AdviceReport report = with_gathers({.step_ns = 50'000});
    const Finding* finding = find(report, "prefetch-miss");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(figure(*finding, "units_never_hidden"), 3);
    EXPECT_DOUBLE_EQ(figure(*finding, "exposed_gathers"), 3);
    EXPECT_EQ(find(with_gathers({}), "prefetch-miss"), nullptr);
}

TEST(Advice, FindsEmptyShards) {
    const auto with_unit = [](std::int64_t elements) {
        RunBuilder run(4);
        add_good_step(run);
        add_unit(run, 0, elements, 16, 4);  // shards of 4
        return advice_of(run);
    };
    EXPECT_NE(find(with_unit(11), "empty-shard"), nullptr);  // the last rank has 5 elements of padding
    EXPECT_EQ(find(with_unit(13), "empty-shard"), nullptr);
}

TEST(Advice, FindsUnevenRanks) {
    const auto with_peaks = [](std::int64_t second) {
        RunBuilder run(2);
        for (int r = 0; r < 2; ++r) add_good_step(run, r);
        run.allocate(0, 10, 1, 1000);
        run.allocate(1, 10, 1, second);
        return advice_of(run);
    };
    const AdviceReport report = with_peaks(3000);
    const Finding* finding = find(report, "uneven-ranks");
    ASSERT_NE(finding, nullptr);
    EXPECT_DOUBLE_EQ(figure(*finding, "peak_bytes"), 1.5);
    EXPECT_EQ(find(with_peaks(1100), "uneven-ranks"), nullptr);
}

TEST(Advice, FindsDivisionsAfterAveragingReductions) {
    const auto with_division = [](const char* kernel, bool divides) {
        RunBuilder run;
        add_good_step(run);
        run.range(0, 100, 200, "FullyShardedDataParallel._post_backward_hook");
        if (divides) run.range(0, 110, 120, "aten::div_");
        run.kernel(0, 500, 600, 150, 20, kernel);
        return advice_of(run);
    };
    constexpr const char* kAverage = "ncclDevKernel_ReduceScatter_SumPostDiv_f32_RING_LL";
    EXPECT_NE(find(with_division(kAverage, true), "double-average"), nullptr);
    EXPECT_EQ(find(with_division(kAverage, false), "double-average"), nullptr);
    EXPECT_EQ(find(with_division("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", true), "double-average"),
              nullptr);
}

// A trainer's rank with one unit around one layer: the limiter, then the gather, then the layer's kernel.
struct OneUnit {
    std::int64_t limiter = 0, gather = 100'000;
    bool again = false;  // gathered again for the backward
    const char* backward_prefetch = "BACKWARD_PRE";
};
AdviceReport with_unit(const OneUnit& u) {
    RunBuilder run;
    configure(run, "fsdp.backward_prefetch", u.backward_prefetch);
    run.sink().add(schema::ModuleRow{
        .id = 1, .parent = -1, .name = "FullyShardedDataParallel_1", .path = "net", .unit = 5});
    run.sink().add(schema::ModuleRow{.id = 2, .parent = 1, .name = "Linear_0", .path = "net.0", .unit = 5});
    run.sink().add(schema::UnitRow{.id = 5,
                                   .module = 1,
                                   .name = "net.0",
                                   .elements = 50,
                                   .padded_elements = 50,
                                   .shard_bytes = 100,
                                   .bytes = 200});
    run.step(0, 0, 0, 490'000);
    run.range(0, 1'000, 400'000, "nn.Module: FullyShardedDataParallel_1", 1);
    run.range(0, 2'000, 2'000 + u.limiter, "FullyShardedDataParallel.rate_limiter");
    const std::int64_t issued = 3'000 + u.limiter, ready = issued + 1'000 + u.gather;
    run.range(0, issued + 2'000, 399'000, "nn.Module: Linear_0", 2);
    const auto gather = [&](std::int64_t start, std::int64_t end, std::int64_t launched,
                            std::int64_t sequence, schema::Phase phase) {
        const std::int64_t id = run.kernel(0, start, end, launched, 20, "ncclDevKernel_AllGather");
        run.sink().add(schema::CollectiveRow{.rank = 0,
                                             .correlation = id,
                                             .operation = schema::Operation::all_gather,
                                             .bytes = 200,
                                             .group_size = 1,
                                             .sequence = sequence,
                                             .unit = 5,
                                             .phase = phase});
    };
    gather(issued + 1'000, ready, issued, 0, schema::Phase::forward);
    run.runtime(0, issued + 2'500, issued + 2'600);
    run.kernel(0, ready, 500'000, issued + 3'000);
    if (u.again) {
        gather(510'000, 600'000, 450'000, 1, schema::Phase::backward);
        run.range(0, 460'000, 480'000, "backward", 2);
        run.runtime(0, 465'000, 466'000);
        run.kernel(0, 600'000, 990'000, 470'000);
    }
    return advice_of(run);
}

TEST(Advice, FindsALimiterThatStallsCompute) {
    const AdviceReport report = with_unit({.limiter = 80'000});
    const Finding* finding = find(report, "limiter-stall");
    ASSERT_NE(finding, nullptr);
    EXPECT_DOUBLE_EQ(figure(*finding, "limiter"), 80);
    EXPECT_EQ(finding->job_setting, "fsdp.limit_all_gathers = false");
    EXPECT_EQ(find(with_unit({.limiter = 10'000}), "limiter-stall"), nullptr);  // 1 %
    EXPECT_EQ(find(with_unit({.limiter = 80'000, .gather = 3'000}), "limiter-stall"),
              nullptr);  // no wait
}

TEST(Advice, FindsAUnitThatIsGatheredAgainImmediately) {
    EXPECT_NE(find(with_unit({.again = true}), "wasted-regather"), nullptr);
    EXPECT_EQ(find(with_unit({}), "wasted-regather"), nullptr);
}

TEST(Advice, FindsPrefetchingThatComesTooLate) {
    EXPECT_NE(find(with_unit({.again = true, .backward_prefetch = "BACKWARD_POST"}), "prefetch-mistarget"),
              nullptr);
    EXPECT_EQ(find(with_unit({.again = true}), "prefetch-mistarget"), nullptr);
    EXPECT_EQ(find(with_unit({.backward_prefetch = "BACKWARD_POST"}), "prefetch-mistarget"), nullptr);
}

// Gathers of 8 units and one large one: alpha + beta * bytes.
AdviceReport with_many_units(std::int64_t alpha_ns) {
    RunBuilder run;
    run.step(0, 1, 0, 1'000'000);
    std::int64_t at = 1'000;
    for (int u = 0; u < 9; ++u) {
        add_unit(run, u, 100, 100, 2);
        const std::int64_t bytes = u == 8 ? 4'000 : 1'000, ns = alpha_ns + bytes;  // 1 ns a byte
        const std::int64_t id = run.kernel(0, at, at + ns, at - 500, 20, "ncclDevKernel_AllGather");
        run.sink().add(schema::CollectiveRow{.rank = 0,
                                             .correlation = id,
                                             .operation = schema::Operation::all_gather,
                                             .bytes = bytes,
                                             .group_size = 1,
                                             .sequence = u,
                                             .unit = u,
                                             .phase = schema::Phase::forward});
        at += ns + 100;
    }
    return advice_of(run);
}

TEST(Advice, FindsUnitsThatAreTooSmall) {
    const AdviceReport report = with_many_units(20'000);
    const Finding* finding = find(report, "wrap-too-fine");
    ASSERT_NE(finding, nullptr);
    EXPECT_NEAR(figure(*finding, "alpha"), 20, 1e-6);
    EXPECT_NEAR(figure(*finding, "beta_times_bytes"), (8 * 1.0 + 4.0) / 9, 1e-6);  // 12,000 bytes by 9
    EXPECT_NEAR(figure(*finding, "latency"), 180, 1e-6);
    EXPECT_EQ(find(with_many_units(500), "wrap-too-fine"), nullptr);  // the bytes take longer
}

TEST(Advice, FindsNormsOfShards) {
    const auto with_clip = [](bool sums) {
        RunBuilder run;
        add_good_step(run);
        add_unit(run, 0, 100, 100, 2);
        const std::int64_t id = run.kernel(0, 2'000, 3'000, 100, 20, "ncclDevKernel_ReduceScatter");
        run.sink().add(schema::CollectiveRow{.rank = 0,
                                             .correlation = id,
                                             .operation = schema::Operation::reduce_scatter,
                                             .bytes = 400,
                                             .group_size = 2,
                                             .sequence = 0,
                                             .unit = 0,
                                             .phase = schema::Phase::backward});
        run.range(0, 500, 600, "clip_grad_norm_");
        if (sums) run.kernel(0, 4'000, 4'100, 550, 20, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
        return advice_of(run);
    };
    EXPECT_NE(find(with_clip(false), "clip-mismatch"), nullptr);
    EXPECT_EQ(find(with_clip(true), "clip-mismatch"), nullptr);
}

// --- order, weight and what is not advised -----------------------------------------------------------------

// Rank 2 computes longer; the others wait for it in a collective that itself takes 20 us.
AdviceReport with_slow_rank() {
    RunBuilder run(3);
    for (int r = 0; r < 3; ++r) {
        run.step(r, 1, 0, 600'000);
        const std::int64_t start = r == 2 ? 900'000 : 500'000;
        run.kernel(r, 1'000, start - 100, 10);
        run.runtime(r, 20, 21, "cudaStreamWaitEvent");
        run.collective(r, start, 920'000, {.sequence = 1, .group_size = 3, .launched = 30});
    }
    return advice_of(run);
}

TEST(Advice, CountsWaitingForALateRankUnderTheStraggler) {
    const AdviceReport report = with_slow_rank();
    ASSERT_FALSE(report.findings.empty());
    const Finding& first = report.findings.front();
    EXPECT_EQ(first.id, "straggler");
    EXPECT_EQ(first.weight, FindingWeight::serious);
    // If the kernel took as long as the others', the step would end 400 us earlier, but not before the host.
    EXPECT_NEAR(first.gain_us.value_or(0), 320, 1);
    EXPECT_THAT(first.what, HasSubstr("its compute takes 1.8 times as long"));
    EXPECT_EQ(find(report, "exposed-communication"), nullptr);  // 20 us of 920
}

TEST(Advice, PutsWhatGainsMostFirst) {
    for (const AdviceReport& report :
         {with_slow_rank(), with_exposed(300'000), with_unit({.limiter = 80'000, .again = true})}) {
        ASSERT_FALSE(report.findings.empty());
        for (std::size_t i = 1; i < report.findings.size(); ++i) {
            const Finding &before = report.findings[i - 1], &here = report.findings[i];
            EXPECT_LE(before.weight, here.weight) << here.id;
            if (before.weight == here.weight) {
                EXPECT_GE(before.gain_us.value_or(0), here.gain_us.value_or(0)) << here.id;
            }
        }
    }
}

// The host takes as long as the device: shorter collectives would not end the step earlier.
TEST(Advice, CallsNothingSeriousThatGainsNothing) {
    RunBuilder run;
    run.step(0, 1, 0, 1'000'000);
    run.kernel(0, 1'000, 600'000, 10);
    run.runtime(0, 20, 21, "cudaStreamWaitEvent");
    run.collective(0, 600'000, 1'000'000, {.operation = schema::Operation::reduce_scatter, .launched = 30});
    const AdviceReport report = advice_of(run);
    const Finding* finding = find(report, "exposed-communication");
    ASSERT_NE(finding, nullptr);  // 40 % of the step
    EXPECT_EQ(finding->gain_us.value_or(-1), 0);
    EXPECT_EQ(finding->weight, FindingWeight::minor);
    EXPECT_THAT(finding->expected, HasSubstr("would not be shorter"));
}

// Eight units; before each except the first, the limiter blocks the host for 50 us. If the network is busy,
// each gather starts when the previous one ends, whenever the host issued it; else as soon as it is issued.
AdviceReport with_limited_gathers(bool busy_wire) {
    RunBuilder run;
    run.step(0, 1, 0, 730'000);
    for (int u = 0; u < 8; ++u) {
        add_unit(run, u, 50, 50, 2);
        run.sink().add(schema::ModuleRow{
            .id = u + 1, .parent = -1, .name = "Linear_" + std::to_string(u), .path = "net", .unit = u});
        const std::int64_t issued = 60'000 + u * 90'000;
        const std::int64_t start = busy_wire ? 61'000 + u * 110'000 : issued + 1'000;
        const std::int64_t end = start + (busy_wire ? 110'000 : 60'000);
        if (u > 0) run.range(0, issued - 50'000, issued - 100, "FullyShardedDataParallel.rate_limiter");
        const std::int64_t id = run.kernel(0, start, end, issued, 20, "ncclDevKernel_AllGather_RING_LL");
        run.sink().add(schema::CollectiveRow{.rank = 0,
                                             .correlation = id,
                                             .operation = schema::Operation::all_gather,
                                             .bytes = 200,
                                             .group_size = 1,
                                             .sequence = u,
                                             .unit = u,
                                             .phase = schema::Phase::forward});
        run.range(0, issued + 150, issued + 900, "nn.Module: Linear_" + std::to_string(u), u + 1);
        run.runtime(0, issued + 200, issued + 300);
        run.kernel(0, end, end + 20'000, issued + 400);
    }
    return advice_of(run);
}

TEST(Advice, IgnoresTheLimiterIfTheNetworkIsAlwaysBusy) {
    EXPECT_NE(find(with_limited_gathers(false), "limiter-stall"), nullptr);
    EXPECT_EQ(find(with_limited_gathers(true), "limiter-stall"), nullptr);
}

TEST(Advice, AdvisesNothingThatTheJobAlreadyDoes) {
    const auto setting = [](const char* param) {
        RunBuilder run;
        configure(run, "parallel.mode", "fsdp");
        configure(run, "precision.param", param);
        configure(run, "fsdp.sharding_strategy", "FULL_SHARD");
        run.step(0, 1, 0, 500'000);
        run.kernel(0, 1'000, 600'000, 10);
        run.runtime(0, 20, 21, "cudaStreamWaitEvent");
        run.collective(0, 600'000, 1'000'000, {.operation = schema::Operation::all_gather, .launched = 30});
        const AdviceReport report = advice_of(run);
        const Finding* finding = find(report, "exposed-communication");
        return finding == nullptr ? std::string("no card") : finding->job_setting;
    };
    EXPECT_THAT(setting("fp32"), HasSubstr("precision.param = \"bf16\""));
    EXPECT_THAT(setting("bf16"), Not(HasSubstr("precision.param")));
    EXPECT_THAT(setting("bf16"), Not(HasSubstr("HYBRID_SHARD")));  // on one host it moves no fewer bytes
}

TEST(Advice, ReportsFirstThatARunEndedOutOfMemory) {
    for (const schema::Severity severity : {schema::Severity::warning, schema::Severity::error}) {
        RunBuilder run;
        run.allocate(0, 10, 1, 3000, {.category = schema::MemoryCategory::activations});
        run.step(0, 1, 0, 1'000'000);
        run.range(0, 0, 900'000, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
        run.sink().add(
            schema::DiagnosticRow{.time = 20, .severity = severity, .text = "out of memory: 166 MiB"});
        const AdviceReport report = advice_of(run);
        ASSERT_FALSE(report.findings.empty());
        EXPECT_EQ(report.findings.front().id, "out-of-memory");
        EXPECT_EQ(report.findings.front().weight, FindingWeight::serious);
        EXPECT_THAT(report.findings.front().what, HasSubstr("166 MiB"));
        EXPECT_EQ(find(report, "data-loader"), nullptr);  // device work is unknown
        ASSERT_FALSE(report.notes.empty());
        EXPECT_THAT(report.notes.back(), HasSubstr("is unknown, because the trace has no device work"));
    }
}

TEST(Advice, PutsAFailedAllocationBeforeWhatGainsTime) {
    RunBuilder run;
    run.step(0, 1, 0, 1'000'000);
    for (std::int64_t at = 1'000; at + 100'000 < 1'000'000; at += 300'000)
        run.kernel(0, at, at + 90'000, at - 500);
    run.sink().add(schema::DiagnosticRow{
        .time = 20, .severity = schema::Severity::warning, .text = "out of memory: 1 MiB"});
    const AdviceReport report = advice_of(run);
    ASSERT_GE(report.findings.size(), 2u);
    EXPECT_EQ(report.findings[0].id, "out-of-memory");
    EXPECT_EQ(report.findings[1].id, "host-bound");
    EXPECT_EQ(report.findings[1].weight, FindingWeight::serious);
}

TEST(Advice, ExcludesAWarmUpStep) {
    const auto with_first = [](std::int64_t first) {
        RunBuilder run;
        std::int64_t at = 0;
        for (int step = 0; step < 4; ++step) {  // the first step loads data during its extra time
            const std::int64_t length = step == 0 ? first : 1'000'000;
            run.step(0, step, at, at + length);
            if (length > 1'000'000)
                run.range(0, at, at + length - 1'000'000,
                          "enumerate(DataLoader)#_SingleProcessDataLoaderIter");
            run.kernel(0, at + length - 999'000, at + length, at + length - 999'900);
            at += length;
        }
        return advice_of(run);
    };
    const AdviceReport warm = with_first(4'000'000);
    EXPECT_EQ(find(warm, "data-loader"), nullptr);
    ASSERT_EQ(warm.notes.size(), 1u);
    EXPECT_THAT(warm.notes.front(), HasSubstr("Step 0 is excluded as warm-up"));
    EXPECT_NE(find(with_first(1'400'000), "data-loader"), nullptr);  // 400 us in 4,400
}

TEST(Advice, SaysInTheWholeTraceWhereThereAreNoSteps) {
    RunBuilder run;
    run.kernel(0, 1'000, 600'000, 10);
    run.runtime(0, 20, 21, "cudaStreamWaitEvent");
    run.collective(0, 600'000, 1'000'000, {.operation = schema::Operation::reduce_scatter, .launched = 30});
    const AdviceReport report = advice_of(run);
    const Finding* finding = find(report, "exposed-communication");
    ASSERT_NE(finding, nullptr);
    EXPECT_THAT(finding->what, HasSubstr("of the whole trace"));
    EXPECT_THAT(finding->expected, HasSubstr("the whole trace would take"));
    EXPECT_THAT(finding->what + finding->expected, Not(HasSubstr("step")));
    for (const AdviceFigure& figure : finding->figures)
        EXPECT_THAT(figure.unit, Not(HasSubstr("step"))) << figure.name;
}

TEST(Advice, DoesNotAdviseToCaptureWhatIsCaptured) {
    const auto with_launch = [](const char* call) {
        RunBuilder run;
        run.step(0, 1, 0, 1'000'000);
        for (std::int64_t at = 1'000; at + 100'000 < 1'000'000; at += 150'000)
            run.kernel(0, at, at + 90'000, at - 500);
        run.runtime(0, 5, 6, call);
        const AdviceReport report = advice_of(run);
        const Finding* finding = find(report, "host-bound");
        return finding == nullptr ? std::string("no card") : finding->pytorch;
    };
    EXPECT_THAT(with_launch("cudaEventRecord"), HasSubstr("reduce-overhead"));
    EXPECT_EQ(with_launch("cudaGraphLaunch"), "");
}

// Two hosts of two ranks: the pairs of host 1 take longer for the same bytes.
TEST(Advice, FindsALinkThatIsSlowerThanOthers) {
    const auto with_pairs = [](std::int64_t second) {
        RunBuilder run(4, 2);
        for (int r = 0; r < 4; ++r) {
            const std::int64_t length = r < 2 ? 200'000 : second;
            run.step(r, 1, 0, 300'000);
            run.kernel(r, 1'000, 400'000, 10);
            run.runtime(r, 20, 21, "cudaStreamWaitEvent");
            run.collective(
                r, 400'000, 400'000 + length,
                {.bytes = 64 << 20, .sequence = 1, .group = r / 2, .group_size = 2, .launched = 30});
        }
        return advice_of(run);
    };
    const AdviceReport report = with_pairs(600'000);
    const Finding* finding = find(report, "slow-link");
    ASSERT_NE(finding, nullptr);
    EXPECT_DOUBLE_EQ(figure(*finding, "slower"), 3);
    EXPECT_THAT(finding->what, HasSubstr("node1"));
    EXPECT_NEAR(finding->gain_us.value_or(0), 400, 1);
    EXPECT_EQ(find(with_pairs(250'000), "slow-link"), nullptr);
}

TEST(Advice, ReportsUnusedDevicesOnlyBelowAQuarterOfOccupancy) {
    const auto rule = std::find_if(advice_rules().begin(), advice_rules().end(),
                                   [](const AdviceRule& r) { return r.id == "low-occupancy"; });
    ASSERT_NE(rule, advice_rules().end());
    EXPECT_THAT(std::string(rule->title), Not(HasSubstr("half")));  // it fires below 25 %
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
