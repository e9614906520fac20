// A file of the current schema version that lacks a column of it (SHARD_RANKS.context, which was added within
// version 7) is loaded, exported, merged and sliced: the column has its value for "absent".
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/part_files.h"
#include "tests/traces/temporary_folder.h"
#include "traces/export/chrome_trace.h"
#include "traces/import/open.h"
#include "traces/merge/merge.h"
#include "traces/merge/slice.h"
#include "traces/schema/schema.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {
namespace TEST_FILE {

class MissingColumn : public ::testing::Test {
  protected:
    std::string part(const char* name, int rank) {
        PartSpec spec;
        spec.path = folder_ / name;
        spec.ranks = {rank};
        spec.pid = 500 + rank;
        write_part(spec);
        store::Database(spec.path, store::Database::Mode::read_write)
            .execute("ALTER TABLE SHARD_RANKS DROP COLUMN context");
        return spec.path;
    }
    static void expect_ranks(const store::Trace& trace, std::size_t count) {
        ASSERT_EQ(trace.ranks.size(), count);
        for (std::size_t r = 0; r < count; ++r) {
            EXPECT_EQ(trace.ranks[r].number, static_cast<int>(r));
            EXPECT_THAT(trace.ranks[r].place, ::testing::ElementsAre(0, static_cast<int>(r), 0, 0, 0));
        }
    }

    TemporaryFolder folder_;
};

TEST_F(MissingColumn, IsAbsentInALoadedTrace) {
    const auto trace = store::load_trace(part("run.sqlite", 0));
    EXPECT_EQ(trace->schema_version, schema::kSchemaVersion);
    expect_ranks(*trace, 1);
}

TEST_F(MissingColumn, IsNotNeededToExport) {
    const std::string run = part("run.sqlite", 0), chrome = folder_ / "run.json";
    exports::export_chrome(run, chrome);
    expect_ranks(*importer::open_any({chrome}), 1);
}

TEST_F(MissingColumn, IsNotNeededToMergeAndSlice) {
    const std::string merged = folder_ / "merged.sqlite", slice = folder_ / "slice.sqlite";
    merge::merge_traces({.inputs = {part("a.sqlite", 0), part("b.sqlite", 1)}, .output = merged});
    expect_ranks(*store::load_trace(merged), 2);
    merge::slice_trace({.input = merged, .output = slice, .choice = {.first_step = 1, .last_step = 1}});
    expect_ranks(*store::load_trace(slice), 2);
    const std::string alone = folder_ / "alone.sqlite";
    merge::slice_trace(
        {.input = folder_ / "a.sqlite", .output = alone, .choice = {.first_step = 1, .last_step = 1}});
    expect_ranks(*store::load_trace(alone), 1);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces
