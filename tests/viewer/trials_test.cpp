// Changed settings that are tried on a run: what is read from a line and from an answer, and the program,
// replaced by shell scripts.
#include "viewer/model/trials.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"

namespace shardscope::viewer::model {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using traces::store::Trace;

constexpr const char* kAnswer = R"json({"recorded": {"step_us": 400.0, "peak_bytes": 4096},
 "unmodified": {"peak_bytes": 4096, "step_us": 300.0, "exposed_communication_us": 20.0, "step_error_percent": -25.0},
 "not_known": ["No all_reduce."],
 "rows": [{"row": 1, "settings": {}},
  {"row": 2, "settings": {"fsdp.wrap": "root"}, "peak_bytes": 8192, "step_us": 250.0,
   "exposed_communication_us": 30.0, "pytorch": {"FSDP2": ["fully_shard(model)"]},
   "job": "[fsdp]\nwrap = \"root\"\n"}]})json";

TEST(Changes, AreReadFromALine) {
    std::string wrong;
    EXPECT_THAT(
        parse_changes(R"(fsdp.wrap = "path:a,b", data.batch=16 ,optimizer.betas = [0.9, 0.95])", wrong),
        ElementsAre(Pair("fsdp.wrap", "path:a,b"), Pair("data.batch", "16"),
                    Pair("optimizer.betas", "[0.9, 0.95]")));
    EXPECT_EQ(wrong, "");
    for (const char* bad :
         {"data.batch = ... (larger)", "data.batch", "wrap = root", "fsdp.wrap =", "", " , "}) {
        wrong.clear();
        EXPECT_THAT(parse_changes(bad, wrong), IsEmpty()) << bad;
        EXPECT_THAT(wrong, HasSubstr("key = value")) << bad;
    }
}

TEST(Changes, OfAnAdviceThatNamesNoValueHaveOne) {
    Trace trace;
    trace.config = {{"data.batch", "8"}};
    EXPECT_EQ(changes_to_try(R"(data.batch = ... (larger), precision.param = "bf16")", trace),
              "data.batch = 16");
    EXPECT_EQ(changes_to_try(R"(precision.param = "bf16")", trace), "precision.param = bf16")
        << "that it cannot be tried is said";
    EXPECT_EQ(changes_to_try("data.batch = ... (smaller)", trace), "data.batch = 4");
    EXPECT_EQ(changes_to_try("fsdp.wrap = ... (smaller modules)", trace), "");
    EXPECT_EQ(changes_to_try("data.batch = ... (larger)", Trace{}), "");
    EXPECT_EQ(changes_to_try(R"(fsdp.wrap = "module:Block,Embedding")", trace),
              R"(fsdp.wrap = "module:Block,Embedding")");
}

TEST(TrialResultTest, IsReadFromTheAnswer) {
    const TrialResult result = read_trial(kAnswer);
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.before.step_us, 300);
    EXPECT_EQ(result.after.step_us, 250);
    EXPECT_EQ(result.after.exposed_us, 30);
    EXPECT_EQ(result.before.peak_bytes, 4096);
    EXPECT_EQ(result.after.peak_bytes, 8192);
    EXPECT_EQ(result.recorded_step_us, 400);
    EXPECT_EQ(result.off_percent, -25);
    EXPECT_THAT(result.unknown, ElementsAre("No all_reduce."));
    EXPECT_THAT(result.job, HasSubstr("wrap = \"root\""));
    EXPECT_EQ(result.pytorch, "# FSDP2\nfully_shard(model)\n");
}

TEST(TrialResultTest, OfAnythingElseIsASentence) {
    for (const char* bad : {"", "{", "[]", "{}", R"({"rows": [{}, {}]})", R"({"unmodified": 1, "rows": 2})"})
        EXPECT_THAT(read_trial(bad).error, HasSubstr("cannot read")) << bad;
    EXPECT_EQ(
        read_trial(R"({"unmodified": {}, "rows": [{}, {"reason": "fsdp.wrap: no class Block"}]})").error,
        "fsdp.wrap: no class Block.");
}

class TrialsTest : public testing::Test {
  protected:
    TrialsTest() { std::ofstream(run_) << "a trace"; }
    std::string tool(const std::string& script) const {
        const fs::path path = folder_ / "tool";
        std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
        fs::permissions(path, fs::perms::owner_all);
        return path.string();
    }
    std::string answers() const {
        std::ofstream(folder_ / "answer") << kAnswer;
        return tool("echo \"$@\" > " + (folder_ / "words") + "; cat " + (folder_ / "answer"));
    }
    static void finish(Trials& trials) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!trials.poll() && trials.busy() && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        EXPECT_FALSE(trials.busy());
    }
    std::string error(Trials& trials, const std::string& changes = "fsdp.wrap = root") {
        trials.start(trace_, {run_}, changes);
        finish(trials);
        const TrialResult* result = trials.result(*trace_, changes);
        EXPECT_NE(result, nullptr);
        return result == nullptr ? "" : result->error;
    }

    traces::TemporaryFolder folder_;
    const std::string run_ = folder_ / "run.sqlite";
    std::shared_ptr<const Trace> trace_ = std::make_shared<Trace>();
};

