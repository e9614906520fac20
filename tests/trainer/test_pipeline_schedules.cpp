// The schedules, action by action, next to PyTorch's tables: a few that are kept here (scripts/schedules.sh
// --write), and all of ../shared if it is there. p ranks, m micro-batches, v stages per rank.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/trainer/pipeline_testing.h"
#include "trainer/pipeline/csv.h"
#include "trainer/pipeline/lower.h"

namespace shardscope::trainer::pipeline {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The lines of a file, plain or compressed.
std::vector<std::string> lines_of(const std::filesystem::path& path) {
    std::vector<std::string> lines;
    const gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) return lines;
    std::string text(1 << 16, '\0');
    while (gzgets(file, text.data(), static_cast<int>(text.size())) != nullptr) {
        lines.emplace_back(text.c_str());
        lines.back().pop_back();
    }
    gzclose(file);
    return lines;
}

// The tables of a file whose columns are schedule, p, m, v, perhaps others, rank, actions: by the text before
// the rank, each rank's actions.
std::map<std::string, std::vector<std::string>> tables_of(const std::filesystem::path& path) {
    std::map<std::string, std::vector<std::string>> tables;
    std::vector<std::string> lines = lines_of(path);
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const auto actions = lines[i].rfind(','), rank = lines[i].rfind(',', actions - 1);
        tables[lines[i].substr(0, rank)].push_back(lines[i].substr(actions + 1));
    }
    return tables;
}

// "zb_v,4,8,2" or "ZBVZeroBubble,4,8,2": the schedule, made here.
Schedule made_for(const std::string& key) {
    static const std::map<std::string, std::string> kOurs = {
        {"GPipe", "gpipe"},          {"1F1B", "1f1b"},
        {"LoopedBFS", "looped_bfs"}, {"Interleaved1F1B", "interleaved"},
        {"ZBVZeroBubble", "zb_v"},   {"InterleavedZeroBubble", "interleaved_zb"},
        {"DualPipeV", "dualpipe_v"}};
    std::istringstream words(key);
    std::string name, p, m, v;
    std::getline(words, name, ',');
    std::getline(words, p, ',');
    std::getline(words, m, ',');
    std::getline(words, v, ',');
    const auto ours = kOurs.find(name);
    return made(ours == kOurs.end() ? name : ours->second, std::stoi(p), std::stoi(m), std::stoi(v));
}

void expect_table(const Schedule& schedule, const std::vector<std::string>& theirs, const std::string& key) {
    ASSERT_EQ(theirs.size(), schedule.actions.size()) << key;
    for (int rank = 0; rank < schedule.ranks(); ++rank) {
        std::string text = theirs[static_cast<std::size_t>(rank)];
        // Tables of one stage per rank end with the reduction, whatever is added to the others.
        if (!schedule.has_transfers())
            text = text.substr(0, text.find(std::to_string(rank) + "REDUCE_GRAD") - 1);
        EXPECT_EQ(rank_text(schedule, rank), text) << key << " rank " << rank;
    }
}

TEST(PipelineSchedules, AreThoseOfPyTorchInKeptCases) {
    const auto tables = tables_of(SHARDSCOPE_SCHEDULES);
    EXPECT_EQ(tables.size(), 24u);
    for (const auto& [key, ranks] : tables) {
        const Schedule schedule = made_for(key);
        expect_table(key.ends_with(",1") ? lower(schedule) : schedule, ranks, key);
    }
}

class SharedSchedules : public ::testing::Test {
  protected:
    void SetUp() override {
        const char* chosen = std::getenv("SHARDSCOPE_SHARED");
        folder_ =
            std::filesystem::path(chosen != nullptr ? chosen : SHARDSCOPE_SHARED_FOLDER) / "data/schedules";
        if (!std::filesystem::exists(folder_))
            GTEST_SKIP() << "there is no " << folder_ << "; SHARDSCOPE_SHARED names its parent";
    }
    std::filesystem::path folder_;
};

TEST_F(SharedSchedules, AreTheOnesMadeHere) {
    const auto tables = tables_of(folder_ / "generated_torch_2.15.0.csv.gz");
    EXPECT_EQ(tables.size(), 415u);
    for (const auto& [key, ranks] : tables) expect_table(made_for(key), ranks, key);
}

TEST_F(SharedSchedules, AreLoweredAsHere) {
    const auto tables = tables_of(folder_ / "generated_torch_2.15.0_comms.csv.gz");
    EXPECT_EQ(tables.size(), 19u);
    for (const auto& [key, ranks] : tables) expect_table(lower(made_for(key)), ranks, key);
}

