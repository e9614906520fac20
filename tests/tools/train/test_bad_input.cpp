// Every wrong job and command line ends with status 2 and one sentence that says what, where and what to do;
// nothing is on standard output, and no file is created, changed or left behind.
#include <algorithm>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class BadInput : public ::testing::Test {
  protected:
    BadInput() : trace_(folder_ / "good.sqlite") {
        fs::create_directory(folder_ / "folder");
        job_ = file("job.toml", "[run]\nsteps = 1\nranks = 2\n\n[model]\nwidth = 16\nlayers = 2\n");
        const Outcome good = train({job_, "--trace", trace_});
        EXPECT_EQ(good.status, 0) << good.err;
    }

    std::string file(const std::string& name, const std::string& content) const {
        write_file(folder_ / name, content);
        return folder_ / name;
    }
    std::map<std::string, std::string> files() const {
        std::map<std::string, std::string> all;
        for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
            all[entry.path().string()] =
                entry.is_regular_file() ? read_file(entry.path().string()) : "(folder)";
        return all;
    }
    // Refused with exactly these words.
    void expect_refused_as_is(const Words& words, const std::vector<std::string>& sayings) const {
        SCOPED_TRACE(words.empty() ? "no arguments" : words.back());
        const auto before = files();
        const Outcome outcome = train(words);
        expect_refusal(outcome, sayings);
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
        EXPECT_TRUE(files() == before) << "files were made, changed or removed";
    }
    // Tries the same words with an older valid trace that may be replaced, and with a new one.
    void expect_refused(Words words, const std::vector<std::string>& sayings) const {
        Words fresh = words;
        fresh.insert(fresh.begin(), {"--trace", folder_ / "new.sqlite"});
        expect_refused_as_is(fresh, sayings);
        words.insert(words.begin(), {"--overwrite", "--trace", trace_});
        expect_refused_as_is(words, sayings);
    }
    void expect_job_refused(const std::string& toml, const std::vector<std::string>& sayings) const {
        const std::string path = file("bad.toml", toml);
        expect_refused({path}, sayings);
        fs::remove(path);
    }

    TemporaryFolder folder_;
    std::string trace_, job_;
};

