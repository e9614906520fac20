// What weights in int8 change in a small GPT that has learned a text: its logits and its loss.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint_testing.h"
#include "trainer/data/source.h"
#include "trainer/executor/generation_run.h"
#include "trainer/executor/int8_weights.h"
#include "trainer/executor/run.h"
#include "trainer/executor/training_run.h"
#include "trainer/model/models.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;
using executor::Forward;

class Int8Generation : public ::testing::Test {
  protected:
    Int8Generation() {
        std::ofstream(folder_ / "text") << lines(0, 300);
        job_.run.steps = 200;
        job_.run.ranks = 1;
        job_.model.type = job::ModelType::gpt;
        job_.model.layers = 2;
        job_.model.heads = 2;
        job_.model.width = 32;
        job_.model.context = 32;
        job_.data.type = job::DataType::text;
        job_.data.path = folder_ / "text";
        job_.data.batch = 8;
        job_.parallel.mode = job::ParallelMode::none;
        job_.optimizer.type = job::OptimizerType::adamw;
        job_.optimizer.lr = 0.01;
    }

    static std::string lines(int first, int end) {
        std::string text;
        for (int i = first; i < end; ++i) text += fmt::format("line {} resembles the one before it\n", i);
        return text;
    }

    // Trains the model and saves it, with `poison` in its first Linear if there is one.
    void train(std::optional<float> poison = std::nullopt) {
        job_.checkpoint.save = folder_ / "save";
        const sharding::Program program(job_);
        const data::DataSource data = data::open_data(job_);
        CheckpointSaver saver(job_, layout_of(program), {},
                              [](const SaveReport& report) { EXPECT_EQ(report.error, ""); });
        executor::RunOptions options;
        options.hooks.at_step_end = [&](int rank, std::int64_t done, executor::RankRunner& runner) {
            const auto weight =
                std::find_if(program.optimizer().slots().begin(), program.optimizer().slots().end(),
                             [](const auto& slot) { return slot.name == "blocks.0.attention.qkv.weight"; });
            if (poison && done == job_.run.steps)
                std::memcpy(runner.contents(weight->parameter).bytes().data(), &*poison, sizeof(float));
            saver.save(rank, done, [&](const plan::Arg& arg) { return runner.contents(arg); });
        };
        run_training(program, *data.train, options);
    }

    // The logits of each window of the text, as many tokens as the context has.
    std::vector<std::vector<float>> logits_of(const std::string& text, bool int8) const {
        const StoredCheckpoint stored(folder_ / "save");
        const sharding::Program program(job_, sharding::Texts{1, 0, 1, int8});
        const CheckpointLoader loader(stored, program.job(), layout_of(program), LoadUse::weights);
        const auto context = static_cast<std::size_t>(job_.model.context);
        std::vector<std::vector<float>> found;
        executor::GenerationCalls calls;
        calls.after_setup = [&](int rank, executor::RankRunner& runner) {
            loader.fill(rank, [&](const plan::Arg& where) {
                return executor::parameter_values(program, runner, where);
            });
        };
        calls.write = [&](Forward, const executor::ForwardInput& input) {
            std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(found.size() * context), context,
                        input.tokens.begin());
        };
        calls.read = [&](Forward, std::span<const float> logits) -> std::optional<Forward> {
            found.emplace_back(logits.begin(), logits.end());
            if ((found.size() + 1) * context >= text.size()) return std::nullopt;
            return Forward::whole;
        };
        run_generation(program, Forward::whole, calls);
        return found;
    }

    // The cross-entropy of the tokens that follow, in nats per token.
    double loss_of(const std::string& text, const std::vector<std::vector<float>>& logits) const {
        const auto context = static_cast<std::size_t>(job_.model.context);
        const auto vocabulary = static_cast<std::size_t>(model::vocabulary(job_));
        double loss = 0;
        for (std::size_t at = 0; at < logits.size() * context; ++at) {
            const std::span<const float> row(&logits[at / context][at % context * vocabulary], vocabulary);
            double sum = 0;
            for (const float logit : row) sum += std::exp(static_cast<double>(logit));
            loss += std::log(sum) - row[static_cast<unsigned char>(text[at + 1])];
        }
        return loss / static_cast<double>(logits.size() * context);
    }

    TemporaryFolder folder_;
    job::Job job_;
};

TEST_F(Int8Generation, KeepsLogitsAndTheLossOnHeldOutText) {
    train();
    const std::string held_out = lines(1300, 1400);
    const auto exact = logits_of(held_out, false), rounded = logits_of(held_out, true);
    ASSERT_EQ(exact.size(), rounded.size());
    double squares = 0, differences = 0;
    for (std::size_t w = 0; w < exact.size(); ++w) {
        for (std::size_t i = 0; i < exact[w].size(); ++i) {
            squares += std::pow(exact[w][i], 2);
            differences += std::pow(exact[w][i] - rounded[w][i], 2);
        }
    }
    EXPECT_GT(differences, 0);
    EXPECT_LE(std::sqrt(differences / squares), 0.01);
    const double loss = loss_of(held_out, exact);
    EXPECT_LT(loss, 1) << "the text was not learned";
    EXPECT_NEAR(loss_of(held_out, rounded), loss, 0.005 * loss);
}

TEST_F(Int8Generation, RefusesWeightsThatAreNotFinite) {
    job_.run.steps = 1;
    train(NAN);
    try {
        logits_of(lines(0, 9), true);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const executor::RunError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("blocks.0.attention.qkv.weight has a value that is "
                                                       "not finite, which int8 does not have"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
