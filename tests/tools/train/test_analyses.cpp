// The analyses of shardscope-trace on runs with known sizes: the Execution Summary's sums, the module tree
// and its device time, the collectives' closed forms.
#include <map>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::IsSubsetOf;

class EveryWay : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Analyses, EveryWay, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return to_string(way.param); });

void expect_sums(const Json& rank) {
    SCOPED_TRACE("rank " + rank.at("rank").dump());
    ASSERT_EQ(rank.at("steps"), kSteps);
    double average = 0;
    for (const auto& [name, category] : rank.at("categories").items()) {
        EXPECT_GE(category.at("us").get<double>(), 0) << name;
        average += category.at("us").get<double>();
    }
    EXPECT_NEAR(average, rank.at("average_step_us").get<double>(), 1.0);
    EXPECT_GT(rank.at("categories").at("Kernel").at("us").get<double>(), 0);

    std::int64_t all_steps = 0, end_before = 0;
    for (const Json& step : rank.at("per_step")) {
        std::int64_t sum = 0;
        for (const auto& [name, ns] : step.at("categories_ns").items()) sum += ns.get<std::int64_t>();
        const std::int64_t start = step.at("start_ns").get<std::int64_t>();
        const std::int64_t end = step.at("end_ns").get<std::int64_t>();
        EXPECT_EQ(sum, end - start) << "step " << step.at("step");
        EXPECT_GE(start, end_before) << "windows do not overlap";
        all_steps += sum;
        end_before = end;
    }
    EXPECT_NEAR(static_cast<double>(all_steps) * 1e-3 / kSteps, rank.at("average_step_us").get<double>(),
                1e-3);
}

TEST_P(EveryWay, CategoriesSumToTheStep) {
    const TracedRun run(GetParam());
    const Json summary = trace_json({"summary", run.trace()});
    ASSERT_EQ(summary.at("ranks").size(), static_cast<std::size_t>(run.ranks()));
    for (const Json& rank : summary["ranks"]) expect_sums(rank);
}

// --- modules -----------------------------------------------------------------------------------------------

// "A(B C(D))": names and nesting.
std::string shape(const Json& module) {
    std::string text = module.at("name").get<std::string>(), children;
    for (const Json& child : module.at("children")) children += (children.empty() ? "" : " ") + shape(child);
    return children.empty() ? text : text + "(" + children + ")";
}

std::string mlp_shape(bool wrapped) {
    std::string layers;
    for (int i = 0; i < kMlpLayers; ++i) {
        const std::string linear = "Linear_" + std::to_string(i);
        if (i > 0) layers += " ReLU_" + std::to_string(i - 1) + " ";
        layers += wrapped ? "FullyShardedDataParallel_" + std::to_string(i + 1) + "(" + linear + ")" : linear;
    }
    return "MLP_0(Sequential_0(" + layers + "))";
}

std::string gpt_shape() {
    std::string blocks;
    for (int i = 0; i < kBlocks; ++i) {
        const auto nth = [](const char* name, int n) { return name + std::to_string(n); };
        blocks += nth("FullyShardedDataParallel_", i + 1) + "(" + nth("Block_", i) + "(" +
                  nth("LayerNorm_", 2 * i) + " " + nth("CausalSelfAttention_", i) + "(" +
                  nth("Linear_", 4 * i) + " " + nth("Linear_", 4 * i + 1) + ") " +
                  nth("LayerNorm_", 2 * i + 1) + " " + nth("FeedForward_", i) + "(" +
                  nth("Linear_", 4 * i + 2) + " " + nth("GELU_", i) + " " + nth("Linear_", 4 * i + 3) +
                  "))) ";
    }
    return "FullyShardedDataParallel_0(GPT_0(Embedding_0 Embedding_1 " + blocks + "LayerNorm_4 Linear_8))";
}

std::string expected_shape(Way way) {
    switch (way) {
        case Way::root:
            return "FullyShardedDataParallel_0(" + mlp_shape(false) + ")";
        case Way::per_layer:
            return "FullyShardedDataParallel_0(" + mlp_shape(true) + ")";
        case Way::ddp:
            return "DistributedDataParallel_0(" + mlp_shape(false) + ")";
        case Way::none:
            return mlp_shape(false);
        case Way::gpt:
            return gpt_shape();
    }
    return "";
}

