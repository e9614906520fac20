#include "profiler/record/output_name.h"

#include <map>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::profiler {
namespace TEST_FILE {

Environment having(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
        const auto it = variables.find(name);
        return it == variables.end() ? std::nullopt : std::optional(it->second);
    };
}
const Environment kNone = having({});
const Environment kRank3 = having({{"RANK", "3"}, {"WORLD_SIZE", "8"}});

TEST(OutputName, is_the_one_given) {
    const OutputName name = output_name("a/run.sqlite", "python3", 77, kNone);
    EXPECT_EQ(name.path, "a/run.sqlite");
    EXPECT_FALSE(name.made_up);
    EXPECT_EQ(name.all_ranks, "");
}

TEST(OutputName, is_made_of_the_program_and_its_process) {
    const OutputName name = output_name("", "100%q", 77, kNone);
    EXPECT_EQ(name.path, "shardscope-100%q-77.sqlite");
    EXPECT_TRUE(name.made_up);
}

TEST(OutputName, contains_the_rank_when_there_are_several) {
    const OutputName name = output_name("a.b/run.sqlite", "python3", 77, kRank3);
    EXPECT_EQ(name.path, "a.b/run.rank3.sqlite");
    EXPECT_EQ(name.all_ranks, "a.b/run.rank*.sqlite");
    EXPECT_EQ(name.merged, "a.b/run.sqlite");
    EXPECT_EQ(output_name("a.b/run", "python3", 77, kRank3).path, "a.b/run.rank3");
    EXPECT_EQ(output_name("", "python3", 77, kRank3).path, "shardscope-python3.rank3.sqlite");
}

TEST(OutputName, follows_a_pattern) {
    const OutputName name = output_name("x/%r-%p-%q{JOB}%%.db", "python3", 77,
                                        having({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"JOB", "j 1"}}));
    EXPECT_EQ(name.path, "x/3-77-j 1%.db");
    EXPECT_EQ(name.all_ranks, "x/*-*-*%.db");
    EXPECT_EQ(name.merged, "x/merged.sqlite");
    EXPECT_EQ(output_name("%r.db", "python3", 77, kNone).path, "0.db");
    EXPECT_NE(output_name("%h.db", "python3", 77, kNone).path, "%h.db");
}

TEST(OutputName, with_a_pattern_that_is_wrong_is_refused) {
    for (const char* pattern : {"%", "a%", "%x", "%q", "%q{", "%q{X", "%qX}", "%q{UNSET}"}) {
        EXPECT_THROW(output_name(pattern, "python3", 77, kNone), std::invalid_argument) << pattern;
    }
}

TEST(LaunchedRank, needs_a_rank_and_a_size) {
    EXPECT_FALSE(launched_rank(kNone));
    EXPECT_FALSE(launched_rank(having({{"RANK", "0"}})));
    EXPECT_FALSE(launched_rank(having({{"RANK", "0"}, {"WORLD_SIZE", "1"}})));
    EXPECT_FALSE(launched_rank(having({{"RANK", "x"}, {"WORLD_SIZE", "2"}})));
    EXPECT_FALSE(launched_rank(having({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}})));
    EXPECT_EQ(launched_rank(kRank3)->rank, 3);
    EXPECT_EQ(launched_rank(having({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}))->ranks, 2);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
