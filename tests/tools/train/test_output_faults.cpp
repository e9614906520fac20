// Faults of the file that a training run writes: the disk fills up, the folder is removed or is not writable,
// a second run uses the same path. Training continues, or never starts; the file opens and states what is
// missing.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"
#include "traces/store/error.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int lines(const std::string& text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// An endless run next to the test, large enough to record little; killed when the object goes out of scope.
class EndlessRun {
  public:
    EndlessRun(const std::string& trace, const std::string& err,
               const Words& job = {sample("mlp.toml"), "--model.width=512"})
        : trace_(trace), err_(err), process_(command(trace, job), "/dev/null", err) {}

    pid_t pid() const { return process_.pid(); }
    std::string said() const { return read_file(err_); }

    // Waits until some steps are in its trace.
    void wait_for_steps() const {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (std::chrono::steady_clock::now() < deadline) {
            try {
                if (number(trace_, "SELECT count(*) FROM SHARD_STEPS") > 0) return;
            } catch (const traces::store::StoreError&) {  // not written yet
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        ADD_FAILURE() << "no step after a minute";
    }
    int end(int signal) { return process_.end(signal); }

  private:
    static Words command(const std::string& trace, Words words) {
        words.insert(words.begin(), train_binary());
        for (const char* word : {"--run.steps=100000000", "--trace", trace.c_str(), "--format", "json"})
            words.emplace_back(word);
        return words;
    }

    const std::string trace_, err_;
    RunningCommand process_;
};

// A small file system of the test's own, in a namespace of a shell script: $disk is its mount point; $train,
// $job and $trace_tool are what to run. `keep NAME COMMAND...` runs a command and keeps NAME.out, NAME.err
// and NAME.status.
class SmallDisk : public ::testing::Test {
  protected:
    void SetUp() override {
        const Outcome outcome =
            run_command({"unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", folder_.path()});
        if (outcome.status != 0) GTEST_SKIP() << "no file system can be mounted here: " << outcome.err;
        fs::create_directory(folder_ / "disk");
    }
    void run(const std::string& size, const std::string& script) const {
        const Outcome outcome = run_command({"unshare", "-rm", "sh", "-c",
                                             "folder=$1; disk=$1/disk; train=$2; job=$3; trace_tool=$4\n"
                                             "mount -t tmpfs -o size=$5 tmpfs \"$disk\" || exit 9\n"
                                             "keep() { name=$folder/$1; shift; \"$@\" >\"$name.out\" "
                                             "2>\"$name.err\"; echo $? >\"$name.status\"; }\n" +
                                                 script,
                                             "sh", folder_.path(), train_binary(), sample("mlp.toml"),
                                             trace_tool_binary(), size});
        ASSERT_EQ(outcome.status, 0) << outcome.err;
    }
    std::string out(const std::string& name) const { return read_file(folder_ / (name + ".out")); }
    std::string err(const std::string& name) const { return read_file(folder_ / (name + ".err")); }
    int status(const std::string& name) const { return std::stoi(read_file(folder_ / (name + ".status"))); }

    TemporaryFolder folder_;
};

// The disk is so small that a trace fills it within seconds.
TEST_F(SmallDisk, AFullOneStopsTheTraceButNotTheTraining) {
    // 1500 steps of 4 ranks are some 40 MB; the first commits, one per half second, fit.
    run("20m", R"(
        keep train "$train" "$job" --model.width=64 --run.steps=1500 --format json --trace "$disk/full.sqlite"
        keep check "$trace_tool" check "$disk/full.sqlite"
        keep no_room "$trace_tool" check --finalize "$disk/full.sqlite"
        ls "$disk" > "$folder/left"
        mount -o remount,size=256m "$disk" || exit 8
        keep finalize "$trace_tool" check --finalize "$disk/full.sqlite"
        keep info "$trace_tool" info --format json "$disk/full.sqlite"
        ls "$disk" > "$folder/left_after"
        )");
    EXPECT_EQ(status("train"), 1);
    const Json result = Json::parse(out("train"), nullptr, false);
    ASSERT_FALSE(result.is_discarded()) << out("train");
    EXPECT_EQ(result.at("losses").size(), 1500u);
    EXPECT_THAT(err("train"), AllOf(HasSubstr("warning: the trace is incomplete"), HasSubstr("full.sqlite")));
    EXPECT_THAT(err("train"), ::testing::AnyOf(HasSubstr("no space"), HasSubstr("disk is full")));
    // The fault is reported when it happens, and not again.
    EXPECT_THAT(err("train"), HasSubstr("training continues without it\n"));
    EXPECT_EQ(err("train").find("is incomplete"), err("train").rfind("is incomplete")) << err("train");
    EXPECT_EQ(status("check"), 1);
    EXPECT_THAT(out("check"), HasSubstr("did not end (its disk was full)"));

    // There is no room to finalize it: an error message, and the file is unchanged.
    EXPECT_EQ(status("no_room"), 1);
    EXPECT_THAT(err("no_room"), AllOf(HasSubstr("full.sqlite"), HasSubstr("space")));
    EXPECT_EQ(lines(err("no_room")), 1) << err("no_room");
    EXPECT_THAT(read_file(folder_ / "left"),
                AllOf(HasSubstr("full.sqlite\n"), Not(HasSubstr(".finalizing"))));

    EXPECT_EQ(status("finalize"), 0) << out("finalize") << err("finalize");
    const Json info = Json::parse(out("info"), nullptr, false);
    EXPECT_EQ(info.at("ended"), true);
    EXPECT_EQ(info.at("ranks"), 4);
    EXPECT_EQ(info.at("config").at("finalized"), "after its disk was full");
    EXPECT_EQ(read_file(folder_ / "left_after"), "full.sqlite\n");
}

TEST_F(SmallDisk, AReadOnlyOneIsRefusedBeforeTheTraining) {
    run("8m", R"(
        keep good "$train" "$job" --model.width=64 --run.steps=2 --format json --trace "$disk/good.sqlite"
        mount -o remount,ro "$disk" || exit 8
        keep train "$train" "$job" --model.width=64 --run.steps=2 --format json --trace "$disk/run.sqlite"
        keep check "$trace_tool" check "$disk/good.sqlite"
        )");
    EXPECT_EQ(status("good"), 0) << err("good");
    EXPECT_EQ(status("train"), 2);
    EXPECT_EQ(out("train"), "");
    EXPECT_THAT(err("train"), AllOf(HasSubstr("run.sqlite"), HasSubstr("not writable")));
    EXPECT_EQ(lines(err("train")), 1) << err("train");
    EXPECT_EQ(status("check"), 0) << out("check");  // a finished trace can be read there
}

// A killed run on a disk that has become read-only: the tool reports that it reads a copy, and refuses to
// finalize.
TEST_F(SmallDisk, AReadOnlyOneStillShowsAnUnfinishedRun) {
    run("64m", R"(
        "$train" "$job" --model.width=64 --run.steps=100000000 --trace "$disk/run.sqlite" >/dev/null 2>&1 &
        p=$!
        until "$trace_tool" query "$disk/run.sqlite" "SELECT 'steps' FROM SHARD_STEPS LIMIT 1" 2>&1 | grep -q '^steps'
        do sleep 0.05; done
        kill -9 $p; wait $p
        rm -f "$disk/run.sqlite-shm"
        mount -o remount,ro "$disk" || exit 8
        keep info "$trace_tool" info --format json "$disk/run.sqlite"
        keep finalize "$trace_tool" check --finalize "$disk/run.sqlite"
        )");
    EXPECT_EQ(status("info"), 0) << err("info");
    EXPECT_THAT(err("info"), AllOf(HasSubstr("run.sqlite"), HasSubstr("temporary copy")));
    EXPECT_EQ(lines(err("info")), 1) << err("info");
    EXPECT_EQ(Json::parse(out("info")).at("ended"), false);
    EXPECT_GE(Json::parse(out("info")).at("steps").get<int>(), 1);
    EXPECT_EQ(status("finalize"), 1);
    EXPECT_EQ(lines(err("finalize")), 1) << err("finalize");
    EXPECT_THAT(err("finalize"), AllOf(HasSubstr("cannot be finalized"), HasSubstr("run.sqlite-wal")));
}

TEST(OutputFaults, AFolderThatIsRemovedEndsTheTraceAndNotTheTraining) {
    const TemporaryFolder folder;
    fs::create_directory(folder / "runs");
    EndlessRun run(folder / "runs/run.sqlite", folder / "err");
    run.wait_for_steps();
    fs::remove_all(folder / "runs");
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // longer than the interval of commits
    EXPECT_EQ(run.end(SIGINT), 128 + SIGINT);                      // it was still running, and ends as usual
    EXPECT_THAT(run.said(), AllOf(HasSubstr("warning: the trace is incomplete"), HasSubstr("run.sqlite")));
    EXPECT_FALSE(fs::exists(folder / "runs"));
}

TEST(OutputFaults, ASecondRunOnTheSamePathIsRefused) {
    const TemporaryFolder folder;
    const std::string trace = folder / "run.sqlite";
    EndlessRun first(trace, folder / "err");
    first.wait_for_steps();
    const Words second = {sample("mlp.toml"), "--model.width=64", "--run.steps=2", "--trace", trace};
    Words replacing = second;
    replacing.emplace_back("--overwrite");
    const Outcome exists = train(second), written = train(replacing);
    EXPECT_EQ(exists.status, 2);
    EXPECT_THAT(exists.err, HasSubstr("run.sqlite exists"));
    EXPECT_EQ(written.status, 2);
    EXPECT_THAT(written.err, AllOf(HasSubstr("run.sqlite is being recorded"),
                                   HasSubstr("process " + std::to_string(first.pid()))));
    EXPECT_EQ(lines(written.err), 1) << written.err;

    // The first run was not disturbed.
    EXPECT_EQ(first.end(SIGINT), 128 + SIGINT);
    EXPECT_EQ(trace_tool({"check", trace}).status, 0);
    EXPECT_EQ(train(replacing).status, 0) << "now it may be replaced";
    EXPECT_EQ(trace_json({"info", trace}).at("steps"), 2);
}

// The file of a killed run has no owner.
TEST(OutputFaults, TheFileOfAKilledRunIsReplacedWithOverwrite) {
    const TemporaryFolder folder;
    const std::string trace = folder / "run.sqlite";
    {
        EndlessRun first(trace, folder / "err");
        first.wait_for_steps();
        first.end(SIGKILL);
    }
    EXPECT_EQ(
        train({sample("mlp.toml"), "--model.width=64", "--run.steps=2", "--overwrite", "--trace", trace})
            .status,
        0);
    EXPECT_EQ(trace_json({"info", trace}).at("steps"), 2);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2)
        << "the trace and what the first said";
}

// This applies to files that a run reads, too. With a mapped text the run would die of SIGBUS without a
// message.
TEST(TextFault, ATruncatedTextEndsTheRunWithASentenceAndAWholeTrace) {
    const TemporaryFolder folder;
    const std::string text = folder / "text", trace = folder / "run.sqlite";
    write_file(text, std::string(1 << 20, 'a'));
    EndlessRun run(trace, folder / "err",
                   {sample("gpt.toml"), "--data.path=" + text, "--run.ranks=2", "--model.layers=2"});
    run.wait_for_steps();
    fs::resize_file(text, 0);
    EXPECT_EQ(run.end(0), 1);  // no signal: it ends on its own
    EXPECT_THAT(run.said(), HasSubstr(text + " was truncated while it was read: it had 1048576 bytes"));
    EXPECT_EQ(trace_tool({"check", trace}).status, 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