void expect_sound(const Json& module) {
    SCOPED_TRACE(module.at("name").get<std::string>());
    EXPECT_EQ(module.at("occurrences"), kSteps);
    double host = 0, device = 0;
    for (const Json& child : module.at("children")) {
        expect_sound(child);
        host += child.at("host_us").get<double>();
        device += child.at("device_us").get<double>();
    }
    for (const auto& [key, value] : module.items()) {
        if (value.is_number()) {
            EXPECT_GE(value.get<double>(), 0) << key;
        }
    }
    EXPECT_NEAR(module.at("host_us").get<double>(), host + module.at("host_self_us").get<double>(), 1e-2);
    EXPECT_NEAR(module.at("device_us").get<double>(), device + module.at("device_self_us").get<double>(),
                1e-2);
    EXPECT_LE(module.at("device_busy_us").get<double>(), module.at("device_us").get<double>() + 1e-2);
}

// All device work with the call that launched it; `inside` says whether a module's range contains the call.
const std::string kLaunched =
    "WITH work AS ("
    "  SELECT correlationId, \"end\" - start AS ns, shortName AS name FROM CUPTI_ACTIVITY_KIND_KERNEL"
    "  UNION ALL SELECT correlationId, \"end\" - start, NULL FROM CUPTI_ACTIVITY_KIND_MEMCPY"
    "  UNION ALL SELECT correlationId, \"end\" - start, NULL FROM CUPTI_ACTIVITY_KIND_MEMSET),"
    "launched AS ("
    "  SELECT t.rank, w.ns, s.value AS name, EXISTS ("
    "      SELECT 1 FROM NVTX_EVENTS n WHERE n.globalTid = c.globalTid AND n.int64Value IS NOT NULL"
    "      AND n.start <= c.start AND c.\"end\" <= n.\"end\") AS inside"
    "  FROM work w JOIN CUPTI_ACTIVITY_KIND_RUNTIME c ON c.correlationId = w.correlationId"
    "  JOIN SHARD_THREADS t ON t.globalTid = c.globalTid LEFT JOIN StringIds s ON s.id = w.name) ";

TEST_P(EveryWay, ModulesAreTheTreeWithAllItsDeviceTime) {
    const TracedRun run(GetParam());
    const Json modules = trace_json({"modules", run.trace()});
    ASSERT_EQ(modules.at("ranks").size(), static_cast<std::size_t>(run.ranks()));
    std::map<int, std::int64_t> inside_ns;
    for (const auto& row : rows(run.trace(), kLaunched + "SELECT rank, sum(ns) FROM launched WHERE inside "
                                                         "GROUP BY rank"))
        inside_ns[static_cast<int>(std::get<std::int64_t>(row[0]))] = std::get<std::int64_t>(row[1]);
    for (const Json& rank : modules["ranks"]) {
        SCOPED_TRACE("rank " + rank.at("rank").dump());
        ASSERT_EQ(rank.at("modules").size(), 1u);
        const Json& root = rank["modules"][0];
        EXPECT_EQ(shape(root), expected_shape(GetParam()));
        expect_sound(root);
        EXPECT_NEAR(root.at("device_us").get<double>(),
                    static_cast<double>(inside_ns[rank["rank"].get<int>()]) * 1e-3, 1e-2);
    }
    // Outside modules: set-up, the loss, the end of DDP's backward, the optimizer. Everything else, each
    // sgemm and gather, belongs to a module.
    EXPECT_THAT(texts(run.trace(), kLaunched + "SELECT DISTINCT name FROM launched WHERE NOT inside AND name "
                                               "IS NOT NULL"),
                IsSubsetOf({"initialize", "flatten", "unflatten", "ncclDevKernel_Broadcast_local",
                            "ncclDevKernel_Barrier_local", "mse_loss_forward", "mse_loss_backward",
                            "cross_entropy_forward", "cross_entropy_backward", "copy_from_bucket", "sgd_step",
                            "adamw_step"}));
}

// --- collectives -------------------------------------------------------------------------------------------

using Traffic = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;  // operation -> count, bytes

