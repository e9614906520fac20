// Comparison by parts: joined by name, per step, with the spread over the steps.
#include "traces/analysis/compare/compare_parts.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

const ComparedPart& part(const PartsComparison& comparison, std::string_view name) {
    const auto at = std::find_if(comparison.parts.begin(), comparison.parts.end(),
                                 [name](const ComparedPart& p) { return p.name == name; });
    if (at == comparison.parts.end()) throw std::runtime_error("no part " + std::string(name));
    return *at;
}

// One rank; each step runs one "gemm" of the given length in module Linear_0 and a gather of 5 µs.
std::unique_ptr<store::Trace> run_of(const std::vector<std::int64_t>& gemm_us, std::string_view more = "") {
    RunBuilder run;
    run.sink().add(schema::UnitRow{
        .id = 0, .module = -1, .name = "net.0", .elements = 8, .padded_elements = 8, .bytes = 32});
    std::int64_t at = 0, number = 0;
    for (const std::int64_t us : gemm_us) {
        run.step(0, number, at, at + 1'000'000);
        run.range(0, at, at + 900'000, "nn.Module: Net_0");
        run.range(0, at + 10, at + 800'000, "nn.Module: Linear_0");
        run.kernel(0, at + 1'000, at + 1'000 + us * 1'000, at + 20, 7, "gemm");
        run.collective(0, at + 1'000, at + 6'000,
                       {.bytes = 32, .sequence = number, .unit = 0, .launched = at + 30});
        if (!more.empty()) run.kernel(0, at + 900'000, at + 902'000, at + 850'000, 7, more);
        at += 1'000'000;
        ++number;
    }
    return run.take();
}

TEST(CompareParts, KernelsArePerStepWithTheirSpread) {
    const auto a = run_of({100, 110, 120}), b = run_of({150, 150, 150}, "extra");
    const PartsComparison c = compare_parts({a.get(), b.get()}, CompareBy::kernel);
    const ComparedPart& gemm = part(c, "gemm");
    EXPECT_DOUBLE_EQ(gemm.runs[0].us, 110);
    EXPECT_DOUBLE_EQ(gemm.runs[0].times, 1);
    EXPECT_DOUBLE_EQ(gemm.runs[0].spread.median, 110);
    EXPECT_DOUBLE_EQ(gemm.runs[0].spread.spread, 5);  // quartiles 105 and 115
    EXPECT_DOUBLE_EQ(gemm.runs[1].us, 150);
    EXPECT_DOUBLE_EQ(gemm.largest_difference(), 40);
    const ComparedPart& extra = part(c, "extra");
    EXPECT_FALSE(extra.runs[0].present);
    EXPECT_DOUBLE_EQ(extra.runs[1].us, 2);
    EXPECT_EQ(c.parts[0].name, "gemm");  // 40 us differ, then 2, then the gather's 0
    EXPECT_EQ(c.parts[1].name, "extra");
    EXPECT_EQ(c.whole.runs.size(), 2u);
}

TEST(CompareParts, CollectivesAreByOperationAndUnit) {
    const auto a = run_of({100, 100});
    const ComparedPart gather =
        part(compare_parts({a.get(), a.get()}, CompareBy::collective), "all_gather, net.0");
    EXPECT_DOUBLE_EQ(gather.runs[1].us, 5);
    EXPECT_DOUBLE_EQ(gather.runs[1].bytes, 32);
    EXPECT_DOUBLE_EQ(gather.largest_difference(), 0);
}

TEST(CompareParts, UnitsAreByPhase) {
    const auto a = run_of({100, 100});
    const PartsComparison c = compare_parts({a.get(), a.get()}, CompareBy::unit);
    ASSERT_FALSE(c.parts.empty());
    EXPECT_EQ(c.parts[0].name.rfind("net.0, ", 0), 0u);
    EXPECT_DOUBLE_EQ(c.parts[0].runs[0].us, 5);
}

TEST(CompareParts, ModulesAreJoinedByPath) {
    const auto a = run_of({100, 100}), b = run_of({130, 130}, "extra");
    const PartsComparison c = compare_parts({a.get(), b.get()}, CompareBy::module);
    const ComparedPart& linear = part(c, "Net_0/Linear_0");
    EXPECT_DOUBLE_EQ(linear.runs[0].us, 100 + 5);  // the gather was launched in the module, too
    EXPECT_DOUBLE_EQ(linear.runs[1].us, 130 + 5);
    EXPECT_DOUBLE_EQ(linear.runs[1].spread.spread, 0);
    const ComparedPart& net = part(c, "Net_0");  // work that no inner module launched
    EXPECT_DOUBLE_EQ(net.runs[0].us, 0);
    EXPECT_DOUBLE_EQ(net.runs[1].us, 2);
}

TEST(CompareParts, ModulesOfOtherWrapPoliciesHaveTheSamePaths) {
    const auto wrapped = [](bool layers) {
        RunBuilder run;
        run.step(0, 0, 0, 1'000'000);
        run.range(0, 0, 900'000, "nn.Module: FullyShardedDataParallel_0");
        run.range(0, 10, 800'000, "nn.Module: Net_0");
        if (layers) run.range(0, 20, 700'000, "nn.Module: FullyShardedDataParallel_1");
        run.kernel(0, 100, 2'100, 30, 20, "gather");  // launched by the wrapper, if there is one
        run.range(0, 40, 600'000, "nn.Module: Linear_0");
        run.kernel(0, 3'000, 8'000, 50, 7, "gemm");
        return run.take();
    };
    const auto root = wrapped(false), each = wrapped(true);
    const PartsComparison c = compare_parts({root.get(), each.get()}, CompareBy::module);
    EXPECT_DOUBLE_EQ(part(c, "Net_0/Linear_0").runs[0].us, 5);
    EXPECT_DOUBLE_EQ(part(c, "Net_0/Linear_0").runs[1].us, 5);
    EXPECT_DOUBLE_EQ(part(c, "Net_0").runs[0].us, 2);
    EXPECT_FALSE(part(c, "Net_0/Linear_0 [FSDP]").runs[0].present);
    EXPECT_DOUBLE_EQ(part(c, "Net_0/Linear_0 [FSDP]").runs[1].us, 2);
}

// The same blocks, each with a Linear of 5 us, under ranges with the given names from the root down.
std::unique_ptr<store::Trace> run_of_blocks(const std::vector<std::string>& root,
                                            const std::vector<std::vector<std::string>>& blocks) {
    RunBuilder run;
    run.step(0, 0, 0, 1'000'000);
    std::int64_t at = 0;
    for (const std::string& name : root) {
        run.range(0, at, 900'000 - at, "nn.Module: " + name);
        ++at;
    }
    int linear = 0;
    for (const std::vector<std::string>& block : blocks) {
        at += 20'000;
        std::int64_t inside = at;
        for (const std::string& name : block) {
            run.range(0, inside, 2 * at + 15'000 - inside, "nn.Module: " + name);
            ++inside;
        }
        run.range(0, at + 100, at + 10'000, "nn.Module: Linear_" + std::to_string(linear++));
        run.kernel(0, at + 1'000, at + 6'000, at + 200, 7, "gemm");
    }
    return run.take();
}

// A model of two blocks: both runs have all of its modules, and their Linears take equally long.
void expect_joined(const store::Trace& a, const store::Trace& b) {
    const PartsComparison c = compare_parts({&a, &b}, CompareBy::module);
    for (const char* name :
         {"GPT_0", "GPT_0/Block_0", "GPT_0/Block_0/Linear_0", "GPT_0/Block_1", "GPT_0/Block_1/Linear_1"}) {
        const ComparedPart& module = part(c, name);
        EXPECT_TRUE(module.runs[0].present) << name;
        EXPECT_TRUE(module.runs[1].present) << name;
        EXPECT_DOUBLE_EQ(module.largest_difference(), 0) << name;
    }
    EXPECT_DOUBLE_EQ(part(c, "GPT_0/Block_1/Linear_1").runs[1].us, 5);
}

TEST(CompareParts, ModulesThatFsdp2RenamedAreJoinedWithTheirOwnClasses) {
    const auto root = run_of_blocks({"FSDPGPT_0"}, {{"Block_0"}, {"Block_1"}});
    const auto each = run_of_blocks({"FSDPGPT_0"}, {{"FSDPBlock_0"}, {"FSDPBlock_1"}});
    const auto plain = run_of_blocks({"GPT_0"}, {{"Block_0"}, {"Block_1"}});
    expect_joined(*root, *each);
    expect_joined(*plain, *each);
    const PartsComparison c = compare_parts({root.get(), each.get()}, CompareBy::module);
    EXPECT_EQ(c.parts.size(), 5u) << "no module is gone or new";
}

// Both kinds are numbered from 0.
TEST(CompareParts, ModulesThatFsdp2RenamedJoinThoseOfTheirClass) {
    const auto first = run_of_blocks({"FSDPGPT_0"}, {{"FSDPBlock_0"}, {"Block_0"}});
    const auto each = run_of_blocks({"FSDPGPT_0"}, {{"FSDPBlock_0"}, {"FSDPBlock_1"}});
    expect_joined(*first, *each);
}

TEST(CompareParts, ModulesUnderDdpAreJoinedWithThoseUnderFsdp) {
    const auto ddp = run_of_blocks({"DistributedDataParallel_0", "GPT_0"}, {{"Block_0"}, {"Block_1"}});
    const auto fsdp1 =
        run_of_blocks({"FullyShardedDataParallel_0", "GPT_0"},
                      {{"FullyShardedDataParallel_1", "Block_0"}, {"FullyShardedDataParallel_2", "Block_1"}});
    const auto fsdp2 = run_of_blocks({"FSDPGPT_0"}, {{"FSDPBlock_0"}, {"FSDPBlock_1"}});
    expect_joined(*ddp, *fsdp1);
    expect_joined(*fsdp1, *fsdp2);
    EXPECT_TRUE(
        part(compare_parts({ddp.get(), fsdp1.get()}, CompareBy::module), "GPT_0 [DDP]").runs[0].present);
}

TEST(CompareParts, ModulesUnderAWrapperForCheckpointingAreJoined) {
    const auto kept = run_of_blocks({"GPT_0"}, {{"Block_0"}, {"Block_1"}});
    const auto again =
        run_of_blocks({"GPT_0"}, {{"FullyShardedDataParallel_0", "CheckpointWrapper_0", "Block_0"},
                                  {"CheckpointWrapper_1", "Block_1"}});
    expect_joined(*kept, *again);
}

TEST(CompareParts, OperatorsHaveTheDeviceTimeThatTheyLaunchThemselves) {
    const auto run_with = [](std::int64_t gemm_ns) {
        RunBuilder run;
        for (std::int64_t step = 0; step < 2; ++step) {
            const std::int64_t at = step * 1'000'000;
            run.step(0, step, at, at + 1'000'000);
            run.range(0, at + 10, at + 900'000, "aten::linear");
            run.range(0, at + 20, at + 800'000, "aten::addmm");
            run.kernel(0, at + 1'000, at + 1'000 + gemm_ns, at + 30, 7, "gemm");
        }
        return run.take();
    };
    const auto a = run_with(40'000), b = run_with(50'000);
    const PartsComparison c = compare_parts({a.get(), b.get()}, CompareBy::operation);
    EXPECT_DOUBLE_EQ(part(c, "aten::addmm").runs[0].us, 40);
    EXPECT_DOUBLE_EQ(part(c, "aten::addmm").runs[1].us, 50);
    EXPECT_DOUBLE_EQ(part(c, "aten::addmm").runs[1].times, 1);
    EXPECT_DOUBLE_EQ(part(c, "aten::linear").runs[0].us, 0) << "what addmm launched is addmm's";
}

TEST(CompareParts, EachRunHasItsOwnSelection) {
    const auto a = run_of({100, 110, 120}), b = run_of({100, 110, 120});
    Selection first, last;
    first.first_step = first.last_step = 0;
    last.first_step = last.last_step = 2;
    const PartsComparison c =
        compare_parts({a.get(), b.get()}, CompareBy::kernel, std::vector<Selection>{first, last});
    EXPECT_DOUBLE_EQ(part(c, "gemm").runs[0].us, 100);
    EXPECT_DOUBLE_EQ(part(c, "gemm").runs[1].us, 120);
    EXPECT_EQ(c.whole.runs[0].steps, 1);
    EXPECT_DOUBLE_EQ(c.whole.runs[0].mean_steps, 1);
}

TEST(CompareParts, HostTimesAreNotComparedWithDeviceTimes) {
    RunBuilder hosts;
    hosts.step(0, 0, 0, 1'000'000);
    hosts.range(0, 10, 900'000, "nn.Module: Net_0");
    const auto host = hosts.take(), device = run_of({100, 110, 120});
    const PartsComparison alone = compare_parts({host.get(), host.get()}, CompareBy::module);
    EXPECT_TRUE(alone.on_host);
    EXPECT_DOUBLE_EQ(part(alone, "Net_0").runs[0].us, 899.99);
    const PartsComparison beside = compare_parts({device.get(), host.get()}, CompareBy::module);
    EXPECT_FALSE(beside.on_host);
    EXPECT_TRUE(std::isnan(part(beside, "Net_0").runs[1].us));
    EXPECT_DOUBLE_EQ(part(beside, "Net_0").runs[1].times, 1);
}

TEST(CompareParts, BytesThatAreNotRecordedAreUnknown) {
    RunBuilder run;
    run.kernel(0, 0, 7'000, std::nullopt, 7, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    const auto a = run.take();
    const PartsComparison c = compare_parts({a.get(), a.get()}, CompareBy::collective);
    ASSERT_EQ(c.parts.size(), 1u);
    EXPECT_DOUBLE_EQ(c.parts[0].runs[0].us, 7);
    EXPECT_TRUE(std::isnan(c.parts[0].runs[0].bytes));
}

TEST(CompareParts, ComparesTheWholeTraceIfItHasNoSteps) {
    RunBuilder run;
    run.kernel(0, 0, 7'000, std::nullopt, 7, "gemm");
    const auto a = run.take();
    EXPECT_DOUBLE_EQ(part(compare_parts({a.get(), a.get()}, CompareBy::kernel), "gemm").runs[0].us, 7);
}

TEST(CompareParts, KnowsItsNames) {
    EXPECT_EQ(compare_by("unit"), CompareBy::unit);
    EXPECT_EQ(compare_by("operator"), CompareBy::operation);
    EXPECT_FALSE(compare_by("").has_value());
    EXPECT_FALSE(compare_by("rank").has_value());
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
