// A step that PyTorch 2.15 trained on Gloo, recorded by torch.profiler (scripts/fidelity/record.py), beside
// the same step of our trainer: rank 0 of 2, a GPT of 3 blocks, 32 wide. What the tools say of both is equal.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::ElementsAreArray;
using ::testing::SizeIs;

struct Side {
    const char* name;
    Words settings;
    std::size_t collectives;  // of a step
};

void PrintTo(const Side& side, std::ostream* out) {
    *out << side.name;
}

constexpr int kTrained = 4;  // steps of our trainer; PyTorch's trace has one

class SideBySide : public ::testing::TestWithParam<Side> {
  protected:
    void SetUp() override {
        Words job = {folder_ / "job.toml", "--trace", ours_};
        write_file(job.front(),
                   "[run]\nsteps = 4\nranks = 2\n[model]\ntype = \"gpt\"\nlayers = 3\nwidth = 32\nheads = 4\n"
                   "context = 16\nattention = \"plain\"\n[data]\ntype = \"text\"\nbatch = 2\npath = \"" +
                       (folder_ / "job.toml") + "\"\n[optimizer]\ntype = \"sgd\"\n");
        job.insert(job.end(), GetParam().settings.begin(), GetParam().settings.end());
        const Outcome trained = train(job);
        ASSERT_EQ(trained.status, 0) << trained.err;
        recorded_ = std::string(SHARDSCOPE_PYTORCH_TRACES) + "/" + GetParam().name + ".json.gz";
        const Outcome imported = trace_tool({"import", recorded_, "-o", theirs_});
        ASSERT_EQ(imported.status, 0) << imported.err;
    }

    TemporaryFolder folder_;
    std::string recorded_, ours_ = folder_ / "ours.sqlite", theirs_ = folder_ / "theirs.sqlite";
};

// "  Block_0 x4": each module by its depth, without wrappers, with its calls in `steps` times the trace.
void add_modules(const Json& modules, const std::string& indent, int steps, std::vector<std::string>& lines) {
    for (const Json& module : modules) {
        std::string name = module.at("name").get<std::string>();
        const bool wrapper =
            name.starts_with("FullyShardedDataParallel_") || name.starts_with("DistributedDataParallel_");
        if (name.starts_with("FSDP")) name = name.substr(4);  // fully_shard renames classes
        if (!wrapper)
            lines.push_back(indent + name + " x" +
                            std::to_string(module.at("occurrences").get<int>() * steps));
        add_modules(module.at("children"), indent + (wrapper ? "" : "  "), steps, lines);
    }
}

std::vector<std::string> modules_of(const std::string& trace, int steps) {
    std::vector<std::string> lines;
    add_modules(trace_json({"modules", trace}).at("ranks").at(0).at("modules"), "", steps, lines);
    return lines;
}

TEST_P(SideBySide, ModulesAreTheSame) {
    const std::vector<std::string> theirs = modules_of(recorded_, kTrained);
    EXPECT_THAT(theirs, SizeIs(35));
    EXPECT_THAT(modules_of(ours_, 1), ElementsAreArray(theirs));
}

// Gloo carries out a reduce_scatter as the all_reduce of the whole buffer.
std::string on_gloo(const std::string& operation) {
    return operation == "reduce_scatter" ? "all_reduce" : operation;
}

TEST_P(SideBySide, CollectivesComeInTheSameOrderAndPhases) {
    std::vector<std::string> ours =
        texts(ours_,
              "SELECT operation || ' ' || phase FROM collectives WHERE rank = 0 AND operation NOT IN "
              "('broadcast', 'barrier') ORDER BY sequence");
    ASSERT_GE(ours.size(), GetParam().collectives);
    ours.erase(ours.begin(),
               ours.end() - static_cast<std::ptrdiff_t>(GetParam().collectives));  // the last step
    for (std::string& line : ours)
        line = on_gloo(line.substr(0, line.find(' '))) + line.substr(line.find(' '));
    EXPECT_THAT(
        texts(theirs_,
              "SELECT substr(name, 6) || CASE WHEN start_ns < (SELECT max(end_ns) FROM ranges WHERE name "
              "GLOB 'nn.Module: *GPT_0') THEN ' forward' ELSE ' backward' END FROM ranges WHERE name GLOB "
              "'gloo:*' ORDER BY start_ns"),
        ElementsAreArray(ours));
}

TEST_P(SideBySide, CollectivesHaveTheSameNumbersAndBytes) {
    const auto sums = [](const std::string& trace, const Words& more) {
        Words command = {"collectives", trace, "--rank", "0"};
        command.insert(command.end(), more.begin(), more.end());
        std::vector<std::string> lines;
        for (const Json& row : trace_json(command).at("ranks").at(0).at("operations")) {
            const std::string name = row.at("name").get<std::string>();
            if (name == "broadcast" || name == "barrier") continue;
            // FSDP1 gathers into a list on Gloo, whose size PyTorch does not record.
            const bool known = name != "all_gather" || std::string(GetParam().name) != "fsdp1";
            lines.push_back(on_gloo(name) + " " + std::to_string(row.at("count").get<int>()) + " " +
                            (known ? std::to_string(row.at("bytes").get<std::int64_t>()) : ""));
        }
        return lines;
    };
    EXPECT_THAT(sums(recorded_, {}), ElementsAreArray(sums(ours_, {"--step", "3:3"})));
}

// Of fully_shard, whose ranges name the unit of each gather and reduction.
class FullyShardSideBySide : public SideBySide {};

TEST_P(FullyShardSideBySide, UnitsAreGatheredAndReducedInTheSameOrder) {
    std::vector<std::string> theirs;
    for (const std::string& name :
         texts(theirs_,
               "SELECT name FROM ranges WHERE name GLOB 'FSDP::all_gather*' AND name NOT GLOB '*copy*' OR "
               "name GLOB 'FSDP::post_backward_reduce*' ORDER BY start_ns")) {
        const std::size_t open = name.find(" (");
        const std::string unit =
            open == std::string::npos ? "root" : name.substr(open + 2, name.size() - open - 3);
        theirs.push_back((name.starts_with("FSDP::all_gather") ? "all_gather " : "reduce_scatter ") + unit);
    }
    std::vector<std::string> ours = texts(
        ours_,
        "SELECT operation || ' ' || unit FROM collectives WHERE rank = 0 AND unit <> '' ORDER BY sequence");
    ours.erase(ours.begin(), ours.end() - static_cast<std::ptrdiff_t>(GetParam().collectives));
    EXPECT_THAT(theirs, ElementsAreArray(ours));
}

const Side kFullyShard = {
    "fsdp2", {"--fsdp.wrap=module:Block", "--fsdp.layout=fsdp2", "--fsdp.limit_all_gathers=false"}, 11};

std::string name_of(const ::testing::TestParamInfo<Side>& side) {
    return side.param.name;
}

INSTANTIATE_TEST_SUITE_P(Wrappers, SideBySide,
                         ::testing::Values(Side{"ddp",
                                                {"--parallel.mode=ddp", "--ddp.bucket_cap_mb=0.02",
                                                 "--ddp.first_bucket_mb=0.02"},
                                                7},
                                           Side{"fsdp1", {"--fsdp.wrap=module:Block"}, 11}, kFullyShard),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Wrappers, FullyShardSideBySide, ::testing::Values(kFullyShard), name_of);

}  // namespace TEST_FILE
}  // namespace shardscope::tools
