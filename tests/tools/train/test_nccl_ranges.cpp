// The trainer's own ranges of the domain NCCL have the same payloads as NCCL's, so that a reader of NCCL's
// ranges can read ours.
#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"
#include "traces/store/nccl/nccl_collectives.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

// SQL for the payload's field with that name, in hexadecimal, of the range r: its offset is looked up in the
// schema, whose id is in the payload's second integer (16777216 + its first byte).
std::string field(const std::string& name, int bytes) {
    return "(SELECT hex(substr(r.binaryData, 33 + COALESCE(e.offset, 0), " + std::to_string(bytes) +
           ")) FROM NVTX_PAYLOAD_SCHEMA_ENTRIES e WHERE e.domainId = r.domainId AND e.name = '" + name +
           "' AND e.schemaId = 16777216 + instr('0123456789ABCDEF', substr(hex(r.binaryData), 18, 1)) - 1)";
}

// Bytes in hexadecimal, least significant first, as a number.
std::int64_t little_endian(const std::string& hex) {
    std::string swapped;
    for (std::size_t i = hex.size(); i >= 2; i -= 2) swapped += hex.substr(i - 2, 2);
    return static_cast<std::int64_t>(std::stoull("0" + swapped, nullptr, 16));
}

std::int64_t sum_of(const std::vector<std::string>& hex) {
    std::int64_t sum = 0;
    for (const std::string& number : hex) sum += little_endian(number);
    return sum;
}

const char kOf[] =
    " FROM NVTX_EVENTS r JOIN StringIds s ON s.id = r.textId WHERE r.domainId = 1 AND s.value = ";

TEST(NcclRanges, MessageSizesAreNccls) {
    const TracedRun run(Way::per_layer);
    const auto sizes = [&](const std::string& call) {
        return texts(run.trace(), "SELECT " + field("Message size [bytes]", 8) + kOf + "'" + call + "'");
    };
    // Each step gathers each layer twice and reduces it once; the size is the part that one rank contributes
    // or receives.
    const auto gathers = sizes("ncclAllGather"), reductions = sizes("ncclReduceScatter");
    ASSERT_EQ(gathers.size(), static_cast<std::size_t>(2 * kMlpLayers * kSteps * run.ranks()));
    EXPECT_EQ(little_endian(gathers.front()), kLayerBytes / run.ranks());
    EXPECT_EQ(sum_of(gathers), 2 * kMlpBytes * kSteps);  // all ranks' parts together
    EXPECT_EQ(sum_of(reductions), kMlpBytes * kSteps);

    // The average over the ranks, as encoded in the enumeration of reductions.
    const std::string reduction =
        texts(run.trace(), "SELECT " + field("Reduction operation", 4) + kOf + "'ncclReduceScatter' LIMIT 1")
            .at(0);
    EXPECT_THAT(texts(run.trace(),
                      "SELECT e.name FROM NVTX_PAYLOAD_ENUM_ENTRIES e JOIN NVTX_PAYLOAD_SCHEMA_ENTRIES f "
                      "ON f.type = e.schemaId WHERE f.schemaId = 16777223 AND COALESCE(e.value, 0) = " +
                          std::to_string(little_endian(reduction))),
                ElementsAre("Avg"));

    // The communicator is that of the collective.
    EXPECT_EQ(number(run.trace(), "SELECT count(DISTINCT groupId) FROM SHARD_COLLECTIVES"), 1);
    EXPECT_EQ(little_endian(texts(run.trace(), "SELECT " + field("NCCL communicator ID", 8) + kOf +
                                                   "'ncclAllGather' LIMIT 1")
                                .at(0)),
              number(run.trace(), "SELECT groupId FROM SHARD_COLLECTIVES LIMIT 1"));
}

TEST(NcclRanges, AllReducesAndBroadcastsRecordTheWholeMessage) {
    const TracedRun run(Way::ddp);
    const auto bytes = [&](const std::string& call) {
        return sum_of(
            texts(run.trace(), "SELECT " + field("Message size [bytes]", 8) + kOf + "'" + call + "'"));
    };
    EXPECT_EQ(bytes("ncclAllReduce"), kMlpBytes * kSteps * run.ranks());
    EXPECT_EQ(bytes("ncclAllReduce"),
              number(run.trace(), "SELECT sum(bytes) FROM SHARD_COLLECTIVES WHERE operation = 2"));
    EXPECT_EQ(bytes("ncclBroadcast"),
              number(run.trace(), "SELECT sum(bytes) FROM SHARD_COLLECTIVES WHERE operation = 3"));
}

// Tests the join for other programs: from kernels, launches and payloads alone it finds what the trainer
// recorded, for every way to train.
class NcclJoin : public ::testing::TestWithParam<Way> {};

TEST_P(NcclJoin, FindsTheTrainersCollectivesAgain) {
    const TracedRun run(GetParam());
    const TemporaryFolder folder;
    const std::string copy = folder / "copy.sqlite";
    std::filesystem::copy_file(run.trace(), copy);
    const std::string columns = "rank, correlationId, operation, bytes, groupId, groupSize";
    const std::string selected =
        "SELECT " + columns + " FROM SHARD_COLLECTIVES WHERE operation <> 4 ORDER BY 1, 2";
    const auto known = rows(copy, selected);
    const auto order =
        "SELECT correlationId FROM SHARD_COLLECTIVES WHERE operation <> 4 ORDER BY rank, groupId, "
        "sequence";
    const auto known_order = rows(copy, order);
    {
        traces::store::Database database(copy, traces::store::Database::Mode::read_write);
        database.execute(
            "INSERT INTO SHARD_NCCL_COMMUNICATORS (communicator, globalPid, rank, ranks) "
            "SELECT DISTINCT groupId, 0, 0, groupSize FROM SHARD_COLLECTIVES;"
            "DELETE FROM SHARD_COLLECTIVES");
        traces::store::join_nccl_collectives(database);
    }
    EXPECT_EQ(rows(copy, selected), known);
    EXPECT_EQ(rows(copy, order), known_order);
    // A barrier has no payload; the result says whether there are any.
    const bool barriers =
        number(run.trace(), "SELECT count(*) FROM SHARD_COLLECTIVES WHERE operation = 4") != 0;
    EXPECT_EQ(number(copy, "SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE '%have no payload%'"),
              barriers);
}

INSTANTIATE_TEST_SUITE_P(Ways, NcclJoin, ::testing::Values(Way::root, Way::per_layer, Way::ddp, Way::gpt),
                         [](const auto& way) { return to_string(way.param); });

}  // namespace TEST_FILE
}  // namespace shardscope::tools
