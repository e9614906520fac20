// The same job, sharded in different ways, gives the same losses.
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::HasSubstr;

// The perceptron of the samples, 256 wide, for 4 steps of 32 samples, on any number of ranks.
std::string losses(Words how) {
    how.insert(how.begin(), {sample("mlp.toml"), "--model.width=256", "--run.steps=4", "--format", "json"});
    const Outcome outcome = train(how);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return losses_text(outcome.out);
}

std::vector<double> values(const std::string& text) {
    std::vector<double> all;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, ',');)
        all.push_back(std::strtod(word.c_str(), nullptr));
    return all;
}

TEST(Losses, AreTheSameHoweverTheJobIsSharded) {
    const std::string root = losses({"--fsdp.wrap=root"});
    const std::string per_layer = losses({"--fsdp.wrap=module:Linear"});
    const std::string ddp = losses({"--parallel.mode=ddp", "--ddp.bucket_cap_mb=0.5"});
    const std::string single = losses({"--parallel.mode=none", "--run.ranks=1", "--data.batch=32"});
    ASSERT_EQ(values(root).size(), 4u) << root;
    // Every engine sums over ranks in rank order, so the bits are the same.
    EXPECT_EQ(per_layer, root);
    EXPECT_EQ(ddp, root);
    // One batch of 32 is summed in another order than four of 8.
    const std::vector<double> expected = values(root), alone = values(single);
    ASSERT_EQ(alone.size(), expected.size());
    for (std::size_t step = 0; step < expected.size(); ++step)
        EXPECT_NEAR(alone[step], expected[step], 1e-6 * expected[step]) << "step " << step;
}

TEST(Losses, ArePrintedWithAllTheirDigits) {
    std::istringstream stream(losses({"--fsdp.wrap=size:1000"}));
    int words = 0;
    for (std::string word; std::getline(stream, word, ','); ++words) {
        char again[40];
        std::snprintf(again, sizeof again, "%.17g", std::strtod(word.c_str(), nullptr));
        EXPECT_EQ(word, again);
        EXPECT_GE(word.size(), std::string("0.1234567890123").size()) << "a loss has many digits";
    }
    EXPECT_EQ(words, 4);
}

// Text of few words, in which 15 of 100 bytes are hidden: the initial loss is that of a uniform guess, ln 257
// = 5.55.
TEST(Losses, FallWhereABertFillsGaps) {
    const TemporaryFolder folder;
    std::string text;
    for (int line = 0; line < 200; ++line) text += "the wires of a sharded job are busy\n";
    write_file(folder / "text", text);
    const auto bert = [&](const Words& how) {
        Words words = {sample("gpt.toml"),
                       "--model.type=bert",
                       "--model.layers=2",
                       "--model.width=32",
                       "--model.heads=2",
                       "--model.context=32",
                       "--run.steps=40",
                       "--run.ranks=2",
                       "--optimizer.lr=0.01",
                       "--format",
                       "json",
                       "--data.path=" + (folder / "text")};
        words.insert(words.end(), how.begin(), how.end());
        const Outcome outcome = train(words);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        return losses_text(outcome.out);
    };
    const std::string sharded = bert({"--fsdp.wrap=module:BertLayer"});
    const std::vector<double> fallen = values(sharded);
    ASSERT_EQ(fallen.size(), 40u) << sharded;
    EXPECT_NEAR(fallen.front(), 5.55, 0.3);
    EXPECT_LT(fallen.back(), 0.75 * fallen.front());
    EXPECT_EQ(bert({"--parallel.mode=ddp"}), sharded);
}

TEST(Losses, DependOnTheSeed) {
    EXPECT_NE(losses({"--run.seed=2"}), losses({"--run.seed=3"}));
}

TEST(Losses, DoNotChangeWithAnInheritedCoreType) {
    const Words job = {train_binary(),  sample("mlp.toml"), "--model.width=256",
                       "--run.steps=4", "--format",         "json"};
    Words with = {"env", "OPENBLAS_CORETYPE=Haswell"}, without = {"env", "-u", "OPENBLAS_CORETYPE"};
    with.insert(with.end(), job.begin(), job.end());
    without.insert(without.end(), job.begin(), job.end());
    const Outcome inherited = run_command(with), clean = run_command(without);
    ASSERT_EQ(inherited.status, 0) << inherited.err;
    ASSERT_EQ(clean.status, 0) << clean.err;
    EXPECT_EQ(losses_text(inherited.out), losses_text(clean.out));
    EXPECT_THAT(inherited.err, HasSubstr("OPENBLAS_CORETYPE=Haswell"));
    EXPECT_EQ(clean.err.find("OPENBLAS_CORETYPE"), std::string::npos) << clean.err;
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
