// shardscope-train plan on a trace, as a user calls it: a run that was recorded, exported as PyTorch's JSON
// and read again predicts the time and memory of the job under another wrap.
#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"
#include "traces/store/columns/trace.h"
#include "traces/store/load/loader.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PlanTrace : public ::testing::Test {
  protected:
    // The JSON of a GPT's run, 2 ranks on the CPU; `more` are keys.
    std::string exported(const Words& more) {
        const std::string database = folder_ / "run.sqlite", json = folder_ / "run.json";
        Words words = arguments_for(Way::gpt, folder_);
        words.insert(words.end(), more.begin(), more.end());
        words.insert(words.end(), {"--trace", database, "--overwrite", "--run.steps=6"});
        train_json(words);
        EXPECT_EQ(trace_tool({"export", database, "--to", "chrome", "-o", json, "--overwrite"}).status, 0);
        return json;
    }
    std::int64_t measured_peak(const Words& more) {
        Words words = arguments_for(Way::gpt, folder_);
        words.insert(words.end(), more.begin(), more.end());
        return train_json(words).at("ranks").at(0).at("peak_bytes").get<std::int64_t>();
    }
    static void expect_refused(const Words& words, int status, const Words& sayings) {
        const Outcome outcome = train(words);
        expect_refusal(outcome, sayings, status);
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
    const TemporaryFolder folder_;
};

TEST_F(PlanTrace, PeaksOfOtherWrapsAreThoseThatTheJobMeasures) {
    const std::string json = exported({"--fsdp.wrap=module:Block"});
    const Json plan = train_json({"plan", json, "--fsdp.wrap=module:Block;root;module:Linear",
                                  "--fsdp.sharding_strategy=FULL_SHARD,SHARD_GRAD_OP",
                                  "--fsdp.backward_prefetch=BACKWARD_PRE", "--fsdp.limit_all_gathers=true"});
    ASSERT_EQ(plan.at("rows").size(), 6u);
    EXPECT_EQ(plan.at("unmodified").at("peak_error_bytes"), 0);
    EXPECT_EQ(plan.at("recorded").at("settings").at("fsdp.wrap"), "module:Block");
    for (const Json& row : plan.at("rows")) {
        Words keys = {"--fsdp.wrap=module:Block"};
        for (const auto& [key, value] : row.at("settings").items())
            keys.push_back("--" + key + "=" + value.get<std::string>());
        EXPECT_EQ(row.at("peak_bytes"), measured_peak(keys)) << row.at("settings");
        EXPECT_EQ(row.at("peak_difference_bytes").get<std::int64_t>(),
                  row.at("peak_bytes").get<std::int64_t>() -
                      plan.at("unmodified").at("peak_bytes").get<std::int64_t>());
        EXPECT_GT(row.at("step_us").get<double>(), 0);
    }
}

TEST_F(PlanTrace, TheTableBeginsWithTheErrorAndEndsWithLinesToPaste) {
    const Outcome outcome = train({"plan", exported({"--fsdp.wrap=module:Block"})});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, StartsWith("Unmodified replay: "));
    const std::string first = outcome.out.substr(0, outcome.out.find('\n'));
    EXPECT_THAT(first, AllOf(HasSubstr("recorded median"), HasSubstr(" %)"), HasSubstr("equal to the byte")));
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("The Pareto front of"), HasSubstr("fully_shard(model)"),
                                   HasSubstr("model = FSDP(model, sharding_strategy=ShardingStrategy.")));
}

// NO_SHARD moves a third less and wins over links this slow; fully_shard has no equivalent of it.
TEST_F(PlanTrace, LinesForTheRecordedRunArePrintedWhateverRowWins) {
    const std::string json = exported({"--fsdp.wrap=module:Block", "--run.device=sim",
                                       "--sim.cluster=v100_pcie", "--sim.slow_link=intra:0.001"});
    const std::string strategies = "--fsdp.sharding_strategy=FULL_SHARD,NO_SHARD";
    const Json plan = train_json({"plan", json, strategies});
    const Json& best = plan.at("rows").at(plan.at("shown").get<std::size_t>() - 1);
    EXPECT_EQ(best.at("settings").at("fsdp.sharding_strategy"), "NO_SHARD");
    const Outcome outcome = train({"plan", json, strategies});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("fully_shard(model)"), HasSubstr("model = FSDP(model, sharding_strategy=")));
}

TEST_F(PlanTrace, ARowIsWrittenAsItsTraceAndAllAsADatabase) {
    const std::string json = exported({"--fsdp.wrap=module:Block"});
    const std::string plan = folder_ / "plan.sqlite", other = folder_ / "other.sqlite";
    const Json rows =
        train_json({"plan", json, "--fsdp.wrap=root;", "--write", "2", "--as", other, "-o", plan});
    const Json& row = rows.at("rows").at(1);
    EXPECT_EQ(row.at("settings").at("fsdp.wrap"), "root");
    EXPECT_EQ(rows.at("shown"), 2);
    EXPECT_EQ(trace_tool({"check", other}).status, 0);
    EXPECT_EQ(trace_json({"memory", other}).at("ranks").at(0).at("peak_bytes"), row.at("peak_bytes"));
    EXPECT_EQ(trace_tool({"check", plan}).status, 0);
    const auto loaded = traces::store::load_trace(plan);
    ASSERT_EQ(loaded->plan.size(), rows.at("rows").size());
    EXPECT_EQ(loaded->plan[1].trace, other);
    EXPECT_EQ(loaded->plan[1].peak_bytes, row.at("peak_bytes").get<std::int64_t>());
    EXPECT_THAT(loaded->plan[1].why, HasSubstr("% step"));
    expect_refused({"plan", json, "-o", plan}, 2, {plan});  // the file exists
}

TEST_F(PlanTrace, SlowerLinksAndOtherClustersChangeTheSteps) {
    const std::string json = exported({"--fsdp.wrap=module:Block"});
    const Words keys = {"--fsdp.wrap=module:Block;", "--fsdp.sharding_strategy=FULL_SHARD",
                        "--fsdp.backward_prefetch=BACKWARD_PRE", "--fsdp.limit_all_gathers=true"};
    const auto step = [&](const Words& more) {
        Words words = {"plan", json};
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), more.begin(), more.end());
        const Json plan = train_json(words);
        EXPECT_EQ(plan.at("rows").size(), 1u);
        return plan.at("rows").at(0).at("step_us").get<double>();
    };
    EXPECT_GT(step({"--bandwidth", "0.001"}), 2 * step({"--bandwidth", "1"}));
    EXPECT_GT(step({"--cluster", "h200_nvlink"}), 0);
}

TEST_F(PlanTrace, ATraceThatCannotBeLiftedIsRefusedWithWhatIsMissing) {
    const std::string nothing = folder_ / "nothing.json", text = folder_ / "text.json";
    write_file(nothing, R"({"traceEvents":[]})");
    write_file(text, "{ this is no JSON");
    expect_refused({"plan", nothing}, 1, {nothing});
    expect_refused({"plan", text}, 1, {text});
    expect_refused({"plan", folder_ / "absent.json"}, 1, {"absent.json"});
    const TracedRun alone(Way::none);
    expect_refused({"plan", alone.trace()}, 1, {"no collectives", "plan JOB.toml"});
}

// samples/pytorch/fsdp2.py on a fake world of two ranks, recorded with PyTorch 2.15 by: python3 -m
// shardscope_torch
// --fake fake_fsdp2.json.gz fsdp2.py
const std::string kFake = std::string(SHARDSCOPE_PYTORCH_TRACES) + "/fake_fsdp2.json.gz";

TEST_F(PlanTrace, ARecordingOfATensorGroupIsRefused) {
    expect_refused({"plan", exported({"--parallel.tensor=2"})}, 1,
                   {"run.json", "parallel.tensor = 2", "--run.device=sim"});
}

TEST_F(PlanTrace, ARecordingWithoutTimesHasPeaksAlone) {
    const Json plan = train_json({"plan", kFake});
    EXPECT_TRUE(plan.at("recorded").at("step_us").is_null());
    EXPECT_EQ(plan.at("recorded").at("peak_bytes"), 16886376);
    EXPECT_EQ(plan.at("recorded").at("settings").at("fsdp.wrap"), "module:Block");
    EXPECT_EQ(plan.at("unmodified").at("peak_error_bytes"), 0);
    EXPECT_EQ(plan.at("unmodified").at("at_peak").at("other"), 65536);  // the masks, buffers of the model
    EXPECT_TRUE(plan.at("unmodified").at("step_error_percent").is_null());
    EXPECT_THAT(plan.at("not_known").back().get<std::string>(), HasSubstr("has no times"));
    std::int64_t least = plan.at("rows").at(0).at("peak_bytes").get<std::int64_t>();
    for (const Json& row : plan.at("rows")) least = std::min(least, row.at("peak_bytes").get<std::int64_t>());
    for (const Json& row : plan.at("rows")) {
        EXPECT_TRUE(row.at("step_us").is_null() && row.at("kernel_us").is_null() &&
                    row.at("exposed_communication_us").is_null() &&
                    row.at("step_difference_percent").is_null());
        EXPECT_EQ(row.at("front").get<bool>(), row.at("peak_bytes") == least && !row.contains("same_as"));
    }
}

