// Ranks are processes, and one of them dies, hangs or misbehaves: all end, each reports which rank it was and
// in which collective it waited, and the parts of the trace show it afterwards.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/process_run.h"
#include "traces/store/error.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int kRanks = 4;
constexpr double kSoon = 40;  // seconds allowed on a busy machine for what takes a few

// The remaining ranks' message about the one that stopped: the collective with its step, unit and phase.
constexpr const char* kWaited =
    "waited in (all_gather|reduce_scatter|all_reduce) number [0-9]+ of communicator [0-9]+ \\(step [0-9]+, "
    "unit [0-9]+ \"[^\"]+\", [a-z_ ]+\\)";

// The message about a process that is gone, whether the World's connection or the collectives' noticed it
// first.
constexpr const char* kGone = "\\) (has ended|is lost in )";

// The process with this variable in its environment and this word in its command line; 0 if there is none.
pid_t process_with(const std::string& variable, const std::string& word) {
    const auto has = [](const std::string& strings, const std::string& one) {
        return (std::string(1, '\0') + strings).find('\0' + one + '\0') != std::string::npos;
    };
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        if (has(read_file(entry.path() / "cmdline"), word) &&
            has(read_file(entry.path() / "environ"), variable))
            return std::stoi(name);
    }
    return 0;
}