TEST_F(SharedSchedules, OfPyTorchsOwnTestsAreRead) {
    EXPECT_EQ(read_csv(folder_ / "dualpipev_4rank_10mb.csv"), made("dualpipe_v", 4, 10));
    // Two files of one schedule in older letters: with idle cells, where B and W stand for I and W, and with
    // transfers.
    const Schedule computes = read_csv(folder_ / "zb1p_2rank_2stagep_compute.csv");
    EXPECT_EQ(computes, made("interleaved_zb", 2, 8, 2));
    const Schedule lowered = read_csv(folder_ / "zb1p_2rank_2stagep_comms.csv");
    EXPECT_TRUE(lowered.has_transfers());
    EXPECT_EQ(computes_of(lowered).actions[1], computes.actions[1]);
}

// No class of PyTorch makes ZB-H1; this is its rule, applied by hand: p - 1 - r forwards first; from the r-th
// backward on each I is followed by the oldest W.
TEST(PipelineSchedules, ZbH1FollowsItsRule) {
    const Schedule schedule = made("zb_h1", 3, 4);
    EXPECT_EQ(rank_text(schedule, 0), "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3");
    EXPECT_EQ(rank_text(schedule, 1), "1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3");
    EXPECT_EQ(rank_text(schedule, 2), "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3");
}

TEST(PipelineSchedules, CanRunInEveryShapeThatTheyTake) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        for_each_shape(kind, [&](const Shape& shape) {
            const Schedule schedule = make_schedule(kind, shape);
            const auto problem = find_problem(schedule);
            EXPECT_FALSE(problem) << to_string(kind, shape) << ": " << problem->text;
            const auto lowered = find_problem(lower(schedule));
            EXPECT_FALSE(lowered) << to_string(kind, shape) << ", lowered: " << lowered->text;
            EXPECT_EQ(schedule.micro_batches, shape.micro_batches);
            // On one rank both placements are the same.
            EXPECT_EQ(schedule.placement(), shape.ranks > 1 ? kind.placement : Placement::loop);
        });
    }
}

TEST(PipelineSchedules, PlaceStagesInALoopOrAV) {
    EXPECT_THAT(made("interleaved", 2, 4, 3).stages_of(1), ElementsAre(1, 3, 5));
    EXPECT_THAT(made("zb_v", 3, 6).stages_of(0), ElementsAre(0, 5));
    EXPECT_THAT(made("zb_v", 3, 6).rank_of_stage, ElementsAre(0, 1, 2, 2, 1, 0));
}

std::string refusal_of(std::string_view name, int p, int m, int v) {
    return refusal(*find_schedule(name), {p, m, v});
}

TEST(PipelineSchedules, NameTheNearestShapeThatTheyTake) {
    EXPECT_EQ(refusal_of("1f1b", 4, 3, 1),
              "1f1b takes 4 micro-batches or more on 4 ranks (m >= p), not 3; use 4");
    EXPECT_EQ(refusal_of("dualpipe_v", 4, 7, 2),
              "dualpipe_v takes 8 micro-batches or more on 4 ranks (m >= 2p), not 7; use 8");
    EXPECT_EQ(refusal_of("interleaved", 4, 9, 2),
              "interleaved divides the micro-batches into m div p rounds of equal size, and 9 are not a "
              "multiple of 9 "
              "div 4 = 2; use 8 or 10");
    EXPECT_EQ(refusal_of("interleaved", 4, 9, 1),
              "interleaved takes 2 to 64 chunks per rank, not 1; 1 is one of "
              "gpipe, 1f1b, zb_h1");
    EXPECT_EQ(refusal_of("gpipe", 4, 8, 2),
              "gpipe takes 1 chunk per rank, not 2; that is one of interleaved, "
              "looped_bfs, interleaved_zb, zb_v, dualpipe_v");
    EXPECT_EQ(refusal_of("zb_v", 0, 8, 2), "0 ranks: a pipeline has 1 to 4096");
    EXPECT_EQ(refusal_of("zb_v", 4, 0, 2), "0 micro-batches: a step has 1 or more");
    EXPECT_THAT(refusal_of("gpipe", 1000, 10000, 1), HasSubstr("use 1000 micro-batches or fewer"));
    EXPECT_EQ(refusal_of("interleaved", 4, 3, 2), "");  // one round
    EXPECT_EQ(refusal_of("zb_v", 4, 1, 2), "");
}

TEST(PipelineSchedules, AreFoundByName) {
    EXPECT_EQ(find_schedule("1F1B"), nullptr);
    EXPECT_EQ(find_schedule("zb_h1")->title, "ZB-H1");
    EXPECT_EQ(schedule_names(),
              "gpipe, 1f1b, interleaved, looped_bfs, zb_h1, interleaved_zb, zb_v, dualpipe_v");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::pipeline
