// Checkpoints of ranks that are processes, saved and continued by processes or threads.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSaved = 5, kAll = 8, kBatch = 12;  // steps; samples of all ranks together

// Layers whose 30 * 30 weights and 30 biases are not divisible by 4 ranks, with an optimizer that keeps
// state.
class ProcessCheckpoints : public ::testing::Test {
  protected:
    Words job(int steps, const Words& more) const {
        Words words = {sample("mlp.toml"),       "--run.steps=" + std::to_string(steps),
                       "--model.width=30",       "--model.layers=4",
                       "--optimizer.type=adamw", "--optimizer.lr=0.01"};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    static Words as_processes(int ranks) {
        return {"--run.processes=" + std::to_string(ranks), "--data.batch=" + std::to_string(kBatch / ranks)};
    }
    static Words as_threads(int ranks) {
        return {"--run.ranks=" + std::to_string(ranks), "--data.batch=" + std::to_string(kBatch / ranks)};
    }
    Words job(int steps, Words ranks, const Words& more) const {
        ranks.insert(ranks.end(), more.begin(), more.end());
        return job(steps, ranks);
    }
    Json losses(int steps, const Words& ranks, const Words& more) const {
        return train_json(job(steps, ranks, more)).at("losses");
    }
    std::string save() const { return folder_ / "save"; }

    TemporaryFolder folder_;
};

// The largest relative difference between the later losses and those of the uninterrupted run.
double difference(const Json& further, const Json& whole) {
    EXPECT_EQ(further.size(), std::size_t{kAll - kSaved});
    double most = 0;
    for (std::size_t i = 0; i < further.size(); ++i) {
        const double expected = whole.at(kSaved + i).get<double>();
        most = std::max(most, std::abs(further[i].get<double>() / expected - 1));
    }
    return most;
}

Words names_in(const std::string& folder) {
    Words names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

struct Way {
    const char* name;
    Words keys;
};

TEST_F(ProcessCheckpoints, SavedByFourAreContinuedByAnyNumberOfProcessesAndThreads) {
    const Way ways[] = {
        {"sharded", {}},
        {"full", {"--checkpoint.format=full"}},
        {"dcp", {"--checkpoint.format=dcp"}},
        {"hybrid", {"--fsdp.sharding_strategy=HYBRID_SHARD", "--fsdp.shard_group=2"}},
        {"ddp", {"--parallel.mode=ddp"}},
    };
    const Json whole = losses(kAll, as_processes(4), {});
    const Words load = {"--checkpoint.load=" + save()};
    for (const Way& way : ways) {
        SCOPED_TRACE(way.name);
        fs::remove_all(save());
        const Json way_whole = losses(kAll, as_processes(4), way.keys);
        Words saving = way.keys;
        saving.push_back("--checkpoint.save=" + save());
        losses(kSaved, as_processes(4), saving);

        Words same = way.keys;
        same.push_back(load.front());
        EXPECT_EQ(difference(losses(kAll, as_processes(4), same), way_whole), 0) << "the same sums";
        // The same with other numbers of ranks, always with FULL_SHARD.
        for (const int ranks : {2, 3}) {
            EXPECT_LT(difference(losses(kAll, as_processes(ranks), load), whole), 1e-6) << ranks;
            EXPECT_LT(difference(losses(kAll, as_threads(ranks), load), whole), 1e-6) << ranks << " threads";
        }
        EXPECT_LT(difference(losses(kAll, as_threads(1), load), whole), 1e-6);
    }
}

TEST_F(ProcessCheckpoints, SavedByThreadsAreContinuedByProcesses) {
    const Json whole = losses(kAll, as_threads(4), {});
    losses(kSaved, as_threads(4), {"--checkpoint.save=" + save()});
    const Words load = {"--checkpoint.load=" + save()};
    EXPECT_EQ(difference(losses(kAll, as_processes(4), load), whole), 0) << "sums in the order of ranks";
    EXPECT_LT(difference(losses(kAll, as_processes(2), load), whole), 1e-6);
}

// Every rank's part, and the sum, are in the files as one process writes them.
TEST_F(ProcessCheckpoints, FilesAreThoseOfThreads) {
    for (const char* format : {"sharded", "full"}) {
        SCOPED_TRACE(format);
        const std::string key = "--checkpoint.format=" + std::string(format);
        fs::remove_all(save());
        losses(kSaved, as_threads(4), {key, "--checkpoint.save=" + save()});
        fs::rename(save(), folder_ / format);
        losses(kSaved, as_processes(4), {key, "--checkpoint.save=" + save()});
        int files = 0;
        for (const auto& entry : fs::directory_iterator(save() + "/step-5")) {
            const std::string name = entry.path().filename();
            if (!name.ends_with(".bin")) continue;
            ++files;
            EXPECT_EQ(read_file(entry.path()), read_file(folder_ / format + "/step-5/" + name)) << name;
        }
        EXPECT_EQ(files, key.ends_with("full") ? 1 : 4);
    }
}

// The error is one sentence, whichever rank finds the damage: here only rank 2 reads the damaged bytes.
TEST_F(ProcessCheckpoints, APieceThatOneRankFindsDamagedIsRefusedByAll) {
    losses(1, as_processes(4), {"--checkpoint.save=" + save()});
    const std::string file = save() + "/step-1/rank-00002.bin";
    std::string bytes = read_file(file);
    bytes[8] = static_cast<char>(bytes[8] ^ 4);
    write_file(file, bytes);
    const Outcome outcome = train(job(2, as_processes(4), {"--checkpoint.load=" + save()}));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("rank 2 on "), HasSubstr("rank-00002.bin: is damaged"),
                                   HasSubstr("load another checkpoint")));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

// Starts the two processes of a job as torchrun does, each in its own working folder, a and b. `second`: the
// command that runs the script of rank 1; `first_of_all`: what that script does first.
Outcome as_two(const TemporaryFolder& folder, const Words& arguments, const std::string& second = "sh",
               const std::string& first_of_all = ":") {
    std::string command = "exec '" + train_binary() + "'";
    for (const std::string& word : arguments) command += " '" + word + "'";
    fs::create_directories(folder / "a");
    fs::create_directories(folder / "b");
    write_file(folder / "rank1.sh", first_of_all + " && cd b && RANK=1 " + command + "\n");
    const std::string port = std::to_string(20000 + ::getpid() % 10000);
    return run_command({"sh", "-c",
                        "cd '" + folder.path() +
                            "' && export WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 "
                            "MASTER_PORT=" +
                            port + "; " + second + " rank1.sh >out 2>err & (cd a && RANK=0 " + command +
                            "); first=$?; wait $!; second=$?; cat out err; "
                            "[ $first = $second ] && exit $first; exit 99"});
}

TEST_F(ProcessCheckpoints, AFolderThatIsNotSharedIsRefusedByAllBeforeTheFirstStep) {
    fs::create_directories(folder_ / "b/save");
    const Outcome outcome = as_two(folder_, job(2, {"--data.batch=6", "--checkpoint.save=save"}));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("save: what rank 1 on "), HasSubstr(" is not seen by rank 0 on "),
                      HasSubstr("checkpoint.save must be on a file system that all hosts share")));
    EXPECT_TRUE(fs::is_empty(folder_ / "b/save"));
}

