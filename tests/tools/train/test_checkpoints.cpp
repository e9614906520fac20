// Checkpoints as a user sees them: saving, continuing elsewhere, generating text, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The text repeats a sentence with a number that counts up, so that a sample may begin anywhere in it; a
// small GPT has learned it after 300 steps.
class Checkpoints : public ::testing::Test {
  protected:
    Checkpoints() {
        std::string text;
        for (int i = 0; i < 300; ++i) {
            text += "every good boy number " + std::to_string(i) + " does fine and so does every girl\n";
        }
        write_file(folder_ / "text", text);
    }

    Words gpt(const Words& more) const {
        Words words = {sample("gpt.toml"),   "--data.path=" + (folder_ / "text"),
                       "--model.layers=2",   "--model.width=32",
                       "--model.context=32", "--optimizer.lr=0.01"};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    std::string save() const { return folder_ / "save"; }

    TemporaryFolder folder_;
};

TEST_F(Checkpoints, SavedByFourRanksInFullShardAreContinuedByTwoInDdp) {
    const Json whole = train_json(gpt({"--run.steps=8"}));
    train_json(gpt({"--run.steps=5", "--checkpoint.save=" + save()}));
    const Json further = train_json(gpt({"--run.steps=8", "--checkpoint.load=" + save(), "--run.ranks=2",
                                         "--data.batch=4", "--parallel.mode=ddp"}));
    ASSERT_EQ(further.at("losses").size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(further["losses"][i].get<double>() / whole["losses"][5 + i].get<double>(), 1, 1e-6) << i;
    }
}

TEST_F(Checkpoints, AreSavedAtTheGivenInterval) {
    train_json(gpt({"--run.steps=5", "--checkpoint.every=2", "--checkpoint.save=" + save()}));
    EXPECT_EQ(read_file(save() + "/latest"), "step-5\n");
    for (const char* step : {"step-2", "step-4", "step-5"}) {
        EXPECT_EQ(
            train_json(gpt({"--run.steps=6", "--checkpoint.load=" + save() + "/" + step})).at("steps_done"),
            6);
    }
}

TEST_F(Checkpoints, AnotherRunsCheckpointIsNotReplacedWithoutOverwrite) {
    const Words saving = gpt({"--run.steps=1", "--checkpoint.save=" + save()});
    train_json(saving);
    const Outcome again = train(saving);
    EXPECT_EQ(again.status, 2);
    EXPECT_THAT(again.err,
                AllOf(HasSubstr(save()), HasSubstr("checkpoints of another run"), HasSubstr("--overwrite")));
    Words overwriting = saving;
    overwriting.emplace_back("--overwrite");
    EXPECT_EQ(train(overwriting).status, 0);
}

// Trains until the model knows a text by heart: only this shows that training, saving, loading and sampling
// agree.
TEST_F(Checkpoints, GenerateTextThatTheModelHasSeen) {
    for (const Words& vocabulary : {Words{}, Words{"--model.vocabulary=270"}}) {
        Words training =
            gpt({"--run.steps=300", "--data.batch=4", "--overwrite", "--checkpoint.save=" + save()});
        training.insert(training.end(), vocabulary.begin(), vocabulary.end());
        train_json(training);
        Words generating = gpt({"--checkpoint.load=" + save(), "--generate", "every good"});
        generating.insert(generating.end(), vocabulary.begin(), vocabulary.end());
        const Outcome first = train(generating), second = train(generating);
        EXPECT_EQ(first.status, 0) << first.err;
        EXPECT_EQ(first.err, "");
        EXPECT_THAT(first.out, AllOf(StartsWith("every good boy number "),
                                     HasSubstr(" does fine and so does every girl\nevery good boy number ")));
        EXPECT_GE(first.out.size(), 400U);  // 400 tokens of one byte or more
        EXPECT_EQ(first.out, second.out) << "the same seed draws the same text";
    }
}

TEST_F(Checkpoints, AnUntrainedModelGeneratesNothing) {
    const Outcome outcome = train(gpt({"--generate", "every"}));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("set checkpoint.load"));
    const Outcome mlp = train({sample("mlp.toml"), "--generate", "every", "--checkpoint.load=" + save()});
    EXPECT_EQ(mlp.status, 2);
    EXPECT_THAT(mlp.err, HasSubstr("model.type: an mlp cannot continue a text"));
}

TEST_F(Checkpoints, DamagedOnesAreRefusedByName) {
    train_json(gpt({"--run.steps=1", "--checkpoint.save=" + save()}));
    const std::string file = save() + "/step-1/rank-00002.bin";
    std::string bytes = read_file(file);
    bytes[bytes.size() / 2] ^= 4;
    write_file(file, bytes);
    const Outcome outcome = train(gpt({"--run.steps=2", "--checkpoint.load=" + save()}));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("rank-00002.bin"), HasSubstr("damaged")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