// The peaks that the same PyTorch has in the fake mode under these settings.
TEST_F(PlanTrace, ARecordingWithoutTimesPredictsThePeaksOfOthers) {
    const auto peak = [&](const Words& keys) {
        Words words = {"plan", kFake};
        words.insert(words.end(), keys.begin(), keys.end());
        return train_json(words).at("rows").back().at("peak_bytes").get<std::int64_t>();
    };
    EXPECT_EQ(
        peak({"--fsdp.layout=fsdp1", "--fsdp.backward_prefetch=BACKWARD_PRE", "--fsdp.limit_all_gathers=true",
              "--fsdp.wrap=module:Block", "--fsdp.sharding_strategy=FULL_SHARD"}),
        16886376);
    EXPECT_EQ(peak({"--fsdp.wrap=root", "--fsdp.sharding_strategy=FULL_SHARD"}), 21417060);
    EXPECT_EQ(peak({"--fsdp.wrap=module:Block", "--fsdp.sharding_strategy=FULL_SHARD",
                    "--memory.activation_checkpointing=module:Block"}),
              12287544);
    EXPECT_EQ(peak({"--parallel.mode=ddp", "--ddp.bucket_cap_mb=1", "--ddp.first_bucket_mb=1"}), 23675496);
}

TEST_F(PlanTrace, ARecordingWithoutTimesIsPrintedWithDashesAndANote) {
    const Outcome outcome = train({"plan", kFake, "--fsdp.wrap=module:Block;root"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, StartsWith("Unmodified replay: - ms per step, recorded -; peak 16.1 MiB, "
                                        "recorded 16.1 MiB (equal to the byte)\n"));
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("Note: The trace has no times"), HasSubstr("no other is smaller"),
                      HasSubstr("+0.0 MiB        -     -           -\n"),
                      HasSubstr("Row 1 (as recorded): +0.0 MiB\n")));
    expect_refused({"plan", kFake, "--bandwidth", "50"}, 2, {"--bandwidth", "no times"});
    expect_refused({"plan", kFake, "--cluster", "h200_nvlink"}, 2, {"--cluster", "no times"});
}

TEST_F(PlanTrace, RowsWithoutTimesAreWrittenWithoutTimes) {
    const std::string plan = folder_ / "plan.sqlite", other = folder_ / "other.sqlite";
    const Json rows =
        train_json({"plan", kFake, "--fsdp.wrap=root", "--write", "2", "--as", other, "-o", plan});
    EXPECT_EQ(trace_tool({"check", plan}).status, 0);
    const auto loaded = traces::store::load_trace(plan);
    EXPECT_EQ(loaded->config_value("times"), "none");
    ASSERT_EQ(loaded->plan.size(), rows.at("rows").size());
    EXPECT_FALSE(loaded->plan[1].simulated());
    EXPECT_THAT(loaded->plan[1].why, testing::EndsWith(" MiB"));
    EXPECT_EQ(trace_tool({"check", other}).status, 0);
    EXPECT_EQ(trace_json({"memory", other}).at("ranks").at(0).at("peak_bytes"),
              rows.at("rows").at(1).at("peak_bytes"));
}

// What the viewer asks for when it tries a change.
TEST_F(PlanTrace, OnlyTheKeysThatAreGivenVaryAndOurTracesHaveTheirJob) {
    exported({"--fsdp.wrap=module:Block"});
    const std::string database = folder_ / "run.sqlite";
    const Json plan = train_json({"plan", database, "--only", "--fsdp.wrap=root"});
    ASSERT_EQ(plan.at("rows").size(), 2u);
    EXPECT_EQ(plan.at("rows").at(0).at("settings"), Json::object());
    EXPECT_EQ(plan.at("rows").at(1).at("settings"), Json({{"fsdp.wrap", "root"}}));
    const std::string recorded = plan.at("rows").at(0).at("job"), changed = plan.at("rows").at(1).at("job");
    EXPECT_THAT(recorded, AllOf(HasSubstr("type = \"gpt\""), HasSubstr("wrap = \"module:Block\"")));
    EXPECT_THAT(changed, ::testing::Not(HasSubstr("module:Block")));
    const std::string file = folder_ / "changed.toml";
    std::ofstream(file) << changed;
    EXPECT_EQ(train_json({file}).at("ranks").at(0).at("peak_bytes"), plan.at("rows").at(1).at("peak_bytes"));
    expect_refused({"plan", database, "--only", "--fsdp.wrap=module:Block"}, 2, {"nothing would change"});
    expect_refused({"plan", file, "--only"}, 2, {"--only", "it is for traces"});
}

TEST_F(PlanTrace, AWrongCommandLineIsStatusTwo) {
    const std::string json = exported({"--fsdp.wrap=module:Block"});
    expect_refused({"plan", json, "--precision.param=bf16"}, 2, {"--precision.param", "[fsdp]"});
    expect_refused({"plan", json, "--time-all"}, 2, {"--time-all"});
    expect_refused({"plan", json, "--meshes"}, 2, {"--meshes", "job files"});
    expect_refused({"plan", json, "--write", "9999", "--as", folder_ / "x.sqlite"}, 2, {"9999"});
    expect_refused({"plan", json, "--write", "1", "--as", folder_ / "x.toml"}, 2, {"x.toml"});
    expect_refused({"plan", json, "--cluster", "nowhere"}, 2, {"nowhere"});
    expect_refused({"plan", json, "--bandwidth", "-1"}, 2, {"--bandwidth"});
    expect_refused({"plan", sample("mlp.toml"), "--bandwidth", "3"}, 2, {"--bandwidth", "traces"});
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
