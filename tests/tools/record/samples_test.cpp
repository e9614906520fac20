// Stacks of threads, sampled by shardscope-record --sample. Skipped where the kernel refuses perf events.
#include <string>

#include <nlohmann/json.hpp>

#include "tests/tools/record/record_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StackSamples : public RecordTool {
  protected:
    // Records the program; false: perf events are refused here.
    bool samples(const std::string& rounds, const std::string& what = "", const char* hertz = "997") {
        outcome_ = record({SHARDSCOPE_STACKS_PROGRAM, rounds, what}, {"--sample", hertz});
        EXPECT_EQ(outcome_.status, 0) << outcome_.err;
        return outcome_.err.find("threads are not sampled") == std::string::npos;
    }
    // Of the result of the verb `samples`: a number of a function.
    double of(const std::string& function, const char* key) const {
        const Outcome shown = run_command({kTrace, "samples", out_, "--format", "json", "--top", "0"});
        EXPECT_EQ(shown.status, 0) << shown.err;
        const auto result = nlohmann::json::parse(shown.out);
        for (const auto& row : result.at("functions"))
            if (row.at("function") == function) return row.at(key).get<double>();
        return 0;
    }

    Outcome outcome_;
};

TEST_F(StackSamples, GiveFunctionsTheirShares) {
    if (!samples("600")) GTEST_SKIP() << outcome_.err;
    const double count = number("SELECT count(*) FROM SHARD_SAMPLES");
    ASSERT_GT(count, 100);
    // With so few samples a share is known to some points only; scripts/bench_samples.sh measures it.
    EXPECT_NEAR(of("hot (stacks_program)", "self_percent"), 100 * std::stod(outcome_.out), 12);
    // On a busy machine the kernel's own work takes some percent of the samples.
    EXPECT_NEAR(of("hot (stacks_program)", "self_percent") + of("cold (stacks_program)", "self_percent"), 100,
                15);
    EXPECT_NEAR(of("second_caller (stacks_program)", "total_percent"),
                2 * of("first_caller (stacks_program)", "total_percent"), 25);
    EXPECT_GT(of("main (stacks_program)", "total_percent"), 95);
    // Their weights are the processor time.
    EXPECT_NEAR(number("SELECT sum(weight) FROM SHARD_SAMPLES") / 1e9, count / 997, 0.02 * count / 997);
    EXPECT_EQ(value("SELECT DISTINCT event FROM samples"), "cpu-clock");
    EXPECT_EQ(value("SELECT count(DISTINCT thread) FROM samples"), "1");
    EXPECT_EQ(value("SELECT thread FROM samples LIMIT 1"), "stacks_program");
    EXPECT_GE(number("SELECT min(time) FROM SHARD_SAMPLES"), 0);
    EXPECT_THAT(outcome_.err, AllOf(HasSubstr("samples of threads)"), HasSubstr("shardscope-trace samples")));
    EXPECT_EQ(run_command({kTrace, "check", out_}).status, 0);
}

TEST_F(StackSamples, AreOfEveryThread) {
    if (!samples("300", "thread")) GTEST_SKIP() << outcome_.err;
    EXPECT_GT(
        number("SELECT count(*) FROM samples WHERE thread = 'helper' AND function = 'hot (stacks_program)'"),
        20);
    EXPECT_GT(
        number("SELECT count(*) FROM samples WHERE thread = 'stacks_program' AND function LIKE 'hot (%'"),
        20);
}

TEST_F(StackSamples, AreOfChildrenToo) {
    if (!samples("300", "fork")) GTEST_SKIP() << outcome_.err;
    EXPECT_GT(number("SELECT count(*) FROM samples WHERE function = 'hot (stacks_program)'"), 20);
    EXPECT_GT(of("main (stacks_program)", "total_percent"), 90);
}

TEST_F(StackSamples, AreTakenAsOftenAsAsked) {
    if (!samples("300", "", "97")) GTEST_SKIP() << outcome_.err;
    EXPECT_NEAR(number("SELECT max(weight) FROM SHARD_SAMPLES"), 1e9 / 97, 1e5);
}

TEST_F(StackSamples, AreOfRanks) {
    const Outcome outcome =
        shell("RANK=3 WORLD_SIZE=4 \"$record\" -o \"$out\" --sample 997 -- " SHARDSCOPE_STACKS_PROGRAM
              " 300; ls \"$folder\"");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::string part = folder_ / "out.rank3.sqlite";
    if (value_in(part, "SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE '%not sampled%'") != "0")
        GTEST_SKIP();
    EXPECT_EQ(value_in(part, "SELECT DISTINCT rank FROM samples"), "3");
}

TEST_F(StackSamples, AreNotTakenUnlessAsked) {
    ASSERT_EQ(record({SHARDSCOPE_STACKS_PROGRAM, "10"}).status, 0);
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_SAMPLES"), "0");
    for (const char* wrong : {"-1", "20000", "often"}) {
        const Outcome refused = record({"true"}, {"--sample", wrong});
        EXPECT_EQ(refused.status, 125) << wrong;
        EXPECT_THAT(refused.err, HasSubstr("--sample"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
