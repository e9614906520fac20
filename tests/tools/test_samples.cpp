// The finished traces in the repository: small, complete, and with the content that their description states.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/fixtures/name_of_file.h"
#include "tests/tools/run_command.h"
#include "traces/schema/schema.h"

namespace shardscope::tools {
namespace TEST_FILE {

using nlohmann::json;

class SampleTrace : public ::testing::TestWithParam<const char*> {
  protected:
    std::string file() const { return std::string(SHARDSCOPE_SAMPLES) + "/traces/" + GetParam(); }
    json ask(const std::string& verb) const {
        const Outcome outcome = run_command({SHARDSCOPE_TRACE, verb, file(), "--format", "json"});
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        return json::parse(outcome.out, nullptr, false);
    }
};

TEST_P(SampleTrace, IsSmallAndWhole) {
    EXPECT_LE(std::filesystem::file_size(file()), 1U << 20);
    EXPECT_EQ(ask("check").at("whole"), true);
}

TEST_P(SampleTrace, HasTwoRanksAndFourSteps) {
    const json summary = ask("summary");
    ASSERT_EQ(summary.at("ranks").size(), 2U);
    for (const json& rank : summary.at("ranks")) EXPECT_EQ(rank.at("steps"), 4);
}

// 8 Linear layers of width 64: one unit under the root wrap, one per Linear under the other.
TEST_P(SampleTrace, HasThePeakOfItsWrap) {
    constexpr std::int64_t kWeight = (64 * 64 + 64) * 4;
    constexpr std::int64_t kActivation = 8 * 64 * 4;
    const bool root = std::string(GetParam()).find("root") != std::string::npos;
    // Root: half of 8 weights, three times 8, 4 activations. Per Linear, at the end of the backward of the
    // second unit: half of 8, the gradients' shards of the 6 later ones, 4 units, and 4 + 1 + 1 activations.
    const std::int64_t expected = root ? 4 * kWeight + 24 * kWeight + 4 * kActivation
                                       : 4 * kWeight + 3 * kWeight + 4 * kWeight + 6 * kActivation;
    for (const json& rank : ask("memory").at("ranks")) EXPECT_EQ(rank.at("peak_bytes"), expected);
}

json explained(const std::string& file) {
    const Outcome outcome = run_command({SHARDSCOPE_TRACE, "memory", "--explain", file, "--format", "json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false).at("ranks");
}

std::int64_t bytes_of_units(const json& rank) {
    std::int64_t bytes = 0;
    for (const json& unit : rank.at("units")) bytes += unit.at("bytes").get<std::int64_t>();
    return bytes;
}

// The traces that a newcomer opens first have everything that a trace has today: a prediction for each unit,
// which agrees.
TEST_P(SampleTrace, IsOfTheCurrentSchemaAndExplainsItsPeak) {
    EXPECT_EQ(ask("info").at("schema_version"), traces::schema::kSchemaVersion);
    EXPECT_THAT(ask("info").at("device_note"), testing::HasSubstr("no CUDA or NCCL code ran"));
    for (const json& rank : explained(file())) {
        EXPECT_EQ(rank.at("categories").at(0).at("difference_bytes"), 0);
        for (const json& unit : rank.at("units")) EXPECT_EQ(unit.at("predicted_bytes"), unit.at("bytes"));
        EXPECT_EQ(bytes_of_units(rank), rank.at("peak_bytes"));
    }
}

// A trace written by the first release: every analysis opens it; its prediction has no units.
TEST(TraceOfTheFirstSchema, OpensInEveryVerb) {
    const std::string file = SHARDSCOPE_FIXTURES "/schema-1.sqlite";
    const Outcome info = run_command({SHARDSCOPE_TRACE, "info", file, "--format", "json"});
    EXPECT_EQ(json::parse(info.out, nullptr, false).at("schema_version"), 1);
    for (const char* verb : {"summary", "modules", "memory", "collectives", "check"}) {
        const Outcome outcome = run_command({SHARDSCOPE_TRACE, verb, file});
        EXPECT_EQ(outcome.status, 0) << verb << ": " << outcome.err;
    }
    const Outcome views = run_command({SHARDSCOPE_TRACE, "query", file, "SELECT count(*) FROM predictions"});
    EXPECT_EQ(views.status, 0) << views.err;
    for (const json& rank : explained(file)) {
        EXPECT_EQ(rank.at("categories").at(0).at("difference_bytes"), 0);
        EXPECT_TRUE(rank.at("units").at(0).at("predicted_bytes").is_null());
        EXPECT_EQ(bytes_of_units(rank), rank.at("peak_bytes"));
    }
}

INSTANTIATE_TEST_SUITE_P(Shipped, SampleTrace, ::testing::Values("mlp-root.sqlite", "mlp-linear.sqlite"),
                         name_of_file);

}  // namespace TEST_FILE
}  // namespace shardscope::tools