TEST_F(TrialsTest, ReplaysTheTraceAndKeepsTheResult) {
    Trials trials(answers());
    EXPECT_EQ(error(trials, R"(fsdp.wrap = "path:a,b", data.batch = 16)"), "");
    std::string words;
    std::getline(std::ifstream(folder_ / "words"), words);
    EXPECT_THAT(words, HasSubstr("plan " + run_ + " --only --format json --write 2 --as "));
    EXPECT_THAT(words, HasSubstr("--fsdp.wrap=path:a,b; --data.batch=16"));
    const TrialResult* kept = trials.result(*trace_, R"(fsdp.wrap = "path:a,b", data.batch = 16)");
    EXPECT_EQ(kept->after.step_us, 250);
    EXPECT_TRUE(trials.is_mine(kept->trace));
    EXPECT_EQ(error(trials, "fsdp.wrap = root"), "");
    EXPECT_NE(trials.result(*trace_, R"(fsdp.wrap = "path:a,b", data.batch = 16)"), nullptr)
        << "both are kept";
    EXPECT_EQ(trials.result(Trace{}, "fsdp.wrap = root"), nullptr) << "of this trace only";
}

TEST_F(TrialsTest, OfATraceThatHasGrownSaySoAndThoseOfAClosedOneGo) {
    Trials trials(answers());
    EXPECT_EQ(error(trials), "");
    const std::shared_ptr<const Trace> grown = std::make_shared<Trace>();
    trials.replaced(trace_, grown);
    EXPECT_EQ(trials.result(*trace_, "fsdp.wrap = root"), nullptr);
    ASSERT_NE(trials.result(*grown, "fsdp.wrap = root"), nullptr);
    EXPECT_TRUE(trials.result(*grown, "fsdp.wrap = root")->earlier);
    trials.forget(*grown);
    EXPECT_EQ(trials.result(*grown, "fsdp.wrap = root"), nullptr);

    Trials slow(tool("sleep 600"));
    slow.start(trace_, {run_}, "fsdp.wrap = root");
    EXPECT_TRUE(slow.runs(*trace_, "fsdp.wrap = root"));
    slow.forget(*trace_);
    EXPECT_FALSE(slow.busy()) << "the work ends with its trace";
}

TEST_F(TrialsTest, SayWhatCannotBeTried) {
    Trials refuses(
        tool("echo 'note' >&2; echo 'shardscope-train: command line: --fsdp.wrap: no Block' >&2; exit 2"));
    EXPECT_EQ(error(refuses), "--fsdp.wrap: no Block.");
    EXPECT_THAT(error(refuses, "faster"), HasSubstr("\"faster\" is not a change"));
    Trials silent(tool("exit 3"));
    EXPECT_EQ(error(silent), "shardscope-train ended with status 3.");
    Trials killed(tool("kill -SEGV $$"));
    EXPECT_EQ(error(killed), "shardscope-train was ended by signal 11.");
    Trials nowhere((folder_ / "no/tool"));
    EXPECT_THAT(error(nowhere), HasSubstr("cannot be started"));
    refuses.start(trace_, {run_, run_}, "fsdp.wrap = root");
    EXPECT_THAT(refuses.result(*trace_, "fsdp.wrap = root")->error, HasSubstr("merge these"));
    fs::remove(run_);
    EXPECT_THAT(error(refuses), HasSubstr("is gone"));
}

TEST_F(TrialsTest, AreCancelled) {
    Trials trials(tool("sleep 600"));
    trials.start(trace_, {run_}, "fsdp.wrap = root");
    EXPECT_THAT(trials.progress(), HasSubstr("replaying the run with fsdp.wrap = root"));
    trials.start(trace_, {run_}, "fsdp.wrap = size:1");
    EXPECT_TRUE(trials.runs(*trace_, "fsdp.wrap = root")) << "one at a time";
    trials.cancel();
    finish(trials);
    EXPECT_EQ(trials.result(*trace_, "fsdp.wrap = root")->error, "The replay was cancelled.");
    EXPECT_EQ(trials.progress(), "");
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::model