// A terminal would interpret control characters.
TEST_F(BadInput, NamesInSentencesHoldNoControlCharacters) {
    const Outcome outcome = train({folder_ / "no\x1b[31m\xc2\x9b.toml"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("[31m"), Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2\x9b"))));
}

TEST_F(BadInput, InTheJobFileIsNamedWithItsLine) {
    expect_job_refused("[run]\nsteps = 1\n\n[model]\nwidht = 16\n",
                       {"bad.toml:5: ", "widht", "did you mean width"});
    expect_job_refused("[modle]\nwidth = 16\n", {"bad.toml:1: ", "modle", "did you mean model"});
    expect_job_refused("[model]\nwidth = \"16\"\n",
                       {"bad.toml:2: ", "model.width", "an integer", "1 to 65536"});
    expect_job_refused("[run]\nsteps = 1.5\n", {"bad.toml:2: ", "run.steps", "an integer"});
    expect_job_refused("[fsdp]\nlimit_all_gathers = 1\n",
                       {"bad.toml:2: ", "fsdp.limit_all_gathers", "true or false"});
    expect_job_refused("[run]\n\nranks = 257\n", {"bad.toml:3: ", "run.ranks", "257", "1 to 256"});
    expect_job_refused("[model]\nlayers = 0\n", {"bad.toml:2: ", "model.layers", "0 is out of range"});
    expect_job_refused("[parallel]\nmode = \"zero\"\n",
                       {"bad.toml:2: ", "parallel.mode", "\"zero\"", "\"ddp\""});
    expect_job_refused("[run]\nsteps = 1\nsteps = 2\n", {"bad.toml:3: ", "TOML"});
    expect_job_refused("[run]\nsteps = = 1\n", {"bad.toml:2: ", "TOML"});
    expect_job_refused("steps = 1\n", {"bad.toml:1: ", "steps", "[run]"});
    expect_job_refused("[run]\nranks = 4\n[parallel]\nmode = \"none\"\n",
                       {"bad.toml:4: ", "parallel.mode", "run.ranks is 4", "set run.ranks to 1"});
    expect_job_refused("[fsdp]\nwrap = \"module:Conv2d\"\n", {"bad.toml:2: fsdp.wrap", "Conv2d", "Linear"});
    expect_job_refused("[fsdp]\nwrap = \"layers\"\n", {"bad.toml:2: ", "fsdp.wrap", "module:NAME"});
}

TEST_F(BadInput, InTheFilesIsNamed) {
    expect_refused({folder_ / "none.toml"}, {"none.toml", "no such job file", "give"});
    expect_refused({folder_ / "folder"}, {"folder", "give the path"});
    const std::string gpt =
        "[run]\nranks = 2\n[model]\ntype = \"gpt\"\nwidth = 16\nheads = 2\ncontext = 16\n[data]\ntype = "
        "\"text\"\n";
    expect_job_refused(gpt, {"data.path", "needs a path", "set data.path"});
    expect_job_refused(gpt + "path = \"" + (folder_ / "none.txt") + "\"\n",
                       {"bad.toml:", "data.path", "none.txt", "does not exist"});
    const std::string empty = file("empty.txt", "");
    expect_job_refused(gpt + "path = \"" + empty + "\"\n",
                       {"data.path", "empty.txt is empty", "name a text"});
    const std::string little = file("little.txt", "too little");
    expect_job_refused(gpt + "path = \"" + little + "\"\n", {"data.path", "little.txt", "17"});
    expect_job_refused(gpt + "path = \"" + (folder_ / "folder") + "\"\n", {"data.path", "folder"});
}

TEST_F(BadInput, OnTheCommandLineIsNamed) {
    expect_refused({job_, "--model.widht=16"}, {"command line", "widht", "did you mean width"});
    expect_refused({job_, "--model.width=wide"}, {"command line", "model.width", "\"wide\"", "1 to 65536"});
    expect_refused({job_, "--run.ranks=0"}, {"command line", "run.ranks", "0 is out of range"});
    expect_refused({job_, "--run.steps"}, {"--run.steps", "no value"});
    expect_refused({job_, "--parallel.mode=none"}, {"command line", "parallel.mode", "run.ranks is 2"});
    expect_refused({job_, "--fsdp.wrap=module:Conv2d"}, {"command line: fsdp.wrap", "Conv2d", "Linear"});
    expect_refused({job_, "--fsdp.wrap=size:many"}, {"fsdp.wrap", "size:many", "size:N"});
    expect_refused({job_, "--run.device=tpu"}, {"run.device", "\"tpu\"", "cpu", "cuda"});
    expect_refused({job_, "--run.comm=nccl"}, {"run.comm", "GPUs", "run.device"});
    expect_refused({job_, "--precision.tf32=true"}, {"precision.tf32", "run.device"});
    expect_refused({job_, "--format", "xml"}, {"--format", "xml", "json", "--help"});
    expect_refused({job_, "--colour"}, {"--colour", "--help"});
    expect_refused({job_, "more"}, {"more", "--help"});
    expect_refused({}, {"JOB.toml", "--help"});
    expect_refused_as_is({}, {"JOB.toml", "--help"});
    expect_refused_as_is({job_, "--trace"}, {"--trace", "--help"});
}

TEST_F(BadInput, ImpossibleOutputsAreNamed) {
    expect_refused_as_is({job_, "--trace", trace_}, {"good.sqlite", "exists", "--overwrite"});
    expect_refused_as_is({job_, "--run.trace=" + trace_}, {"good.sqlite", "exists", "--overwrite"});
    expect_refused_as_is({job_, "--overwrite", "--trace", folder_ / "folder"},
                         {"folder", "is a folder", "file"});
    expect_refused_as_is({job_, "--trace", folder_ / "none/run.sqlite"}, {"run.sqlite", "no folder", "none"});
    expect_refused_as_is({job_, "--trace", job_ + "/run.sqlite"}, {"run.sqlite", "job.toml"});
    // Files cannot be created there, not even by root.
    expect_refused_as_is({job_, "--trace", "/proc/run.sqlite"}, {"/proc/run.sqlite"});
    if (geteuid() != 0) {
        fs::permissions(folder_ / "folder", fs::perms::owner_read | fs::perms::owner_exec);
        expect_refused_as_is({job_, "--trace", folder_ / "folder/run.sqlite"}, {"run.sqlite"});
        fs::permissions(folder_ / "folder", fs::perms::owner_all);
    }
}

// A failure of the work, not of the command line: the same words are valid on a machine with a GPU.
TEST_F(BadInput, AMissingGpuIsReported) {
    if (fs::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU";
    const auto before = files();
    const Outcome outcome = train({job_, "--run.device=cuda", "--trace", folder_ / "new.sqlite"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("shardscope-train: run.device = \"cuda\": "));
    EXPECT_THAT(outcome.err, HasSubstr("or use run.device = \"cpu\""));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(files() == before) << "a trace was begun";
}

TEST_F(BadInput, AFileThatIsNotATraceIsNotReplacedWithoutOverwrite) {
    const std::string letter = file("letter.txt", "Dear reader,\n");
    expect_refused_as_is({job_, "--trace", letter}, {"letter.txt", "exists"});
}

TEST_F(BadInput, ADryRunTouchesNoTrace) {
    const auto before = files();
    EXPECT_EQ(train({job_, "--dry-run", "--overwrite", "--trace", trace_}).status, 0);
    EXPECT_EQ(train({job_, "--dry-run", "--trace", folder_ / "new.sqlite"}).status, 0);
    EXPECT_TRUE(files() == before);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
