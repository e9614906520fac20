// The FSDP talk at laptop scale: 8 Linear layers of W = 1024 * 1024 + 1024 parameters, 8 ranks with batch
// 512, fp32 and plain SGD. A rank's peak bytes are derived by hand; they equal the memory account's
// prediction and the run's peak. A step of 512 rows takes seconds: one configuration is trained with all
// rows, the others with 128, for which the peak is at the same moment.
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

constexpr std::int64_t kW = 4 * (1024 * 1024 + 1024);  // bytes of a layer
constexpr int kRows = 512, kFewRows = 128;
constexpr std::int64_t activation(int rows) {
    return std::int64_t{4} * rows * 1024;
}
// At the root's flat gradient: the shards, then parameters, gradients and the flat gradient, all whole; of
// the activations, input, target, output, and the storage of the loss's scalar.
constexpr std::int64_t root_wrap(int rows) {
    return 8 * kW / 8 + 3 * 8 * kW + 4 * activation(rows);
}
static_assert(root_wrap(kRows) == 113'348'608);
// At the last layer's flat gradient: the shards; its parameters and the previous layer's, prefetched; its
// gradients twice; the same four activations, 7 ReLU outputs, and the gradient for the previous layer.
constexpr std::int64_t layer_wrap(int rows) {
    return 8 * kW / 8 + 4 * kW + (4 + 7 + 1) * activation(rows);
}
static_assert(layer_wrap(kRows) == 46'157'824);
// With CPU offload the same, except for the shards, which are on the host.
constexpr std::int64_t offload(int rows) {
    return layer_wrap(rows) - 8 * kW / 8;
}
static_assert(offload(kRows) == 41'959'424);
// NO_SHARD: parameters and gradients are whole on every rank, and so is the flat gradient.
constexpr std::int64_t no_shard(int rows) {
    return 3 * 8 * kW + 4 * activation(rows);
}
static_assert(no_shard(kRows) == 109'150'208);
constexpr std::int64_t kTolerance = 8 * 1024;

std::int64_t sum(const Json& categories) {
    std::int64_t total = 0;
    for (const auto& [name, bytes] : categories.items()) total += bytes.get<std::int64_t>();
    return total;
}

void expect_peak(const Words& settings, int rows, std::int64_t expected) {
    const TemporaryFolder folder;
    const std::string trace = folder / "talk.sqlite";
    Words job = {sample("talk/talk.toml"), "--run.steps=2", "--data.batch=" + std::to_string(rows)};
    job.insert(job.end(), settings.begin(), settings.end());
    Words dry = job, real = job;
    dry.emplace_back("--dry-run");
    real.insert(real.end(), {"--trace", trace});

    const Json plan = train_json(dry);
    const std::int64_t predicted = plan.at("predicted_peak_bytes").get<std::int64_t>();
    EXPECT_NEAR(static_cast<double>(predicted), static_cast<double>(expected), kTolerance);
    EXPECT_EQ(sum(plan.at("at_peak")), predicted);

    const Json result = train_json(real);
    const Json memory = trace_json({"memory", trace});
    ASSERT_EQ(memory.at("ranks").size(), 8u);
    for (const Json& rank : memory["ranks"]) {
        SCOPED_TRACE(rank.at("rank").dump());
        const std::int64_t peak = rank.at("peak_bytes").get<std::int64_t>();
        EXPECT_NEAR(static_cast<double>(peak), static_cast<double>(expected), kTolerance);
        EXPECT_EQ(sum(rank.at("at_peak")), peak);
        EXPECT_EQ(rank.at("predicted_peak_bytes"), predicted);
        EXPECT_EQ(peak, predicted);
        EXPECT_EQ(rank.at("at_peak"), plan.at("at_peak"));
        EXPECT_EQ(rank.at("predicted_at_peak"), plan.at("at_peak"));
        EXPECT_EQ(result.at("ranks").at(rank.at("rank").get<std::size_t>()).at("peak_bytes"), peak);
    }
}

TEST(Talk, RootWrapPeaksAtThreeCopiesOfEverything) {
    expect_peak({"--fsdp.wrap=root"}, kFewRows, root_wrap(kFewRows));
}

TEST(Talk, LayerWrapPeaksAtFourLayers) {
    expect_peak({"--fsdp.wrap=module:Linear"}, kRows, layer_wrap(kRows));
}

TEST(Talk, OffloadTakesTheShardsAway) {
    expect_peak({"--fsdp.wrap=module:Linear", "--fsdp.cpu_offload=true"}, kFewRows, offload(kFewRows));
}

TEST(Talk, WithoutShardingThereAreThreeCopiesOfEverything) {
    expect_peak({"--fsdp.sharding_strategy=NO_SHARD"}, kFewRows, no_shard(kFewRows));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
