// The FSDP talk at laptop scale: 8 Linear layers of W = 1024 * 1024 + 1024 parameters, 8 ranks of batch 512,
// fp32 and plain SGD. Peak bytes of a rank, derived by hand; the memory account foretells them, and the run
// has them. A step of each configuration takes seconds: of this size the talk says which is larger, and by
// how much.
#include <numeric>

#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

constexpr std::int64_t kW = 4 * (1024 * 1024 + 1024);  // bytes of a layer
constexpr std::int64_t kA = 4 * 512 * 1024;            // bytes of a rank's activation
// At the root's flat gradient: the shards, then parameters, their gradients and the flat gradient, all whole;
// of activations input, target, output, and the storage behind the loss's scalar.
constexpr std::int64_t kRoot = 8 * kW / 8 + 3 * 8 * kW + 4 * kA;
static_assert(kRoot == 113'348'608);
// At the last layer's: the shards; its parameters and those of the layer before, prefetched; its gradients
// twice; the same four, 7 ReLU outputs, and the gradient on its way to the layer before.
constexpr std::int64_t kPerLayer = 8 * kW / 8 + 4 * kW + (4 + 7 + 1) * kA;
static_assert(kPerLayer == 46'157'824);
// With CPU offload the same without the shards: they live on the host.
constexpr std::int64_t kOffload = 4 * kW + (4 + 7 + 1) * kA;
static_assert(kOffload == 41'959'424);
// NO_SHARD: parameters and gradients whole on every rank, and the flat gradient.
constexpr std::int64_t kNoShard = 3 * 8 * kW + 4 * kA;
static_assert(kNoShard == 109'150'208);
constexpr std::int64_t kTolerance = 8 * 1024;

std::int64_t sum(const Json& categories) {
    std::int64_t total = 0;
    for (const auto& [name, bytes] : categories.items()) total += bytes.get<std::int64_t>();
    return total;
}

void expect_peak(const Words& settings, std::int64_t expected) {
    const TemporaryFolder folder;
    const std::string trace = folder / "talk.sqlite";
    Words job = {sample("talk/talk.toml"), "--run.steps=2"};
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

TEST(Talk, RootWrapPeaksAtEverythingThrice) {
    expect_peak({"--fsdp.wrap=root"}, kRoot);
}

TEST(Talk, LayerWrapPeaksAtFourLayers) {
    expect_peak({"--fsdp.wrap=module:Linear"}, kPerLayer);
}

TEST(Talk, OffloadTakesTheShardsAway) {
    expect_peak({"--fsdp.wrap=module:Linear", "--fsdp.cpu_offload=true"}, kOffload);
}

TEST(Talk, WithoutShardingEverythingIsThereThrice) {
    expect_peak({"--fsdp.sharding_strategy=NO_SHARD"}, kNoShard);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
