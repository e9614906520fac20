// samples/pytorch: what a trace has of DeepSpeed, Lightning, the Trainer of Transformers and Horovod on two
// ranks: the model's tree, the steps and their metrics. Each skips where its library is missing, but for
// Horovod, which has a stand-in.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/record/pytorch_sample.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;

class FrameworkSample : public PytorchSample {
  protected:
    // False: the library is missing, and the test has been skipped.
    bool record_framework(const std::string& name, const std::string& variables) {
        const Outcome outcome = record_ranks(
            {"-m", "shardscope_torch", std::string(SHARDSCOPE_PYTORCH_SAMPLE "/") + name + ".py"},
            "TORCHELASTIC_RUN_ID=test " + variables);
        if (outcome.err.find(name + ".py needs") != std::string::npos) {
            [&] { GTEST_SKIP() << outcome.err; }();
            return false;
        }
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_THAT(outcome.out, HasSubstr("loss"));
        return outcome.status == 0;
    }
    // A metric of a rank, step by step from 0 on.
    std::vector<double> metric(const std::string& name, int rank) const {
        std::vector<double> values;
        const Json metrics =
            answer({"metrics", trace_, "--name", name, "--rank", std::to_string(rank)}).at("metrics");
        if (metrics.empty()) return values;
        for (const Json& point : metrics.at(0).at("points")) {
            EXPECT_EQ(point.at("step"), values.size());
            values.push_back(point.at("value"));
        }
        return values;
    }
    // Both ranks have so many steps and calls of the model, below a module of class `root`.
    void expect_steps(int steps, const std::string& root) const {
        for (const char* rank : {"0", "1"}) {
            EXPECT_EQ(answer({"summary", trace_, "--rank", rank}).at("ranks").at(0).at("steps"), steps)
                << rank;
            const Json modules = answer({"modules", trace_, "--rank", rank}).at("ranks").at(0).at("modules");
            ASSERT_THAT(modules, SizeIs(1));
            EXPECT_EQ(modules.at(0).at("name"), root);
            EXPECT_EQ(modules.at(0).at("occurrences"), steps);
        }
    }
};

// WarmupLR goes from 0 to the rate with the logarithm of the steps that are done, here within four; so the
// second is trained with 0, too.
TEST_F(FrameworkSample, OfDeepSpeedHasItsRates) {
    if (!record_framework("train_deepspeed", "STEPS=3 STAGE=3")) return;
    expect_steps(3, "DeepSpeedEngine_0");
    EXPECT_THAT(texts("SELECT count(*) FROM ranges WHERE name LIKE 'nn.Module path: % blocks.3'"),
                ElementsAre("2"))
        << "the engine is no part of a module's name";
    for (const int rank : {0, 1}) {
        EXPECT_THAT(metric("loss", rank), SizeIs(3));
        EXPECT_THAT(metric("learning_rate", rank),
                    ElementsAre(0, 0, DoubleEq(1e-3 * std::log(2) / std::log(4))));
        EXPECT_THAT(metric("gradient_norm", rank), Each(Gt(0)));
        EXPECT_THAT(metric("skipped_steps", rank), ElementsAre(0, 0, 0));
    }
}

// In fp16, which DeepSpeed admits only on processors that are fast in it; the arithmetic is there on all.
TEST_F(FrameworkSample, OfDeepSpeedHasItsOverflows) {
    const std::string sample = SHARDSCOPE_PYTORCH_SAMPLE "/train_deepspeed.py", script = folder_ / "half.py";
    std::ofstream(script) << "import runpy, sys\n"
                             "sys.path.insert(0, '" SHARDSCOPE_PYTORCH_SAMPLE
                             "')\n"
                             "try:\n"
                             "    from deepspeed.accelerator import get_accelerator\n"
                             "    get_accelerator().is_fp16_supported = lambda: True\n"
                             "except ImportError as error:\n"
                             "    sys.exit('half.py needs ' + str(error))\n"
                             "runpy.run_path('"
                          << sample << "', run_name='__main__')\n";
    const Outcome outcome =
        record_ranks({"-m", "shardscope_torch", script}, "TORCHELASTIC_RUN_ID=test STEPS=8 STAGE=2");
    if (outcome.err.find("half.py needs") != std::string::npos) GTEST_SKIP() << outcome.err;
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    expect_steps(8, "DeepSpeedEngine_0");  // also those that were skipped
    const std::vector<double> scale = metric("loss_scale", 0), skipped = metric("skipped_steps", 0);
    ASSERT_THAT(scale, SizeIs(8));
    ASSERT_THAT(skipped, SizeIs(8));
    EXPECT_EQ(scale[0], 1 << 24);
    EXPECT_EQ(skipped[0], 1) << "a gradient of the loss times 2^24 is above 65504";
    for (std::size_t step = 1; step < 8; ++step) {
        const bool was_skipped = skipped[step - 1] > (step > 1 ? skipped[step - 2] : 0);
        EXPECT_EQ(scale[step], was_skipped ? scale[step - 1] / 2 : scale[step - 1]) << step;
    }
    EXPECT_LT(skipped[7], 8);
    EXPECT_EQ(metric("loss_scale", 1), scale);
}

// LinearLR goes from a quarter to all of the rate within three steps.
TEST_F(FrameworkSample, OfLightningHasItsRates) {
    if (!record_framework("train_lightning", "STEPS=4")) return;
    expect_steps(4, "DistributedDataParallel_0");
    for (const int rank : {0, 1}) {
        EXPECT_THAT(metric("loss", rank), SizeIs(4));
        EXPECT_THAT(metric("learning_rate", rank),
                    ElementsAre(DoubleEq(2.5e-4), DoubleEq(5e-4), DoubleEq(7.5e-4), DoubleEq(1e-3)));
    }
    EXPECT_NE(metric("loss", 0), metric("loss", 1)) << "each rank has tokens of its own";
}

// Two steps of warm-up from 0, then down to 0 at the end of the fourth.
TEST_F(FrameworkSample, OfTheTrainerOfTransformersHasItsRates) {
    if (!record_framework("hf_trainer", "STEPS=4")) return;
    expect_steps(4, "DistributedDataParallel_0");
    EXPECT_THAT(metric("learning_rate", 0), ElementsAre(0, DoubleEq(5e-4), DoubleEq(1e-3), DoubleEq(5e-4)));
    EXPECT_THAT(metric("gradient_norm", 0), SizeIs(4));
    EXPECT_THAT(metric("loss", 0), Each(Lt(7)));
    EXPECT_EQ(metric("loss", 0), metric("loss", 1)) << "the Trainer logs the mean of all ranks";
}

// The rate of one rank at first, that of two after three steps.
TEST_F(FrameworkSample, OfHorovodHasItsRatesAndItsScale) {
    python_path_ = ":" SHARDSCOPE_STAND_INS;
    if (!record_framework("train_horovod", "STEPS=4 FP16=1")) return;
    expect_steps(4, "Gpt_0");
    for (const int rank : {0, 1}) {
        EXPECT_THAT(metric("learning_rate", rank),
                    ElementsAre(DoubleEq(1e-3), DoubleEq(4e-3 / 3), DoubleEq(5e-3 / 3), DoubleEq(2e-3)));
        EXPECT_THAT(metric("loss_scale", rank), ElementsAre(65536, 65536, 65536, 65536));
    }
    EXPECT_EQ(metric("loss", 0), metric("loss", 1)) << "the mean of both ranks";
    EXPECT_THAT(texts("SELECT count(*) FROM ranges WHERE name = 'Horovod.synchronize'"), ElementsAre("8"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
