// Files of earlier schema versions load and stay unchanged, and every documented table and view answers on
// them (empty if the file lacks it).
#include <filesystem>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "tests/traces/sample_run.h"
#include "tests/traces/temporary_folder.h"
#include "traces/schema/schema.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/query.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

class OldSchema : public ::testing::TestWithParam<int> {
  protected:
    OldSchema() : path_(folder_ / "run.sqlite") {
        {
            DatabaseWriter writer({.path = path_});
            write_sample_run(writer);
            writer.finish(3 * kSampleMs, 0);
        }
        // Removes everything that later versions have added.
        Database database(path_, Database::Mode::read_write);
        if (GetParam() < 5) {
            database.execute(
                "ALTER TABLE SHARD_RANKS DROP COLUMN localRank;"
                "ALTER TABLE SHARD_RANKS DROP COLUMN cpus;");
        }
        if (GetParam() < 7) database.execute("ALTER TABLE SHARD_RANKS DROP COLUMN context");
        for (const schema::SchemaView& view : schema::views()) {
            if (view.since > GetParam()) database.execute(fmt::format("DROP VIEW \"{}\"", view.name));
        }
        for (const auto tables : {schema::nsight_tables(), schema::nsight_enums(), schema::shard_tables(),
                                  schema::shard_enums()}) {
            for (const schema::SchemaTable& table : tables) {
                if (table.since > GetParam()) database.execute(fmt::format("DROP TABLE \"{}\"", table.name));
            }
        }
        database.execute(fmt::format("PRAGMA user_version = {}", GetParam()));
    }

    TemporaryFolder folder_;
    const std::string path_;
};

TEST_P(OldSchema, Loads) {
    const std::string before = bytes_of(path_);
    const auto trace = load_trace(path_);
    EXPECT_EQ(trace->schema_version, GetParam());
    EXPECT_TRUE(trace->ended);
    EXPECT_EQ(trace->device.size(), 16u);
    EXPECT_EQ(trace->ranges.size(), 16u);
    EXPECT_EQ(trace->collectives.size(), 4u);
    EXPECT_EQ(trace->ranks.size(), 2u);
    EXPECT_EQ(trace->ranks[0].local_rank, -1);  // unknown
    EXPECT_TRUE(bytes_of(path_) == before);
}

TEST_P(OldSchema, EveryDocumentedTableAndViewAnswers) {
    for (const schema::SchemaView& view : schema::views()) {
        EXPECT_NO_THROW(run_query(path_, fmt::format("SELECT * FROM \"{}\" LIMIT 1", view.name)))
            << view.name;
    }
    for (const auto tables :
         {schema::nsight_tables(), schema::nsight_enums(), schema::shard_tables(), schema::shard_enums()}) {
        for (const schema::SchemaTable& table : tables) {
            EXPECT_NO_THROW(run_query(path_, fmt::format("SELECT * FROM \"{}\" LIMIT 1", table.name)))
                << table.name;
            EXPECT_EQ(Database(path_, Database::Mode::read_only).has_table(table.name),
                      table.since <= GetParam());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Versions, OldSchema, ::testing::Range(1, schema::kSchemaVersion + 1),
                         ::testing::PrintToStringParamName());

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