class ProcessFailures : public ::testing::Test {
  protected:
    virtual std::string comm() const { return "auto"; }
    Words job(const Words& more = {}) const {
        Words words = {train_binary(),    sample("mlp.toml"),     "--model.width=64", "--run.steps=100000000",
                       "--run.workers=1", "--run.comm=" + comm(), "--trace",          trace()};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    // The arguments of straying_program.
    Words astray(const std::string& how, int rank, int number, const Words& more = {}) const {
        Words words = {SHARDSCOPE_STRAYING_PROGRAM, how,
                       std::to_string(rank),        std::to_string(number),
                       sample("mlp.toml"),          "--model.width=64",
                       "--run.steps=100000000",     "--run.workers=1",
                       "--run.comm=" + comm(),      "--run.trace=" + trace()};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    std::string trace() const { return folder_ / "run.sqlite"; }
    std::string part(int rank) const {
        return folder_ / ("run.rank-0000" + std::to_string(rank) + ".sqlite");
    }

    // Waits until the rank's part has committed steps.
    void await_steps_in_part(int rank) const {
        EXPECT_TRUE(within(60, [&] {
            try {
                return number(part(rank), "SELECT count(DISTINCT step) FROM SHARD_STEPS") >= 3;
            } catch (const traces::store::StoreError&) {
                return false;  // not written yet
            }
        }));
    }

    // Checks that the parts can be read and merged; returns what the merged trace reports about the stop.
    Json stopped_of_merged(int ranks = kRanks) const {
        Words merge = {"merge"};
        for (int rank = 0; rank < ranks; ++rank) {
            const Json info = trace_json({"info", part(rank)});
            EXPECT_GE(info.at("steps").get<int>(), 1) << "rank " << rank;
            merge.push_back(part(rank));
        }
        const std::string merged = folder_ / "merged.sqlite";
        merge.insert(merge.end(), {"-o", merged});
        const Outcome outcome = trace_tool(merge);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        const Json info = trace_json({"info", merged});
        EXPECT_EQ(info.at("ranks"), ranks);
        // The same facts as a sentence, where users look.
        const std::string sentence = info.at("stopped").value("sentence", "");
        EXPECT_THAT(trace_tool({"distributed", merged}).out, HasSubstr(sentence));
        return info.at("stopped");
    }
    // Checks which ranks waited, and that they reported it themselves.
    static void expect_waiting(const Json& stopped, int first, int at_least) {
        EXPECT_EQ(stopped.at("rank"), first) << stopped;
        EXPECT_EQ(stopped.at("told"), true);
        int waited = 0;
        for (const Json& rank : stopped.at("ranks"))
            waited += rank.at("rank") != first && rank.at("said") == true && rank.at("waiting").is_string();
        EXPECT_GE(waited, at_least) << stopped;
    }

    TemporaryFolder folder_;
};

// Failures that end differently with each engine of collectives.
class ProcessFailuresOver : public ProcessFailures, public ::testing::WithParamInterface<const char*> {
  protected:
    std::string comm() const override { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Engines, ProcessFailuresOver, ::testing::Values("tcp", "gloo"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(ProcessFailuresOver, AKilledRankEndsAll) {
    ProcessRun run(kRanks, job());
    run.start_all();
    run.await_step();
    await_steps_in_part(2);
    const std::string process = "rank 2 (process " + std::to_string(run.pid(2)) + " on host ";
    run.signal(2, SIGKILL);
    const auto ends = run.ends(kSoon);
    EXPECT_EQ(ends.at(2).status, 128 + SIGKILL);
    for (const int rank : {0, 1, 3}) {
        EXPECT_EQ(ends.at(rank).status, 1) << rank;
        EXPECT_THAT(ends.at(rank).err,
                    AllOf(HasSubstr(process), ContainsRegex(kGone), ContainsRegex(kWaited)));
    }
    EXPECT_THAT(ends.at(0).err, HasSubstr("shardscope-trace merge"));
    expect_waiting(stopped_of_merged(), 2, 3);
}

// Rank 0 is the meeting point of all processes.
TEST_P(ProcessFailuresOver, AKilledRankZeroEndsAll) {
    ProcessRun run(kRanks, job());
    run.start_all();
    run.await_step();
    await_steps_in_part(0);
    run.signal(0, SIGKILL);
    const auto ends = run.ends(kSoon);
    EXPECT_EQ(ends.at(0).status, 128 + SIGKILL);
    for (const int rank : {1, 2, 3}) {
        EXPECT_EQ(ends.at(rank).status, 1) << rank;
        EXPECT_THAT(ends.at(rank).err,
                    AllOf(HasSubstr("rank 0 (process "), ContainsRegex(kGone), ContainsRegex(kWaited)));
    }
    expect_waiting(stopped_of_merged(), 0, 3);
}

// Rank 3 serves the three others. What they have saved before is whole.
TEST_P(ProcessFailuresOver, AKilledServerEndsAll) {
    const std::string saved = folder_ / "saved";
    for (const char* staleness : {"0", "-1"}) {
        const Words server = {"--parallel.mode=server", std::string("--train.staleness=") + staleness,
                              "--checkpoint.save=" + saved, "--checkpoint.every=20", "--overwrite"};
        ProcessRun run(kRanks, job(server));
        run.start_all();
        run.await_step();
        EXPECT_TRUE(within(60, [&] { return fs::exists(saved + "/latest"); }));
        run.signal(3, SIGKILL);
        const auto ends = run.ends(kSoon);
        for (const int rank : {0, 1, 2}) {
            EXPECT_EQ(ends.at(rank).status, 1) << rank;
            EXPECT_THAT(ends.at(rank).err, AllOf(HasSubstr("rank 3 (process "), ContainsRegex(kGone)))
                << rank;
        }
        const int step = std::stoi(read_file(saved + "/latest").substr(std::string("step-").size()));
        const Json further = train_json({sample("mlp.toml"), "--model.width=64", "--checkpoint.load=" + saved,
                                         "--run.steps=" + std::to_string(step + 2)});
        EXPECT_EQ(further.at("losses").size(), 2U);
        fs::remove_all(saved);
    }
}

// Waits for run.timeout twice: a stopped rank 0, with which the others wait, is detected differently from
// another rank.
TEST_P(ProcessFailuresOver, AStoppedRankEndsAllInTime) {
    for (const int stopped : {1, 0}) {
        SCOPED_TRACE(stopped);
        ProcessRun run(kRanks, job({"--run.timeout=4", "--overwrite"}));
        run.start_all();
        run.await_step();
        await_steps_in_part(stopped);
        run.signal(stopped, SIGSTOP);
        EXPECT_TRUE(within(kSoon, [&] {
            bool all = true;
            for (int rank = 0; rank < kRanks; ++rank) all = (rank == stopped || run.ended(rank)) && all;
            return all;
        }));
        EXPECT_FALSE(run.ended(stopped));
        run.signal(stopped, SIGCONT);  // it also notices that the job ended
        const std::string name = "rank " + std::to_string(stopped) + " ";
        for (const auto& [rank, end] : run.ends(kSoon)) {
            EXPECT_EQ(end.status, 1) << rank;
            if (rank == stopped) continue;
            EXPECT_THAT(end.err, AllOf(HasSubstr(name), HasSubstr("4 s"), ContainsRegex(kWaited)));
        }
        expect_waiting(stopped_of_merged(), stopped, 3);
        fs::remove(folder_ / "merged.sqlite");
    }
}

// In groups of two, ranks also wait for a rank that waits for the stopped one, which is not at fault.
TEST_P(ProcessFailuresOver, ARankThatWaitsForTheStoppedOneIsNotBlamed) {
    ProcessRun run(kRanks,
                   job({"--run.timeout=4", "--fsdp.sharding_strategy=HYBRID_SHARD", "--fsdp.shard_group=2"}));
    run.start_all();
    run.await_step();
    await_steps_in_part(3);
    run.signal(3, SIGSTOP);
    EXPECT_TRUE(within(kSoon, [&] { return run.ended(0) && run.ended(1) && run.ended(2); }));
    run.signal(3, SIGCONT);
    const auto ends = run.ends(kSoon);
    for (const int rank : {0, 1, 2}) {
        EXPECT_EQ(ends.at(rank).status, 1) << rank;
        EXPECT_THAT(ends.at(rank).err,
                    AllOf(HasSubstr("rank 3 (process "), HasSubstr("4 s"), ContainsRegex(kWaited)));
    }
    const Json stopped = stopped_of_merged();
    EXPECT_EQ(stopped.at("rank"), 3);
    EXPECT_EQ(stopped.at("lost"), true);
}

// The others see a collective that does not match theirs, and end immediately, whatever run.timeout is.
TEST_P(ProcessFailuresOver, ARankThatSkipsACollectiveIsNamed) {
    ProcessRun run(kRanks, astray("skip", 2, 100));
    run.start_all();
    for (const auto& [rank, end] : run.ends(kSoon)) {
        EXPECT_EQ(end.status, 1) << rank;
        EXPECT_THAT(end.err, AllOf(HasSubstr("rank 2 "), HasSubstr("number 100 of communicator 0"),
                                   ContainsRegex("step [0-9]+, unit [0-9]+ \"")))
            << rank;
    }
    EXPECT_EQ(stopped_of_merged().at("rank"), 2);
}

// The rank is alive and answers, so only the collectives show that it hangs: in a step, where others wait for
// ranks that wait for it, and in a collective that it has begun. Its process is ended nevertheless.
TEST_P(ProcessFailuresOver, ARankThatHangsIsNamedAndEnded) {
    for (const std::string how : {"sleep", "stall"}) {
        SCOPED_TRACE(how);
        ProcessRun run(kRanks, astray(how, 3, 300,
                                      {"--run.timeout=4", "--fsdp.sharding_strategy=HYBRID_SHARD",
                                       "--fsdp.shard_group=2", "--run.overwrite=true"}));
        run.start_all();
        const auto ends = run.ends(kSoon);
        // If a rank's collectives hang, others may wait for it in one that it has begun, or in the next.
        const std::string fault = how == "sleep" ? "has not begun " : "(has not finished|has not begun) ";
        for (const auto& [rank, end] : ends) {
            EXPECT_EQ(end.status, 1) << rank;
            EXPECT_THAT(end.err, AllOf(ContainsRegex("rank 3 \\(process [0-9]+ on host [^)]+\\) " + fault),
                                       HasSubstr("4 s of run.timeout")))
                << rank;
        }
        for (const int rank : {0, 1, 2}) EXPECT_THAT(ends.at(rank).err, ContainsRegex(kWaited)) << rank;
        EXPECT_THAT(ends.at(3).err, HasSubstr("did not exit within"));
        const Json stopped = stopped_of_merged();
        EXPECT_EQ(stopped.at("rank"), 3);
        EXPECT_EQ(stopped.at("lost"), false);
        fs::remove(folder_ / "merged.sqlite");
    }
}

TEST_F(ProcessFailures, NoMemoryOnOneRankEndsAll) {
    ProcessRun run(kRanks, job());
    for (const int rank : {0, 1, 2}) run.start(rank);
    run.start(3, {"--run.memory_limit=100000"});
    for (const auto& [rank, end] : run.ends(kSoon)) {
        EXPECT_EQ(end.status, 1) << rank;
        EXPECT_THAT(end.err, AllOf(HasSubstr("rank 3"), HasSubstr("out of memory"))) << rank;
    }
    EXPECT_EQ(stopped_of_merged().at("rank"), 3);
}

TEST_F(ProcessFailures, ALossThatIsNotFiniteEndsAll) {
    ProcessRun run(kRanks, job({"--optimizer.lr=1000"}));
    run.start_all();
    for (const auto& [rank, end] : run.ends(kSoon)) {
        EXPECT_EQ(end.status, 1) << rank;
        EXPECT_THAT(end.err, AllOf(HasSubstr("step "), HasSubstr("not finite"))) << rank;
        // The advice is printed once, by the rank that sums the losses.
        EXPECT_EQ(end.err.find("lower optimizer.lr") != std::string::npos, rank == 0) << rank;
    }
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(trace_tool({"info", part(rank)}).status, 0);
}

TEST_F(ProcessFailures, AJobThatOneRankCannotReadEndsAll) {
    ProcessRun run(kRanks, job());
    for (const int rank : {0, 1, 3}) run.start(rank);
    run.start(2, {"--model.width=none"});
    const auto ends = run.ends(kSoon);
    for (const auto& [rank, end] : ends) EXPECT_EQ(end.status, 2) << rank;
    EXPECT_THAT(ends.at(0).err, AllOf(HasSubstr("rank 2 on "), HasSubstr("model.width")));
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(fs::exists(part(rank)));
}

TEST_F(ProcessFailures, RanksOfDifferentJobsDoNotTrainTogether) {
    for (const char* key : {"optimizer.lr", "optimizer.weight_decay"}) {
        ProcessRun run(2, job({"--run.steps=3", "--run.timeout=30"}));
        run.start(0);
        run.start(1, {std::string("--") + key + "=0.25"});
        const auto ends = run.ends(kSoon);
        for (const auto& [rank, end] : ends) EXPECT_EQ(end.status, 2) << key << rank << end.err;
        EXPECT_THAT(ends.at(0).err,
                    AllOf(HasSubstr("rank 1 on "), HasSubstr(std::string(key) + " = 0.25, and "),
                          HasSubstr("on rank 0; give all ranks the same job")));
        for (const int rank : {0, 1}) EXPECT_FALSE(fs::exists(part(rank)));
    }
}

// Without SHARDSCOPE_JOB_TOKEN a job under torchrun has no secret; rank 0 listens for every host here.
TEST_F(ProcessFailures, ATokenThatStrangersMayGuessIsSaidOnce) {
    Words command = job({"--run.steps=2"});
    command.insert(command.begin(), {"env", "-u", "SHARDSCOPE_JOB_TOKEN", "MASTER_ADDR=0.0.0.0"});
    ProcessRun run(2, command);
    run.start_all();
    const auto ends = run.ends(kSoon);
    for (const auto& [rank, end] : ends) EXPECT_EQ(end.status, 0) << rank << end.err;
    EXPECT_THAT(ends.at(0).err, ContainsRegex("note: whoever can reach port [0-9]+ of 0.0.0.0 may guess"));
    EXPECT_EQ(ends.at(1).err, "");
}

TEST_F(ProcessFailures, ATraceThatExistsIsKept) {
    write_file(part(1), "mine");
    ProcessRun run(kRanks, job());
    run.start_all();
    const auto ends = run.ends(kSoon);
    for (const auto& [rank, end] : ends) EXPECT_EQ(end.status, 2) << rank;
    EXPECT_THAT(ends.at(0).err, AllOf(HasSubstr("rank 1 on "), HasSubstr(part(1))));
    EXPECT_EQ(read_file(part(1)), "mine");
    for (const int rank : {0, 2, 3}) EXPECT_FALSE(fs::exists(part(rank))) << rank;
}

TEST_F(ProcessFailures, AStrangerIsRejectedAndTheJobContinues) {
    ProcessRun run(
        2, {train_binary(), sample("mlp.toml"), "--model.width=64", "--run.steps=3", "--format", "json"});
    run.start(0, {"--run.timeout=100"});
    run.start_stranger(1, {"--run.timeout=3"});
    EXPECT_TRUE(within(kSoon, [&] { return run.ended(-1); }));
    EXPECT_FALSE(run.ended(0));
    run.start(1, {"--run.timeout=100"});
    const auto ends = run.ends(kSoon);
    EXPECT_EQ(ends.at(0).status, 0) << ends.at(0).err;
    EXPECT_EQ(ends.at(1).status, 0) << ends.at(1).err;
    EXPECT_EQ(Json::parse(ends.at(0).out).at("losses").size(), 3u);
    EXPECT_EQ(ends.at(-1).status, 1);
    EXPECT_THAT(ends.at(-1).err,
                AllOf(HasSubstr("rank 1 did not find rank 0"), HasSubstr("no process of this job answers")));
}

TEST_F(ProcessFailures, ARankThatDoesNotJoinIsNamed) {
    ProcessRun run(kRanks, job({"--run.timeout=3"}));
    for (const int rank : {0, 1, 3}) run.start(rank);
    for (const auto& [rank, end] : run.ends(kSoon)) {
        EXPECT_EQ(end.status, 1) << rank;
        EXPECT_THAT(end.err, AllOf(HasSubstr("rank 2"), HasSubstr("3 s"))) << rank;
    }
}

// mpirun ends the others a second after one was killed; they report before that.
TEST_F(ProcessFailures, AKilledRankUnderMpirunIsNamedByAll) {
#ifndef SHARDSCOPE_HAS_MPI
    GTEST_SKIP() << "built without MPI";
#endif
    if (std::system("command -v mpirun > /dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun is installed";
    Words words = {"timeout", "100", "mpirun", "--oversubscribe", "--bind-to", "none", "-np", "4"};
    const Words all = job();
    words.insert(words.end(), all.begin(), all.end());
    std::string command = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec";
    for (const std::string& word : words) command += " '" + word + "'";
    const std::string err = folder_ / "err";
    auto outcome = std::async(std::launch::async, [&] {
        return run_command({"sh", "-c", command + " 2>'" + err + "'"});
    });
    EXPECT_TRUE(within(60, [&] { return read_file(err).find("step 1/") != std::string::npos; }));
    await_steps_in_part(2);
    const pid_t process = process_with("OMPI_COMM_WORLD_RANK=2", trace());
    ASSERT_GT(process, 0);
    ::kill(process, SIGKILL);
    EXPECT_NE(outcome.get().status, 0);
    const std::string said = read_file(err);
    EXPECT_THAT(said, ContainsRegex("rank 2 \\(process [0-9]+ on host [^)]+\\) (has ended|is lost in )"));
    for (const int rank : {0, 1, 3})
        EXPECT_THAT(said, ContainsRegex("rank " + std::to_string(rank) + " " + kWaited));
    expect_waiting(stopped_of_merged(), 2, 3);
}

// --- stopping well ---------------------------------------------------------------------------------------

TEST_F(ProcessFailures, ASignalToOneRankStopsAllAfterTheSameStep) {
    ProcessRun run(kRanks, job({"--format", "json"}));
    run.start_all();
    run.await_step();
    run.signal(3, SIGTERM);
    const auto ends = run.ends(kSoon);
    for (const auto& [rank, end] : ends) EXPECT_EQ(end.status, 128 + SIGTERM) << rank << end.err;
    const auto steps = Json::parse(ends.at(0).out).at("stopped_at").get<std::int64_t>();
    EXPECT_THAT(ends.at(0).err,
                HasSubstr("stopped by a signal to another rank after step " + std::to_string(steps) + " of"));
    EXPECT_EQ(trace_tool({"check", trace()}).status, 0);
    EXPECT_EQ(number(trace(),
                     "SELECT count(*) FROM (SELECT rank FROM SHARD_STEPS GROUP BY rank HAVING "
                     "max(step) = " +
                         std::to_string(steps - 1) + ")"),
              kRanks);
}

TEST_F(ProcessFailures, CtrlCToTheParentStopsAllAfterTheSameStep) {
    Words words = job({"--run.processes=4"});
    std::string command = "exec";
    for (const std::string& word : words) command += " '" + word + "'";
    const std::string err = folder_ / "err";
    const Outcome outcome =
        run_command({"sh", "-c",
                     "(" + command + ") 2>'" + err + "' & p=$!; until grep -q 'step 1/' '" + err +
                         "'; do sleep 0.05; done; kill -INT $p; wait $p"});
    EXPECT_EQ(outcome.status, 128 + SIGINT);
    EXPECT_THAT(read_file(err), HasSubstr("stopped by SIGINT after step "));
    EXPECT_EQ(trace_tool({"check", trace()}).status, 0);
    EXPECT_EQ(number(trace(),
                     "SELECT count(DISTINCT steps) FROM (SELECT max(step) AS steps FROM SHARD_STEPS "
                     "GROUP BY rank)"),
              1);
}

TEST_F(ProcessFailures, AKilledRankIsReportedByTheParent) {
    Words words = job({"--run.processes=4"});
    std::string command = "exec";
    for (const std::string& word : words) command += " '" + word + "'";
    const std::string err = folder_ / "err";
    // The parent's second child is rank 1.
    const Outcome outcome = run_command(
        {"sh", "-c",
         "(" + command + ") 2>'" + err + "' & p=$!; until grep -q 'step 1/' '" + err +
             "'; do sleep 0.05; done; set -- $(cat /proc/$p/task/$p/children); kill -KILL $2; wait $p"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(read_file(err), AllOf(HasSubstr("rank 1 was ended by signal 9 (Killed)"),
                                      HasSubstr("rank 1 (process "), ContainsRegex(kGone)));
}

// Runs the parent in the background with standard error in `err`; `then` sees it as $p and its children as $1
// to $4. Exits with the parent's status, or with 99 if a process of the job is left.
std::string with_parent(const Words& words, const std::string& err, const std::string& then) {
    std::string command = "exec";
    for (const std::string& word : words) command += " '" + word + "'";
    return "(" + command + ") 2>'" + err + "' & p=$!; until grep -q 'step 1/' '" + err +
           "'; do sleep 0.05; done; set -- $(cat /proc/$p/task/$p/children); " + then +
           "; wait $p; status=$?; for each; do kill -0 $each 2>/dev/null && kill -9 $each && status=99; "
           "done; "
           "exit $status";
}

// Waits for run.timeout and then for the parent's additional time, for rank 0 and for another rank: no job
// may hang forever.
TEST_F(ProcessFailures, AStoppedRankIsKilledByTheParent) {
    for (const char* stopped : {"$1", "$3"}) {
        const std::string err = folder_ / "err";
        fs::remove(err);
        const Outcome outcome =
            run_command({"timeout", "120", "sh", "-c",
                         with_parent(job({"--run.processes=3", "--run.timeout=3", "--overwrite"}), err,
                                     std::string("kill -STOP ") + stopped)});
        EXPECT_EQ(outcome.status, 1) << read_file(err);
        EXPECT_THAT(read_file(err), HasSubstr("is stopped and cannot end on its own; it is killed"));
    }
}

TEST_F(ProcessFailures, AfterTwoSignalsTheParentLeavesNoStoppedRank) {
    const std::string err = folder_ / "err";
    const Outcome outcome = run_command(
        {"timeout", "120", "sh", "-c",
         with_parent(job({"--run.processes=3"}), err, "kill -STOP $2; kill $p; sleep 1; kill $p")});
    EXPECT_EQ(outcome.status, 128 + SIGTERM) << read_file(err);
    EXPECT_THAT(read_file(err), HasSubstr("rank 1 (process "));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
