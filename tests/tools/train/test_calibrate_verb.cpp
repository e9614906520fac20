// shardscope-train calibrate as a user calls it: it reads traces and writes a model that a simulation
// accepts.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CalibrateVerb : public ::testing::Test {
  protected:
    std::string path(const std::string& name) const { return folder_ / name; }
    std::string record(const std::string& name, const Words& more) {
        Words words = {sample("mlp.toml"), "--run.steps=6", "--model.width=64", "--trace", path(name)};
        words.insert(words.end(), more.begin(), more.end());
        const Outcome outcome = train(words);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        return path(name);
    }
    static void expect_refused(const Words& words, const std::string& saying) {
        expect_refusal(train(words), {saying});
    }

    TemporaryFolder folder_;
};

TEST_F(CalibrateVerb, WritesAModelThatASimulationAccepts) {
    const std::string one = record("one.sqlite", {"--run.ranks=1"});
    const std::string two = record("two.sqlite", {"--run.ranks=2", "--fsdp.cpu_offload"});
    const std::string model = path("mine.toml");
    const Outcome table = train({"calibrate", one, two, "-o", model});
    ASSERT_EQ(table.status, 0) << table.err;
    EXPECT_THAT(table.out, AllOf(HasSubstr("matmul"), HasSubstr("fp32"), HasSubstr("all_gather"),
                                 HasSubstr("copy to device"), HasSubstr(one), HasSubstr(two),
                                 HasSubstr("From laptop, since no trace shows it: "), HasSubstr(model)));
    const Json simulated = train_json({sample("mlp.toml"), "--run.device=sim", "--sim.cluster=" + model});
    EXPECT_EQ(simulated.at("simulation").at("cluster"), "mine");
    EXPECT_GT(simulated.at("average_step_us"), 0);

    expect_refused({"calibrate", one, "-o", model}, "exists; choose another path or use --overwrite");
    const Json json = train_json({"calibrate", one, two, "-o", model, "--overwrite"});
    EXPECT_EQ(json.at("model"), model);
    EXPECT_EQ(json.at("base"), "laptop");
    ASSERT_EQ(json.at("steps").size(), 2u);
    EXPECT_EQ(json.at("steps").at(1).at("trace"), two);
    EXPECT_GT(json.at("steps").at(1).at("measured_us"), 0);
    EXPECT_GT(json.at("steps").at(1).at("simulated_us"), 0);
    const Json& residuals = json.at("residuals");
    const auto matmul = std::find_if(residuals.begin(), residuals.end(),
                                     [](const Json& own) { return own.at("work") == "matmul"; });
    ASSERT_NE(matmul, residuals.end());
    EXPECT_EQ(matmul->at("type"), "fp32");
    EXPECT_GT(matmul->at("count"), 0);
}

// Each collective of the benchmark that a model was fitted to, as measured and as a simulation predicts it.
TEST_F(CalibrateVerb, FitsTheLinksOfABenchmark) {
    const std::string trace = path("bench.sqlite"), model = path("mine.toml");
    const Words bench = {sample("mlp.toml"), "--bench-collectives", "--pairs", "--sizes=1K:1M"};
    Words measure = bench, predict = bench;
    measure.insert(measure.end(), {"--run.processes=2", "--run.comm=tcp", "--trace", trace});
    predict.insert(predict.end(), {"--run.device=sim", "--run.ranks=2", "--sim.cluster=" + model});
    const Json measured = train_json(measure);
    const Json fitted = train_json({"calibrate", trace, "-o", model});
    EXPECT_EQ(fitted.at("pairs"), 2);
    EXPECT_TRUE(fitted.at("steps").empty());
    const Json predicted = train_json(predict);
    const std::size_t count = measured.at("collectives").size();
    ASSERT_EQ(predicted.at("collectives").size(), count);
    double logarithms = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const Json &real = measured.at("collectives").at(i), &ours = predicted.at("collectives").at(i);
        ASSERT_EQ(real.at("name"), ours.at("name"));
        ASSERT_EQ(real.at("bytes"), ours.at("bytes"));
        const double us = real.at("us"), ratio = ours.at("us").get<double>() / us;
        logarithms += std::log(ratio);
        fmt::print("{} of {} bytes: measured {:.1f} us, predicted / measured {:.2f}\n",
                   real.at("name").get<std::string>(), real.at("bytes").get<int>(), us, ratio);
    }
    // On a busy machine single ones are disturbed, all together are not.
    const double mean = std::exp(logarithms / static_cast<double>(count));
    EXPECT_GT(mean, 1.0 / 3);
    EXPECT_LT(mean, 3);
}

TEST_F(CalibrateVerb, RefusesWhatItCannotUse) {
    const std::string one = record("one.sqlite", {"--run.ranks=1"});
    const std::string simulated = record("sim.sqlite", {"--run.device=sim"});
    const std::string model = path("mine.toml");
    expect_refused({"calibrate", simulated, "-o", model}, simulated + ": it is simulated");
    expect_refused({"calibrate", path("none.sqlite"), "-o", model}, "none.sqlite");
    expect_refused({"calibrate", one, "-o", path("mine.sqlite")}, "a cost model is a .toml file");
    expect_refused({"calibrate", one, "-o", path("no/mine.toml")}, "there is no folder");
    expect_refused({"calibrate", one, "-o", model, "--base", "h200_nvlink"}, "is a model of a GPU");
    expect_refused({"calibrate", one, "-o", model, "--base", "none"}, "--base: ");
    expect_refused({"calibrate", one, "-o", model, "--run.ranks=2"}, "calibrate takes no keys");
    expect_refused({"calibrate", "-o", model}, "TRACE");
    expect_refused({"calibrate", one}, "--output");
    EXPECT_FALSE(fs::exists(model));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
