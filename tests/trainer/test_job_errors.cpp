// Every mistake in a job gives one sentence: the place, the key, what is wrong, what to do.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "trainer/job/job.h"
#include "trainer/job/nearest.h"

namespace shardscope::trainer::job {
namespace TEST_FILE {

using testing::AllOf;
using testing::HasSubstr;

// The error, or "no error".
std::string error_of(const std::string& toml, const std::vector<Override>& overrides = {}) {
    try {
        parse_job(toml, "job.toml", overrides);
    } catch (const JobError& error) {
        return error.what();
    }
    return "no error";
}

// A recursive parser would overflow its stack without a message.
TEST(JobErrors, AKeyOfTooManyPartsIsRefusedWithItsLine) {
    std::string dots = "a";
    for (int i = 0; i < 200'000; ++i) dots += ".a";
    const std::string sentence = "a key of more than 32 parts";
    EXPECT_THAT(error_of("[run]\nsteps = 1\n[" + dots + "]\nx = 1"),
                AllOf(HasSubstr("job.toml:3: "), HasSubstr(sentence)));
    EXPECT_THAT(error_of(dots + " = 1"), HasSubstr(sentence));
    EXPECT_THAT(error_of("[data]\npath = \"\"\"\n\\\"\"\"\" \n" + dots + " = 1"),
                AllOf(HasSubstr("job.toml:4: "), HasSubstr(sentence)));
    // A string may end in quotes of its own.
    EXPECT_THAT(error_of("x = {a = \"\"\"s\"\"\"\"\", " + dots + " = 1}"), HasSubstr(sentence));
    // Dots in a string, a comment or a list of numbers do not belong to a key.
    EXPECT_EQ(error_of("[data]\npath = \"" + dots + "\" # " + dots), "no error");
    EXPECT_EQ(error_of("[data]\npath = '" + dots + "\"'"), "no error");
}

struct Mistake {
    std::string toml, sentence;
};

TEST(JobErrors, NameTheLineAndTheNearestRightName) {
    const Mistake mistakes[] = {
        {"[model]\n\nwidht = 3", "job.toml:3: there is no key widht in [model]; did you mean width?"},
        {"[modle]\nwidth = 3", "job.toml:1: there is no section [modle]; did you mean model?"},
        {"[xyzzy]",
         "job.toml:1: there is no section [xyzzy]; the sections are run, model, data, parallel, fsdp, ddp, "
         "train, precision, memory, optimizer, checkpoint, sim"},
        {"[parallel]\nfoobarbaz = 1",
         "job.toml:2: there is no key foobarbaz in [parallel]; its keys are mode, servers, tensor, sequence, "
         "sync_batch_norm, "
         "context, context_exchange, pipeline, schedule, virtual_stages, order, stages, expert"},
        {"[run]\nbatch = 8", "job.toml:2: there is no key batch in [run]; did you mean data.batch?"},
        {"steps = 3", "job.toml:1: the key steps is in no section; write it below a line like [run]"},
        {"run = 3", "job.toml:1: run is a section; write [run] on a line of its own and its keys below it"},
        {"[[run]]\nsteps = 3",
         "job.toml:1: run is a section; write [run] on a line of its own and its keys below it"},
        {"[model]\ntype = 'mpl'",
         "job.toml:2: model.type: \"mpl\" is not known; did you mean mlp? use \"mlp\" or \"gpt\" or "
         "\"llama\" or \"bert\" or \"resnet\" or \"vgg\" or \"vit\""},
        {"[fsdp]\nbackward_prefetch = 'pre'",
         "job.toml:2: fsdp.backward_prefetch: \"pre\" is not known; use \"BACKWARD_PRE\" or "
         "\"BACKWARD_POST\" or "
         "\"NONE\""},
    };
    for (const Mistake& mistake : mistakes) EXPECT_EQ(error_of(mistake.toml), mistake.sentence);
}

TEST(JobErrors, SayWhichTypeWasExpectedAndWhichWasFound) {
    const Mistake mistakes[] = {
        {"[run]\nsteps = 'ten'",
         "job.toml:2: run.steps: expected an integer, found the text \"ten\"; use 1 to 1000000000"},
        {"[run]\nsteps = 2.5",
         "job.toml:2: run.steps: expected an integer, found the number 2.5; use 1 to 1000000000"},
        {"[run]\noverwrite = 1",
         "job.toml:2: run.overwrite: expected true or false, found the integer 1; use true or false"},
        {"[run]\ntrace = true", "job.toml:2: run.trace: expected a text, found true; use a text"},
        {"[optimizer]\nlr = []", "job.toml:2: optimizer.lr: expected a number, found a list; use 0 to 1000"},
        {"[optimizer.lr]\nx = 1",
         "job.toml:1: optimizer.lr: expected a number, found a table; use 0 to 1000"},
        {"[optimizer]\nbetas = ['a', 1]",
         "job.toml:2: optimizer.betas: expected a list of numbers, found a list with the text \"a\"; use 2 "
         "numbers from 0 to below "
         "1"},
        {"[run]\nseed = 1979-05-27",
         "job.toml:2: run.seed: expected an integer, found a date or time; use 0 to 9007199254740992"},
    };
    for (const Mistake& mistake : mistakes) EXPECT_EQ(error_of(mistake.toml), mistake.sentence);
}

TEST(JobErrors, GiveTheRangeOfANumber) {
    const Mistake mistakes[] = {
        {"[run]\nranks = 0", "job.toml:2: run.ranks: 0 is out of range; use 1 to 65536"},
        {"[run]\nranks = 257",
         "job.toml:2: run.ranks: 257 is out of range; use 1 to 256, or set run.device to \"sim\""},
        {"[run]\nsteps = -1", "job.toml:2: run.steps: -1 is out of range; use 1 to 1000000000"},
        {"[optimizer]\nlr = -0.5", "job.toml:2: optimizer.lr: -0.5 is out of range; use 0 to 1000"},
        {"[optimizer]\nlr = nan", "job.toml:2: optimizer.lr: nan is out of range; use 0 to 1000"},
        {"[optimizer]\nlr = inf", "job.toml:2: optimizer.lr: inf is out of range; use 0 to 1000"},
        {"[optimizer]\nbetas = [0.9, 1]",
         "job.toml:2: optimizer.betas: [0.9, 1] is not allowed; use 2 numbers from 0 to below 1"},
        {"[optimizer]\nbetas = [0.9]",
         "job.toml:2: optimizer.betas: [0.9] is not allowed; use 2 numbers from 0 to below 1"},
    };
    for (const Mistake& mistake : mistakes) EXPECT_EQ(error_of(mistake.toml), mistake.sentence);
}

TEST(JobErrors, NameTheLineOfATomlError) {
    for (const std::string broken :
         {"[run", "[run]\nsteps =", "[run]\nsteps = 1\nsteps = 2", "[run]\n[run]", "\xff\xfe"}) {
        EXPECT_THAT(error_of(broken),
                    ::testing::MatchesRegex("job\\.toml:[12]?3?: not TOML: .*; correct this line"))
            << broken;
    }
}

TEST(JobErrors, StayOnOneLineWhateverTheyQuote) {
    EXPECT_EQ(
        error_of("[parallel]\n\"ab\\ncdefgh\" = 1"),
        "job.toml:2: there is no key ab?cdefgh in [parallel]; its keys are mode, servers, tensor, sequence, "
        "sync_batch_norm, "
        "context, context_exchange, pipeline, schedule, virtual_stages, order, stages, expert");
}

TEST(JobErrors, NameTheOptionOnTheCommandLine) {
    const std::pair<Override, std::string> mistakes[] = {
        {{"model.widht", "3"},
         "command line: --model.widht: there is no key widht in [model]; did you mean width?"},
        {{"modle.width", "3"},
         "command line: --modle.width: there is no section [modle]; did you mean model?"},
        {{"model.width", "wide"}, "command line: model.width: \"wide\" is not an integer; use 1 to 65536"},
        {{"model.width", "1e3"}, "command line: model.width: \"1e3\" is not an integer; use 1 to 65536"},
        {{"model.width", ""}, "command line: model.width: \"\" is not an integer; use 1 to 65536"},
        {{"model.width", "99999999999999999999"},
         "command line: model.width: \"99999999999999999999\" is not an integer; use 1 to 65536"},
        {{"model.width", "0"}, "command line: model.width: 0 is out of range; use 1 to 65536"},
        {{"run.overwrite", "maybe"},
         "command line: run.overwrite: \"maybe\" is not true or false; use true or false"},
        {{"optimizer.betas", "0.9;0.99"},
         "command line: optimizer.betas: \"0.9;0.99\" is not a list of numbers; use 2 numbers from 0 to "
         "below "
         "1"},
    };
    for (const auto& [given, sentence] : mistakes) EXPECT_EQ(error_of("", {given}), sentence);

    std::vector<std::string> arguments = {"job.toml", "--model.width"};
    EXPECT_THROW(take_overrides(arguments), JobError);
    arguments = {"--model.width", "--model.layers=3"};
    EXPECT_THROW(take_overrides(arguments), JobError);
}

TEST(JobErrors, NameTheWrongPartOfAWrapPolicy) {
    const std::string use =
        "; use root, size:N, module:NAME[,NAME], path:PATTERN[,PATTERN] or every:K,NAME[,NAME]";
    const std::pair<std::string, std::string> mistakes[] = {
        {"", "\"\" is not a wrap policy" + use},
        {"Linear", "\"Linear\" is not a wrap policy" + use},
        {"module:", "\"module:\" is not a wrap policy: \"\" is not a class name" + use},
        {"module:Linear,", "\"module:Linear,\" is not a wrap policy: \"\" is not a class name" + use},
        {"module:a b", "\"module:a b\" is not a wrap policy: \"a b\" is not a class name" + use},
        {"path:", "\"path:\" is not a wrap policy: \"\" is not a pattern of a path" + use},
        {"path:blocks..mlp",
         "\"path:blocks..mlp\" is not a wrap policy: \"blocks..mlp\" is not a pattern of a path" + use},
        {"every:Block", "\"every:Block\" is not a wrap policy: \"Block\" is not a positive number" + use},
        {"every:0,Block", "\"every:0,Block\" is not a wrap policy: \"0\" is not a positive number" + use},
        {"every:2", "\"every:2\" is not a wrap policy: no class follows the number" + use},
        {"size:", "\"size:\" is not a wrap policy: \"\" is not a positive number of parameters" + use},
        {"size:0", "\"size:0\" is not a wrap policy: \"0\" is not a positive number of parameters" + use},
        {"size:1e6",
         "\"size:1e6\" is not a wrap policy: \"1e6\" is not a positive number of parameters" + use},
    };
    for (const auto& [wrap, sentence] : mistakes) {
        EXPECT_EQ(error_of("[fsdp]\nwrap = '" + wrap + "'"), "job.toml:2: fsdp.wrap: " + sentence);
        EXPECT_EQ(error_of("", {{"fsdp.wrap", wrap}}), "command line: fsdp.wrap: " + sentence);
    }
}

TEST(JobErrors, NameTheLineOfAUnitThatIsNotOne) {
    const std::string use =
        "; a unit has match (a text such as \"path:blocks.0\") and reshard_after_forward (true or false) or "
        "sharding_strategy";
    const std::pair<std::string, std::string> mistakes[] = {
        {"match = 'path:net.0'",
         "job.toml:1: fsdp.unit: give match and reshard_after_forward, or match and sharding_strategy"},
        {"reshard_after_forward = true",
         "job.toml:1: fsdp.unit: give match and reshard_after_forward, or match and sharding_strategy"},
        {"match = 'path:a'\nreshard_after_forward = true\nsharding_strategy = 'FULL_SHARD'",
         "job.toml:1: fsdp.unit: give match and reshard_after_forward, or match and sharding_strategy"},
        {"match = 'none'\nreshard_after_forward = true",
         "job.toml:2: fsdp.unit: match: none selects no unit; omit the table"},
        {"match = 'oops'\nreshard_after_forward = true",
         "job.toml:2: fsdp.unit: match: \"oops\" is not a selection of modules; use none, "
         "module:NAME[,NAME], "
         "path:PATTERN[,PATTERN] or every:K,NAME[,NAME]"},
        {"match = 3", "job.toml:2: fsdp.unit: match is the integer 3" + use},
        {"match = 'path:a'\nreshard = true", "job.toml:3: fsdp.unit: reshard is true" + use},
        {"match = 'path:a b'\nreshard_after_forward = true",
         "job.toml:2: fsdp.unit: match = \"path:a b\" is not a selection of modules; omit spaces and ="},
        {"match = 'path:a'\nsharding_strategy = 'NO_SHARD'",
         "job.toml:3: fsdp.unit: sharding_strategy = \"NO_SHARD\": a single unit may be FULL_SHARD (freed "
         "after "
         "the forward) or SHARD_GRAD_OP (kept until the backward); the groups are the job's"},
    };
    for (const auto& [unit, sentence] : mistakes) EXPECT_EQ(error_of("[[fsdp.unit]]\n" + unit), sentence);
    EXPECT_EQ(
        error_of("", {{"fsdp.unit", "path:net.0"}}),
        "command line: fsdp.unit: \"path:net.0\" is not a list of units: \"path:net.0\" ends neither in "
        "=true nor in =false; use none, or module:NAME[,NAME], path:PATTERN[,PATTERN] or "
        "every:K,NAME[,NAME], "
        "followed by =true (freed after the forward) or =false (kept until the backward)");
}

TEST(JobErrors, NameTheKeyToChangeIfKeysConflict) {
    const Mistake mistakes[] = {
        {"[fsdp]\nreshard_after_forward = true",
         "job.toml:2: fsdp.reshard_after_forward: only fully_shard, the layout \"fsdp2\", has it; omit the "
         "key, "
         "or choose FULL_SHARD or SHARD_GRAD_OP as fsdp.sharding_strategy"},
        {"[fsdp]\nlayout = 'fsdp2'\nreshard_after_forward = true\nsharding_strategy = 'SHARD_GRAD_OP'",
         "job.toml:3: fsdp.reshard_after_forward: SHARD_GRAD_OP frees nothing after the forward; omit one of "
         "the "
         "two keys"},
        {"[fsdp]\nunit = 'module:Linear=true'\nsharding_strategy = 'NO_SHARD'",
         "job.toml:2: fsdp.unit: NO_SHARD frees no unit; use FULL_SHARD or SHARD_GRAD_OP"},
        {"[run]\nranks = 4\n[parallel]\ntensor = 3",
         "job.toml:4: parallel.tensor: 4 ranks cannot be cut into tensor groups of 3; choose a divisor of "
         "run.ranks"},
        {"[run]\nranks = 4\n[parallel]\nmode = 'none'\ntensor = 2",
         "job.toml:4: parallel.mode: \"none\" trains with one tensor group of 2 ranks, but run.ranks is 4; "
         "set "
         "run.ranks to 2, or parallel.mode to \"fsdp\" or \"ddp\""},
        {"[run]\nranks = 8\n[parallel]\ntensor = 2\npipeline = 3",
         "job.toml:5: parallel.pipeline: 8 ranks in tensor groups of 2 cannot be cut into 3 places of a "
         "pipeline; "
         "the nearest number of places that works is 2"},
        {"[run]\nranks = 4\n[parallel]\nmode = 'none'\npipeline = 2",
         "job.toml:4: parallel.mode: \"none\" trains with one copy of the model on 2 ranks, but run.ranks is "
         "4; set "
         "run.ranks to 2, or parallel.mode to \"fsdp\" or \"ddp\""},
        {"[parallel]\nschedule = 'gpipe'",
         "job.toml:2: parallel.schedule: only a pipeline has a schedule; set parallel.pipeline above 1, or "
         "omit the key"},
        {"[run]\nranks = 2\n[parallel]\npipeline = 2\n[fsdp]\nforward_prefetch = true",
         "job.toml:6: fsdp.forward_prefetch: the schedule of a pipeline says when units are gathered and "
         "freed; omit the key"},
        {"[run]\nranks = 2\n[parallel]\npipeline = 2\n[fsdp]\nbackward_prefetch = 'NONE'",
         "job.toml:6: fsdp.backward_prefetch: the schedule of a pipeline says when units are gathered and "
         "freed; omit the key"},
        {"[run]\nranks = 2\n[parallel]\npipeline = 2\n[fsdp]\nlayout = 'fsdp2'\n[[fsdp.unit]]\nmatch = "
         "'path:net.0'\nreshard_after_forward = false",
         "job.toml:7: fsdp.unit: the schedule of a pipeline says when units are gathered and freed; omit the "
         "key"},
        {"[run]\nranks = 2\n[parallel]\npipeline = 2\n[fsdp]\nlayout = 'fsdp2'\nreshard_after_forward = "
         "'true'",
         "job.toml:7: fsdp.reshard_after_forward: the schedule of a pipeline says when units are gathered "
         "and freed; omit the key"},
        {"[run]\nranks = 2\n[parallel]\npipeline = 2\n[train]\naccumulation_sync = true",
         "job.toml:6: train.accumulation_sync: the stages of a pipeline reduce their gradients once per "
         "step; omit "
         "the key"},
        {"[parallel]\nvirtual_stages = 2",
         "job.toml:2: parallel.virtual_stages: only the places of a pipeline have stages; set "
         "parallel.pipeline "
         "above 1, or omit the key"},
        {"[parallel]\nsequence = true",
         "job.toml:2: parallel.sequence: only the ranks of a tensor group divide the tokens; set "
         "parallel.tensor "
         "above 1, or omit the key"},
        {"[run]\nranks = 4\n[parallel]\nmode = 'none'",
         "job.toml:4: parallel.mode: \"none\" trains with one rank, but run.ranks is 4; set run.ranks to 1, "
         "or "
         "parallel.mode to \"fsdp\" or \"ddp\""},
        {"[model]\ntype = 'gpt'",
         "job.toml:2: data.type: a gpt trains on \"text\"; set data.type to \"text\" and data.path to a file "
         "or "
         "folder"},
        {"[data]\ntype = 'text'\npath = 'x'",
         "job.toml:2: data.type: an mlp trains on \"synthetic\" data; set data.type to \"synthetic\", or "
         "model.type to "
         "\"gpt\""},
        {"[model]\ntype = 'gpt'\n[data]\ntype = 'text'",
         "job.toml:4: data.path: \"text\" data needs a path; set data.path to a file or folder"},
        {"[model]\ntype = 'gpt'\nwidth = 100\nheads = 3\n[data]\ntype = 'text'\npath = 'x'",
         "job.toml:4: model.heads: 3 heads do not divide model.width 100; choose a width that is a multiple "
         "of the "
         "heads"},
    };
    for (const Mistake& mistake : mistakes) EXPECT_EQ(error_of(mistake.toml), mistake.sentence);
    EXPECT_THAT(error_of("[run]\nranks = 4", {{"parallel.mode", "none"}}),
                ::testing::StartsWith("command line: parallel.mode: \"none\" trains with one rank"));
}

class JobFile : public ::testing::Test {
  protected:
    JobFile() {
        std::string pattern = (std::filesystem::temp_directory_path() / "job-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
    }
    ~JobFile() override { std::filesystem::remove_all(folder_); }
    std::string error_of_file(const std::string& path) {
        try {
            load_job(path);
        } catch (const JobError& error) {
            return error.what();
        }
        return "no error";
    }
    std::filesystem::path folder_;
};

TEST_F(JobFile, IsReadFromItsPath) {
    const std::string path = folder_ / "a.toml";
    std::ofstream(path) << "[run]\nsteps = 3\n";
    EXPECT_EQ(load_job(path, {{"run.ranks", "2"}}).run.steps, 3);
    std::ofstream(path) << "[run]\nstep = 3\n";
    EXPECT_EQ(error_of_file(path), path + ":2: there is no key step in [run]; did you mean steps?");
}

TEST_F(JobFile, IsRefusedIfItIsInvalid) {
    const std::string missing = folder_ / "missing.toml";
    EXPECT_EQ(error_of_file(missing), missing + ": there is no such job file; give the path of a .toml file");
    EXPECT_EQ(error_of_file(folder_), folder_.string() + ": this is a folder; give the path of a .toml file");
    const std::string large = folder_ / "large.toml";
    std::ofstream(large) << std::string((1 << 20) + 1, '#');
    EXPECT_EQ(error_of_file(large),
              large + ": larger than 1 MiB, so not a job file; give the path of a .toml file");
}

TEST(Nearest, CountsInsertionsDeletionsReplacementsAndSwaps) {
    EXPECT_EQ(edit_distance("width", "width"), 0);
    EXPECT_EQ(edit_distance("widht", "width"), 1);   // a swap
    EXPECT_EQ(edit_distance("with", "width"), 1);    // an insertion
    EXPECT_EQ(edit_distance("widths", "width"), 1);  // a deletion
    EXPECT_EQ(edit_distance("wedth", "width"), 1);   // a replacement
    EXPECT_EQ(edit_distance("WIDTH", "width"), 0);   // case does not matter
    EXPECT_EQ(edit_distance("", "abc"), 3);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Nearest, OffersNothingThatIsTooFar) {
    const std::string_view names[] = {"steps", "seed", "ranks"};
    EXPECT_EQ(nearest("step", names), "steps");
    EXPECT_EQ(nearest("rnaks", names), "ranks");
    EXPECT_EQ(nearest("entirely", names), "");
    EXPECT_EQ(nearest("", names), "");
    EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::job
