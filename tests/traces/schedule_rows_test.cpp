// The planned schedule (SHARD_SCHEDULE) survives export and import, merging and slicing.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/part_files.h"
#include "tests/traces/temporary_folder.h"
#include "traces/export/chrome_trace.h"
#include "traces/import/open.h"
#include "traces/merge/merge.h"
#include "traces/merge/slice.h"
#include "traces/store/load/loader.h"

namespace shardscope::traces {
namespace TEST_FILE {

using ::testing::ElementsAreArray;

std::vector<schema::ScheduleRow> schedule_of(int rank) {
    return {{.rank = rank, .position = 0, .stage = rank, .kind = "UNSHARD"},
            {.rank = rank, .position = 1, .stage = rank, .kind = "F", .micro_batch = 0, .with_next = true},
            {.rank = rank, .position = 2, .stage = 3 - rank, .kind = "B", .micro_batch = 7},
            {.rank = rank, .position = 3, .stage = rank, .kind = "SEND_F", .micro_batch = 0}};
}

std::vector<std::string> texts(const std::vector<schema::ScheduleRow>& rows) {
    std::vector<std::string> result;
    for (const schema::ScheduleRow& row : rows)
        result.push_back(std::to_string(row.rank) + "/" + std::to_string(row.position) + ": " +
                         std::to_string(row.stage) + row.kind + std::to_string(row.micro_batch) +
                         (row.with_next ? "+" : ""));
    return result;
}

class ScheduleRows : public ::testing::Test {
  protected:
    std::string part(const char* name, std::vector<int> ranks) {
        PartSpec spec;
        spec.path = folder_ / name;
        spec.ranks = ranks;
        spec.pid = 500 + ranks.front();
        for (const int rank : ranks) {
            for (const schema::ScheduleRow& row : schedule_of(rank)) spec.schedule.push_back(row);
        }
        write_part(spec);
        return spec.path;
    }
    static void expect_both(const store::Trace& trace) {
        std::vector<schema::ScheduleRow> both = schedule_of(0);
        for (const schema::ScheduleRow& row : schedule_of(1)) both.push_back(row);
        EXPECT_THAT(texts(trace.schedule), ElementsAreArray(texts(both)));
    }

    TemporaryFolder folder_;
};

TEST_F(ScheduleRows, SurviveExportAndImport) {
    const std::string run = part("run.sqlite", {0, 1}), chrome = folder_ / "run.json";
    exports::export_chrome(run, chrome);
    expect_both(*importer::open_any({chrome}));
}

TEST_F(ScheduleRows, SurviveMergingAndSlicing) {
    const std::string merged = folder_ / "merged.sqlite", slice = folder_ / "slice.sqlite";
    merge::merge_traces({.inputs = {part("a.sqlite", {0}), part("b.sqlite", {1})}, .output = merged});
    expect_both(*store::load_trace(merged));
    merge::slice_trace({.input = merged, .output = slice, .choice = {.first_step = 1, .last_step = 1}});
    expect_both(*store::load_trace(slice));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces
