// Stacks of threads, sampled by shardscope-record --sample: by perf events, unless the kernel refuses them,
// and by timers.
#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <time.h>

#include "tests/tools/record/record_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// How often threads are sampled by timers, at most.
double ticks_per_second() {
    timespec tick{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    return 1e9 / static_cast<double>(tick.tv_nsec);
}

class Samples : public RecordTool {
  protected:
    // Records the program; false: perf events are refused here.
    bool samples(const char* means, const std::string& rounds, const std::string& what = "",
                 const char* hertz = "997") {
        outcome_ =
            record({SHARDSCOPE_STACKS_PROGRAM, rounds, what}, {"--sample", hertz, "--sample-by", means});
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
    // What the program says: the share of hot(), and its processor time.
    double true_share() const { return std::stod(outcome_.out); }
    double true_seconds() const { return std::stod(outcome_.out.substr(outcome_.out.find(' '))); }

    Outcome outcome_;
};

// By each means.
class StackSamples : public Samples {
  protected:
    bool samples(const std::string& rounds, const std::string& what = "", const char* hertz = "997") {
        return Samples::samples(GetParam().c_str(), rounds, what, hertz);
    }
    bool by_timer() const { return GetParam() == "timer"; }
    double hertz() const { return by_timer() ? std::min(997.0, ticks_per_second()) : 997; }
};

TEST_P(StackSamples, GiveFunctionsTheirShares) {
    if (!samples("600")) GTEST_SKIP() << outcome_.err;
    const double count = number("SELECT count(*) FROM SHARD_SAMPLES");
    ASSERT_GT(count, 0.4 * true_seconds() * hertz());
    // With so few samples a share is known to some points only; scripts/bench_samples.sh measures it.
    EXPECT_NEAR(of("hot (stacks_program)", "self_percent"), 100 * true_share(), by_timer() ? 18 : 12);
    // On a busy machine the kernel's own work takes some percent of the samples.
    EXPECT_NEAR(of("hot (stacks_program)", "self_percent") + of("cold (stacks_program)", "self_percent"), 100,
                15);
    const double first = of("first_caller (stacks_program)", "total_percent");
    const double second = of("second_caller (stacks_program)", "total_percent");
    EXPECT_GT(first, 8);
    EXPECT_NEAR(second, 2 * first, 30);
    EXPECT_GT(of("main (stacks_program)", "total_percent"), 95);
    // Their weights are the processor time.
    const double weight = number("SELECT sum(weight) FROM SHARD_SAMPLES") / 1e9;
    EXPECT_NEAR(weight, true_seconds(), 0.15 * true_seconds());
    EXPECT_EQ(value("SELECT DISTINCT event FROM samples"), "cpu-clock");
    EXPECT_EQ(value("SELECT count(DISTINCT thread) FROM samples"), "1");
    EXPECT_EQ(value("SELECT thread FROM samples LIMIT 1"), "stacks_program");
    EXPECT_GE(number("SELECT min(time) FROM SHARD_SAMPLES"), 0);
    EXPECT_THAT(outcome_.err, AllOf(HasSubstr("samples of threads)"), HasSubstr("shardscope-trace samples")));
    EXPECT_EQ(setting("sampled_by"), by_timer() ? "timers" : "perf events");
    EXPECT_THAT(outcome_.err, HasSubstr("sampled by " + setting("sampled_by")));
    EXPECT_EQ(run_command({kTrace, "check", out_}).status, 0);
}

TEST_P(StackSamples, AreOfEveryThread) {
    if (!samples("300", "thread")) GTEST_SKIP() << outcome_.err;
    for (const char* thread : {"helper", "stacks_program"}) {
        EXPECT_GT(number(std::string("SELECT count(*) FROM samples WHERE function = 'hot (stacks_program)' "
                                     "AND thread = '") +
                         thread + "'"),
                  0.02 * hertz());
    }
}

TEST_P(StackSamples, AreOfThreadsThatComeAndGo) {
    if (!samples("600", "threads")) GTEST_SKIP() << outcome_.err;
    // Of 60 threads of some 13 ms.
    EXPECT_GT(number("SELECT count(DISTINCT globalTid) FROM SHARD_SAMPLES"), 20);
    EXPECT_EQ(value("SELECT count(*) FROM (SELECT globalTid FROM ThreadNames GROUP BY globalTid "
                    "HAVING count(*) > 1)"),
              "0");
    EXPECT_GT(of("work (stacks_program)", "total_percent"), 80);
}

TEST_P(StackSamples, AreOfChildrenToo) {
    if (!samples("300", "fork")) GTEST_SKIP() << outcome_.err;
    EXPECT_GT(number("SELECT count(*) FROM samples WHERE function = 'hot (stacks_program)'"), 0.02 * hertz());
    EXPECT_GT(of("main (stacks_program)", "total_percent"), 90);
}

TEST_P(StackSamples, AreOfTheProgramsThatAProcessExecutes) {
    outcome_ = record({"sh", "-c", "sh -c 'exec " SHARDSCOPE_STACKS_PROGRAM " 300'; exit 3"},
                      {"--sample", "997", "--sample-by", GetParam()});
    ASSERT_EQ(outcome_.status, 3) << outcome_.err;
    if (outcome_.err.find("not sampled") != std::string::npos) GTEST_SKIP() << outcome_.err;
    EXPECT_GT(number("SELECT count(*) FROM samples WHERE function = 'hot (stacks_program)' AND "
                     "thread = 'stacks_program'"),
              0.02 * hertz());
}

TEST_P(StackSamples, AreTakenAsOftenAsAsked) {
    if (!samples("300", "", "47")) GTEST_SKIP() << outcome_.err;
    // A timer's come at ticks of the kernel, early and late.
    const double period = 1e9 / 47;
    EXPECT_NEAR(number("SELECT avg(weight) FROM SHARD_SAMPLES"), period, (by_timer() ? 0.15 : 0.01) * period);
}

TEST_P(StackSamples, AreOfRanks) {
    const Outcome outcome = shell("RANK=3 WORLD_SIZE=4 \"$record\" -o \"$out\" --sample 997 --sample-by " +
                                  GetParam() + " -- " SHARDSCOPE_STACKS_PROGRAM " 300");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::string part = folder_ / "out.rank3.sqlite";
    if (value_in(part, "SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE '%not sampled%'") != "0")
        GTEST_SKIP();
    EXPECT_EQ(value_in(part, "SELECT DISTINCT rank FROM samples"), "3");
}

TEST_P(StackSamples, AreOfTheRequestedTime) {
    const Outcome outcome =
        record({SHARDSCOPE_STACKS_PROGRAM, "1500"},
               {"--sample", "997", "--sample-by", GetParam(), "--delay", "0.3", "--duration", "0.3"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    if (outcome.err.find("threads are not sampled") != std::string::npos) GTEST_SKIP() << outcome.err;
    // The tool polls every 20 ms.
    EXPECT_GT(number("SELECT count(*) FROM SHARD_SAMPLES"), 0.03 * hertz());
    EXPECT_GE(number("SELECT min(time) FROM SHARD_SAMPLES"), 300e6);
    EXPECT_LE(number("SELECT max(time) FROM SHARD_SAMPLES"), 800e6);
    EXPECT_LE(number("SELECT sum(weight) FROM SHARD_SAMPLES"), 500e6);
    EXPECT_THAT(outcome.err, Not(HasSubstr("lost")));
}

INSTANTIATE_TEST_SUITE_P(Means, StackSamples, ::testing::Values("perf", "timer"),
                         [](const auto& tested) { return tested.param; });

// Perf events leave the program alone; what a timer's signal could meet there:
TEST_F(Samples, ByTimersReachThreadsThatBlockAllSignals) {
    ASSERT_TRUE(samples("timer", "300", "blocked"));
    EXPECT_EQ(value("SELECT count(DISTINCT thread) FROM samples WHERE function = 'hot (stacks_program)'"),
              "2");
}

TEST_F(Samples, ByTimersFollowAHandlerOnAStackOfItsOwn) {
    ASSERT_TRUE(samples("timer", "300", "handler"));
    EXPECT_GT(of("work (stacks_program)", "total_percent"), 90);
    EXPECT_GT(of("main (stacks_program)", "total_percent"), 90);  // which raised the signal
}

TEST_F(Samples, ByTimersLeaveAProfilersOwnSignalAlone) {
    ASSERT_TRUE(samples("timer", "600", "profiler"));  // it exits with 1 if too few come
    EXPECT_GT(of("hot (stacks_program)", "self_percent"), 50);
}

TEST_F(Samples, ByTimersEndWithTheirThreads) {
    // More threads, one after the other, than there may be timers.
    const Outcome outcome = shell(
        // What this user has pending counts, too.
        "ulimit -i $((40 + $(sed -n 's|^SigQ:[^0-9]*\\([0-9]*\\)/.*|\\1|p' /proc/self/status))); \"$record\" "
        "-o \"$out\" --sample 997 --sample-by timer -- " SHARDSCOPE_STACKS_PROGRAM " 1500 threads");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("not sampled")));
    EXPECT_GT(number("SELECT count(DISTINCT globalTid) FROM SHARD_SAMPLES"), 40);
}

// Other libraries of LD_PRELOAD stay, and come first.
TEST_F(Samples, ByTimersKeepOtherLibraries) {
    const Outcome outcome = shell(
        "export LD_PRELOAD=libm.so.6; \"$record\" -o \"$out\" --sample 97 --sample-by timer -- "
        "\"$record\" -o \"$folder/inner.sqlite\" --sample 97 --sample-by timer -- sh -c 'echo $LD_PRELOAD'");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find("libm.so.6:"), 0U) << outcome.out;
    const std::string ours = "libshardscope_preload.so";
    EXPECT_NE(outcome.out.find(ours), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find(ours), outcome.out.rfind(ours)) << outcome.out;  // once
}

TEST_F(Samples, ByPerfEventsAreReplacedWhereTheyAreRefused) {
    const struct {
        int error;
        const char* advice;
    } kinds[] = {{EACCES, "sysctl kernel.perf_event_paranoid=2"},
                 {EPERM, "--cap-add PERFMON"},
                 {ENOSYS, "this kernel has no perf events"}};
    for (const auto& kind : kinds) {
        SCOPED_TRACE(kind.error);
        const auto record_refused = [&](const std::string& options) {
            return shell("rm -f \"$out\"; " SHARDSCOPE_REFUSE_PERF " " + std::to_string(kind.error) +
                         " \"$record\" -o \"$out\" --sample 997 " + options +
                         " -- " SHARDSCOPE_STACKS_PROGRAM " 150");
        };
        const Outcome by_timer = record_refused("");
        if (by_timer.status == 77) GTEST_SKIP() << "the kernel filters no system calls";
        ASSERT_EQ(by_timer.status, 0) << by_timer.err;
        EXPECT_THAT(by_timer.err, AllOf(HasSubstr("threads are sampled by timers inside the program"),
                                        HasSubstr("because"), HasSubstr(kind.advice)));
        EXPECT_EQ(setting("sampled_by"), "timers");
        EXPECT_GT(of("hot (stacks_program)", "self_percent"), 30);
        EXPECT_EQ(value("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE '%sampled by timers%'"), "1");

        const Outcome by_perf = record_refused("--sample-by perf");
        ASSERT_EQ(by_perf.status, 0) << by_perf.err;
        EXPECT_THAT(by_perf.err, AllOf(HasSubstr("threads are not sampled: "), HasSubstr(kind.advice)));
        EXPECT_EQ(value("SELECT count(*) FROM SHARD_SAMPLES"), "0");
        EXPECT_EQ(value("SELECT count(*) FROM SHARD_RUN WHERE key = 'sampled_by'"), "0");
    }
}

#ifdef SHARDSCOPE_STATIC_PROGRAM
TEST_F(Samples, ByTimersOfAStaticProgramAreNotTaken) {
    const std::string program = SHARDSCOPE_STATIC_PROGRAM;
    const Outcome outcome = record({program, "writes_when_done", "10", folder_ / "job"},
                                   {"--sample", "997", "--sample-by", "timer"});
    EXPECT_EQ(outcome.status, 5);
    EXPECT_THAT(outcome.err,
                HasSubstr(program + " is linked statically, so only programs that it starts are sampled"));
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_SAMPLES"), "0");
}
#endif

TEST_F(Samples, AreNotTakenUnlessAsked) {
    ASSERT_EQ(record({SHARDSCOPE_STACKS_PROGRAM, "10"}).status, 0);
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_SAMPLES"), "0");
    for (const char* wrong : {"-1", "20000", "often"}) {
        const Outcome refused = record({"true"}, {"--sample", wrong});
        EXPECT_EQ(refused.status, 125) << wrong;
        EXPECT_THAT(refused.err, HasSubstr("--sample"));
    }
    const Outcome alone = record({"true"}, {"--sample-by", "timer"});
    EXPECT_EQ(alone.status, 125);
    EXPECT_THAT(alone.err, HasSubstr("--sample-by works only with --sample; give both"));
    const Outcome unknown = record({"true"}, {"--sample", "97", "--sample-by", "guess"});
    EXPECT_EQ(unknown.status, 125);
    EXPECT_THAT(unknown.err, HasSubstr("--sample-by"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
