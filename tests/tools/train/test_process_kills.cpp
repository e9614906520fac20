// Runs that save after every step are killed at random moments: one process, all of them or their parent. The
// checkpoints that are left can always be loaded and continued, bit for bit.
#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;

#ifndef SHARDSCOPE_KILLS
#define SHARDSCOPE_KILLS 6
#endif
constexpr int kKills = SHARDSCOPE_KILLS;
constexpr int kRanks = 3;

enum class Victim { one_rank, all, parent };

class KilledWhileSaving : public ::testing::Test {
  protected:
    // Children of killed processes are reparented to this process, which waits for them.
    KilledWhileSaving() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
    ~KilledWhileSaving() override {
        for (const pid_t pid : children(::getpid())) ::kill(pid, SIGKILL);
        reap();
        ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    }

    Words job(const Words& more) const {
        Words words = {sample("mlp.toml"),       "--run.processes=" + std::to_string(kRanks),
                       "--model.width=48",       "--model.layers=3",
                       "--optimizer.type=adamw", "--optimizer.lr=0.001"};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }

    // An endless run that continues from the newest checkpoint.
    pid_t start() {
        Words words = job({"--run.steps=1000000", "--checkpoint.every=1", "--checkpoint.save=" + save()});
        if (saved()) words.push_back("--checkpoint.load=" + save());
        words.insert(words.begin(), train_binary());
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        err_ = folder_ / ("err-" + std::to_string(++runs_));
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        pid_t pid = 0;
        EXPECT_EQ(::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        return pid;
    }

    static std::vector<pid_t> children(pid_t pid) {
        const std::string name = std::to_string(pid);
        std::istringstream text(read_file("/proc/" + name + "/task/" + name + "/children"));
        std::vector<pid_t> found;
        for (pid_t child = 0; text >> child;) found.push_back(child);
        return found;
    }

    // Waits until every process that was started is gone.
    static void reap() {
        while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
        }
    }

    void kill(pid_t run, Victim victim) {
        const std::vector<pid_t> ranks = children(run);
        switch (victim) {
            case Victim::one_rank:
                if (!ranks.empty()) ::kill(ranks[random_() % ranks.size()], SIGKILL);
                if (ranks.empty()) ::kill(run, SIGKILL);
                break;
            case Victim::all:
                for (const pid_t pid : ranks) ::kill(pid, SIGKILL);
                [[fallthrough]];
            case Victim::parent:
                ::kill(run, SIGKILL);
        }
        killed_in_a_save_ += unfinished() ? 1 : 0;
        // Without their parent the ranks end on their own, after a last save; the next run starts meanwhile.
        ::waitpid(run, nullptr, 0);
        if (victim != Victim::parent) reap();
    }

    bool unfinished() const {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(save(), error)) {
            if (entry.path().filename().string().ends_with(".tmp")) return true;
        }
        return false;
    }
    std::string save() const { return folder_ / "save"; }
    bool saved() const { return fs::exists(save() + "/latest"); }
    int latest() const { return saved() ? std::stoi(read_file(save() + "/latest").substr(5)) : 0; }

    // Waits until the run has saved, or has ended. An earlier run may be saving, too.
    void await_save(pid_t run) const {
        while (read_file(err_).find("saved ") == std::string::npos) {
            if (ended(run)) FAIL() << "the run has ended: " << read_file(err_);
            ::usleep(1000);
        }
    }
    static bool ended(pid_t run) {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(run), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == run;
    }

    TemporaryFolder folder_;
    std::string err_;  // of the most recently started run
    int runs_ = 0;
    std::mt19937 random_{11};
    int killed_in_a_save_ = 0;
};

// Most kills must hit a save, which is short; each attempt is a job of processes that loads, trains and
// saves.
TEST_F(KilledWhileSaving, TheNewestCheckpointContinuesBitForBit) {
    std::map<int, Json> further;  // the loss of the step after each found checkpoint
    int before = 0;
    for (int round = 0; round < kKills; ++round) {
        SCOPED_TRACE(round);
        const pid_t run = start();
        const bool anywhere = round % 4 == 3;  // also possible before the first step
        if (!anywhere) await_save(run);
        ::usleep(static_cast<useconds_t>(random_() % (anywhere ? 300'000 : 80'000)));
        // Every other kill happens while a save is in progress, the others at a random moment.
        while (round % 2 == 0 && !unfinished() && !ended(run)) ::usleep(200);
        // A process that has not joined yet would wait for a killed one, so all are killed then.
        kill(run, anywhere ? Victim::all : static_cast<Victim>(round % 3));
        const int step = latest();
        ASSERT_GE(step, anywhere ? before : before + 1) << "a save was lost";
        before = step;
        further[step] = train_json(job({"--run.steps=" + std::to_string(step + 1),
                                        "--checkpoint.load=" + save() + "/step-" + std::to_string(step)}))
                            .at("losses");
    }
    const Json whole = train_json(job({"--run.steps=" + std::to_string(before + 1)})).at("losses");
    for (const auto& [step, losses] : further) {
        ASSERT_EQ(losses.size(), 1U);
        EXPECT_EQ(losses[0], whole.at(static_cast<std::size_t>(step))) << step;
    }
    std::printf("%d kills, %d of them with a save under way, up to step %d\n", kKills, killed_in_a_save_,
                before);
    EXPECT_GT(killed_in_a_save_, kKills / 6);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