TEST_F(ProcessCheckpoints, HostsMayLoadFromCopiesOfOneCheckpointOnly) {
    const Words two = {"--data.batch=6", "--run.ranks=2"};
    const Json whole = losses(kAll, two, {});
    losses(kSaved, two, {"--checkpoint.save=" + (folder_ / "a/save")});
    fs::create_directories(folder_ / "b");
    fs::copy(folder_ / "a/save", folder_ / "b/save", fs::copy_options::recursive);
    const Words loading = job(kAll, {"--data.batch=6", "--checkpoint.load=save", "--format", "json"});
    const Outcome same = as_two(folder_, loading);
    ASSERT_EQ(same.status, 0) << same.err << same.out;
    EXPECT_LT(difference(Json::parse(same.out).at("losses"), whole), 1e-6);

    fs::remove_all(folder_ / "b/save");
    losses(kSaved, two, {"--run.seed=9", "--checkpoint.save=" + (folder_ / "b/save")});
    const Outcome other = as_two(folder_, loading);
    EXPECT_EQ(other.status, 2);
    EXPECT_THAT(other.err, AllOf(HasSubstr("save/step-5/manifest.json: rank 1 on "),
                                 HasSubstr("must name the same checkpoint on all hosts")));
}

// A host is simulated by a name and mounts of its own.
const char* const kOtherHost = "unshare --mount --uts sh";

bool makes_hosts() {
    return run_command({"unshare", "--mount", "--uts", "true"}).status == 0;
}

TEST_F(ProcessCheckpoints, TwoHostsWriteOneFileByCopies) {
    if (!makes_hosts()) GTEST_SKIP() << "no namespaces can be made here";
    const Words full = {"--checkpoint.format=full", "--data.batch=6"};
    Words threads = full;
    threads.insert(threads.end(), {"--run.ranks=2", "--checkpoint.save=" + (folder_ / "threads")});
    train_json(job(kSaved, threads));
    Words hosts = full;
    hosts.push_back("--checkpoint.save=" + save());
    const Outcome outcome = as_two(folder_, job(kSaved, hosts), kOtherHost, "hostname node-b");
    ASSERT_EQ(outcome.status, 0) << outcome.err << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("2 processes on 2 hosts"));
    EXPECT_EQ(names_in(save() + "/step-5"), (Words{"full.bin", "manifest.json"}));
    EXPECT_EQ(read_file(save() + "/step-5/full.bin"), read_file(folder_ / "threads/step-5/full.bin"));
}

TEST_F(ProcessCheckpoints, AHostWithItsOwnDiskIsNamed) {
    if (!makes_hosts()) GTEST_SKIP() << "no namespaces can be made here";
    fs::create_directories(save());
    const Outcome outcome = as_two(folder_, job(2, {"--data.batch=6", "--checkpoint.save=" + save()}),
                                   kOtherHost, "hostname node-b && mount -t tmpfs none '" + save() + "'");
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr(save() + ": what rank 1 on node-b writes there is not seen by rank 0 on "),
                      HasSubstr("checkpoint.save must be on a file system that all hosts share")));
}

// The disk is full for all files, or only for those of later ranks: the run continues, and its status shows
// it.
TEST_F(ProcessCheckpoints, ASaveThatFailsIsTheFailureOfAll) {
    Words words = job(4, as_processes(3), {"--checkpoint.every=2", "--checkpoint.save=" + save()});
    std::string command = "ulimit -f 8; '" + train_binary() + "'";  // 8 blocks of 512 bytes
    for (const std::string& word : words) command += " '" + word + "'";
    const Outcome outcome = run_command({"sh", "-c", "trap '' XFSZ; " + command});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("warning: the checkpoint of step 2 could not be saved: rank 0 on "),
                      HasSubstr("the checkpoint of step 4 could not be saved"), HasSubstr("File too large")));
    EXPECT_THAT(outcome.out, HasSubstr("Loss: first"));
    EXPECT_EQ(names_in(save()), Words{".lock"});
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
