// Places in the mesh that are inferred from the descriptions of groups.
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/communication/axes.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/pipeline/timeline.h"
#include "traces/import/join/infer_places.h"
#include "traces/import/open.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::SizeIs;

int place(const store::Rank& rank, std::string_view axis) {
    const auto& axes = schema::kMeshAxes;
    const auto at = std::find_if(axes.begin(), axes.end(), [&](const auto& a) { return a.name == axis; });
    return rank.place[static_cast<std::size_t>(at - axes.begin())];
}

void group(RunBuilder& run, std::int64_t id, const char* axis, const char* ranks) {
    run.sink().add(
        schema::GroupRow{.group = id, .axis = axis, .ranks = ranks, .name = "", .description = "described"});
}

std::vector<std::string> places(RunBuilder& run) {
    const std::unique_ptr<store::Trace> trace = run.take();
    infer_places(*trace);
    std::vector<std::string> result;
    for (std::size_t r = 0; r < trace->ranks.size(); ++r)
        result.push_back(analysis::place_in_mesh(*trace, store::RankIndex(r)));
    return result;
}

// Megatron's order: tensor innermost, pipeline outermost.
TEST(Places, AreThoseInTheGroupsOfEachAxis) {
    RunBuilder run(4);
    group(run, 1, "tensor", "[0, 1]");
    group(run, 2, "tensor", "[2, 3]");
    group(run, 3, "pipeline", "[0, 2]");
    group(run, 4, "pipeline", "[1, 3]");
    group(run, 5, "world", "[0, 1, 2, 3]");
    EXPECT_THAT(places(run), ElementsAre("tensor 0, pipeline 0", "tensor 1, pipeline 0",
                                         "tensor 0, pipeline 1", "tensor 1, pipeline 1"));
}

TEST(Places, StayUnknownAlongAnAxisWhoseGroupsDisagreeOrMissARank) {
    const auto places_along_tensor = [](const std::vector<const char*>& groups) {
        RunBuilder run(4);
        for (std::size_t g = 0; g < groups.size(); ++g)
            group(run, static_cast<std::int64_t>(g) + 1, "tensor", groups[g]);
        const std::unique_ptr<store::Trace> trace = run.take();
        infer_places(*trace);
        std::vector<int> result;
        for (const store::Rank& rank : trace->ranks) result.push_back(place(rank, "tensor"));
        return result;
    };
    EXPECT_THAT(places_along_tensor({"[0, 1]", "[2, 3]"}), ElementsAre(0, 1, 0, 1));
    EXPECT_THAT(places_along_tensor({"[0, 1]", "[2, 3, ...]"}), ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(places_along_tensor({"[0, 1]", "[2, 3]", "[1, 2]"}), ElementsAre(0, 0, 0, 0));
}

TEST(Places, OfATraceThatRecordsThemStay) {
    RunBuilder run(0);
    for (int rank = 0; rank < 2; ++rank)
        run.sink().add(schema::RankRow{.rank = rank,
                                       .device = rank,
                                       .global_pid = run.pid(rank),
                                       .global_tid = run.tid(rank),
                                       .host = "",
                                       .device_name = "",
                                       .shard = 1 - rank,
                                       .cpus = {}});
    group(run, 1, "tensor", "[0, 1]");
    const std::unique_ptr<store::Trace> trace = run.take();
    infer_places(*trace);
    for (const store::Rank& rank : trace->ranks) {
        EXPECT_EQ(place(rank, "shard"), 1 - rank.number);
        EXPECT_EQ(place(rank, "tensor"), 0);
    }
}

// Two ranks' files as PyTorch writes them, opened together: places 0 and 1 of mesh_pp are ranks 2 and 5.
TEST(Places, OfImportedFilesComeFromTheGroupsOfAllFiles) {
    const TemporaryFolder folder;
    std::vector<std::string> files;
    for (const int rank : {2, 5}) {
        files.push_back(folder / ("rank" + std::to_string(rank) + ".json"));
        std::ofstream(files.back())
            << R"({"distributedInfo": {"backend": "nccl", "rank": )" << rank
            << R"(, "world_size": 8}, "traceEvents": [{"ph": "X", "cat": "kernel", "name": )"
            << R"("ncclDevKernel_SendRecv", "pid": 0, "tid": 20, "ts": 130, "dur": 40, "args": )"
            << R"({"device": 0, "stream": 20, "correlation": 9, "Collective name": ")"
            << (rank == 2 ? "send" : "recv")
            << R"(", "Group size": 2, "Process Group Name": "5", "Process Group Description": )"
            << R"("mesh_pp", "Process Group Ranks": "[2, 5]"}}]})";
    }
    const std::unique_ptr<store::Trace> trace = open_any(files);
    ASSERT_THAT(trace->ranks, SizeIs(2));
    EXPECT_EQ(place(trace->ranks[0], "pipeline"), 0);
    EXPECT_EQ(place(trace->ranks[1], "pipeline"), 1);
    const analysis::Communications all = analysis::match_communications(*trace);
    ASSERT_THAT(all.matches, SizeIs(1)) << "the send and its receive are one";
    EXPECT_EQ(all.matches[0].ends, (analysis::MessageEnds{2, 5}));
}