Traffic expected_traffic(Way way, int step = kSteps) {
    switch (way) {
        // Gathered for the forward and kept until the backward has begun.
        case Way::root:
            return {{"all_gather", {1, kMlpBytes}}, {"reduce_scatter", {1, kMlpBytes}}};
        // U = 8 units, the root owns nothing: 2U gathers, U reductions.
        case Way::per_layer:
            return {{"all_gather", {2 * kMlpLayers, 2 * kMlpBytes}},
                    {"reduce_scatter", {kMlpLayers, kMlpBytes}}};
        // Buckets of 1, 2, 2, 2 and 1 layers, as arguments_for() sets them; a single bucket in the first
        // step, and before the second the broadcasts of the buckets: 4 bytes for each parameter, for their
        // number and for each bucket's size.
        case Way::ddp:
            if (step == 0) return {{"all_reduce", {1, kMlpBytes}}};
            if (step == 1)
                return {{"all_reduce", {5, kMlpBytes}}, {"broadcast", {2, 4 * (2 * kMlpLayers + 1 + 5)}}};
            return {{"all_reduce", {5, kMlpBytes}}};
        case Way::none:
            return {};
        // U = 3 units, of which the root's is gathered once: 2U - 1 gathers, U reductions.
        case Way::gpt:
            return {{"all_gather", {2 * (kBlocks + 1) - 1, kRootBytes + 2 * kBlocks * kBlockBytes}},
                    {"reduce_scatter", {kBlocks + 1, kRootBytes + kBlocks * kBlockBytes}}};
    }
    return {};
}

Traffic traffic(const Json& rank) {
    Traffic all;
    for (const Json& operation : rank.at("operations"))
        all[operation.at("name")] = {operation.at("count").get<std::int64_t>(),
                                     operation.at("bytes").get<std::int64_t>()};
    return all;
}

TEST_P(EveryWay, CollectivesOfAStepFollowTheClosedForms) {
    const TracedRun run(GetParam());
    for (int step = 0; step < kSteps; ++step) {
        const Traffic expected = expected_traffic(GetParam(), step);
        const std::string only = std::to_string(step) + ":" + std::to_string(step);
        const Json collectives = trace_json({"collectives", run.trace(), "--step", only});
        ASSERT_EQ(collectives.at("ranks").size(), static_cast<std::size_t>(run.ranks()));
        for (const Json& rank : collectives["ranks"]) {
            EXPECT_EQ(traffic(rank), expected) << "step " << step << ", rank " << rank.at("rank");
            EXPECT_EQ(rank.at("unmatched"), 0);
        }
    }
}

TEST(Analyses, DryRunCountsTheCollectivesOfAStep) {
    for (const Way way : kWays) {
        SCOPED_TRACE(to_string(way));
        const TemporaryFolder folder;
        Words arguments = arguments_for(way, folder);
        arguments.emplace_back("--dry-run");
        Traffic planned;
        const Json plan = train_json(arguments);
        for (const auto& [name, operation] : plan.at("steady_step").at("collectives").items())
            planned[name] = {operation.at("count").get<std::int64_t>(),
                             operation.at("bytes").get<std::int64_t>()};
        EXPECT_EQ(planned, expected_traffic(way));
    }
}

TEST_P(EveryWay, MemoryIsAsPredicted) {
    const TracedRun run(GetParam());
    const Json memory = trace_json({"memory", run.trace()});
    ASSERT_EQ(memory.at("ranks").size(), static_cast<std::size_t>(run.ranks()));
    for (const Json& rank : memory["ranks"]) {
        std::int64_t sum = 0;
        for (const auto& [name, bytes] : rank.at("at_peak").items()) sum += bytes.get<std::int64_t>();
        EXPECT_EQ(sum, rank.at("peak_bytes").get<std::int64_t>());
        EXPECT_EQ(rank.at("peak_bytes"), rank.at("predicted_peak_bytes"));
        EXPECT_EQ(rank.at("at_peak"), rank.at("predicted_at_peak"));
    }
}

TEST(Analyses, CompareSetsWrapsSideBySide) {
    const TracedRun root(Way::root), layers(Way::per_layer);
    const Json compared = trace_json({"compare", root.trace(), layers.trace()});
    const Json &first = compared.at("runs").at(0), &second = compared.at("runs").at(1);
    EXPECT_EQ(first.at("config").at("fsdp.wrap"), "root");
    EXPECT_EQ(second.at("config").at("fsdp.wrap"), "module:Linear");
    EXPECT_GT(first.at("peak_bytes"), second.at("peak_bytes"));
    for (const Json* run : {&first, &second}) {
        EXPECT_GT(run->at("average_step_us").get<double>(), 0);
        EXPECT_GT(run->at("communication_us").get<double>(), 0);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