// Two pipelines beside each other: no description names their groups, but only messages run in these.
TEST(Places, OfAPipelineComeFromGroupsThatCarryOnlyMessages) {
    const auto trace_with = [](bool actions) {
        RunBuilder run(4);
        group(run, 1, "", "[0, 2]");
        group(run, 2, "", "[1, 3]");
        group(run, 3, "", "[0, 1]");
        for (int rank = 0; rank < 4; ++rank) {
            const bool sends = rank < 2;
            run.range(rank, 0, 10, actions ? (sends ? "PP:0F0" : "PP:1F0") : "step");
            run.collective(rank, 20, 30,
                           {.operation = sends ? schema::Operation::send : schema::Operation::recv,
                            .sequence = 0,
                            .group = 1 + rank % 2,
                            .group_size = 2});
        }
        run.collective(0, 40, 50, {.operation = schema::Operation::all_reduce, .group = 3, .group_size = 2});
        auto trace = run.take();
        infer_places(*trace);
        return trace;
    };
    EXPECT_EQ(place(trace_with(true)->ranks[3], "pipeline"), 1);
    EXPECT_EQ(place(trace_with(true)->ranks[1], "pipeline"), 0);
    EXPECT_EQ(place(trace_with(false)->ranks[3], "pipeline"), 0)
        << "messages alone may be those of ring attention";
    EXPECT_THAT(analysis::pipeline_timeline(*trace_with(true)).pipelines, ElementsAre("data 0", "data 1"));
}

// Two copies of a model in two shards each, as FSDP2's and FSDP1's hooks name them; the model gathers in a
// group of its own, whose axis stays unknown.
TEST(Places, AlongTheShardsComeFromTheHooksOfFsdp) {
    for (const char* hook :
         {"FSDP::post_backward_reduce (layers.3)", "FullyShardedDataParallel._post_backward_hook"}) {
        RunBuilder run(4);
        group(run, 1, "", "[0, 1]");
        group(run, 2, "", "[2, 3]");
        group(run, 3, "", "[0, 2]");
        group(run, 4, "", "[1, 3]");
        group(run, 5, "", "[0, 3]");
        for (int rank = 0; rank < 4; ++rank) {
            const auto collective = [&](std::int64_t at, schema::Operation operation, std::int64_t in) {
                run.collective(rank, at, at + 5,
                               {.operation = operation, .group = in, .group_size = 2, .launched = at - 5});
            };
            run.range(rank, 0, 50, "FullyShardedDataParallel.forward");
            collective(20, schema::Operation::all_gather, 5);
            run.range(rank, 100, 150, hook);
            run.range(rank, 105, 145, "c10d::_reduce_scatter_base_");
            collective(120, schema::Operation::reduce_scatter, 1 + rank / 2);
            collective(130, schema::Operation::all_reduce, 3 + rank % 2);
        }
        const std::unique_ptr<store::Trace> trace = run.take();
        infer_places(*trace);
        std::vector<std::string> axes, found;
        for (const schema::GroupRow& row : trace->groups) axes.push_back(row.axis);
        EXPECT_THAT(axes, ElementsAre("shard", "shard", "data", "data", "")) << hook;
        for (std::size_t r = 0; r < trace->ranks.size(); ++r)
            found.push_back(analysis::place_in_mesh(*trace, store::RankIndex(r)));
        EXPECT_THAT(found,
                    ElementsAre("data 0, shard 0", "data 0, shard 1", "data 1, shard 0", "data 1, shard 1"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
