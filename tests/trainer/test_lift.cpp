// A run that is recorded, exported as PyTorch's JSON, read again and lifted: its unmodified replay gives the
// figures of the run, and a replay under another wrap or strategy gives those of the job under it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lift_testing.h"
#include "tests/traces/temporary_folder.h"

namespace shardscope::trainer::lift {
namespace TEST_FILE {

using testing::gpt_job;
using ::testing::HasSubstr;
using testing::mlp_job;
using testing::with_mode;
using testing::with_wrap;

constexpr double kPercent = 0.01;

double difference(double value, double of) {
    return std::abs(value - of) / of;
}

// A way to run a job, as its own settings and as changes to a recorded run.
struct Variant {
    const char* name;
    std::vector<job::Override> changes;
    job::Job of(job::Job job) const {
        for (const job::Override& change : changes) {
            if (change.key == "fsdp.wrap") job.fsdp.wrap = job::parse_wrap(change.value);
            if (change.key == "parallel.mode")
                job.parallel.mode = change.value == "ddp" ? job::ParallelMode::ddp : job::ParallelMode::fsdp;
            if (change.key == "fsdp.sharding_strategy") {
                job.fsdp.sharding_strategy = change.value == "SHARD_GRAD_OP"
                                                 ? job::ShardingStrategy::shard_grad_op
                                             : change.value == "NO_SHARD" ? job::ShardingStrategy::no_shard
                                                                          : job::ShardingStrategy::full_shard;
            }
            if (change.key == "fsdp.backward_prefetch")
                job.fsdp.backward_prefetch =
                    change.value == "NONE" ? job::BackwardPrefetch::none : job::BackwardPrefetch::post;
            if (change.key == "fsdp.limit_all_gathers") job.fsdp.limit_all_gathers = change.value == "true";
            if (change.key == "fsdp.cpu_offload") job.fsdp.cpu_offload = change.value == "true";
        }
        return job;
    }
};

const std::vector<Variant> kGptVariants = {
    {"as recorded", {}},
    {"root", {{"fsdp.wrap", "root"}}},
    {"per Linear", {{"fsdp.wrap", "module:Linear"}}},
    {"blocks and embeddings", {{"fsdp.wrap", "module:Block,Embedding"}}},
    {"by size", {{"fsdp.wrap", "size:3000"}}},
    {"kept after the forward", {{"fsdp.sharding_strategy", "SHARD_GRAD_OP"}}},
    {"not sharded", {{"fsdp.sharding_strategy", "NO_SHARD"}}},
    {"no prefetch", {{"fsdp.backward_prefetch", "NONE"}}},
    {"late prefetch", {{"fsdp.backward_prefetch", "BACKWARD_POST"}}},
    {"no limiter", {{"fsdp.limit_all_gathers", "false"}}},
    {"offload", {{"fsdp.cpu_offload", "true"}}},
    {"root, kept", {{"fsdp.wrap", "root"}, {"fsdp.sharding_strategy", "SHARD_GRAD_OP"}}},
    {"ddp", {{"parallel.mode", "ddp"}}},
};

const std::vector<Variant> kMlpVariants = {
    {"as recorded", {}},
    {"root", {{"fsdp.wrap", "root"}}},
    {"by size", {{"fsdp.wrap", "size:600"}}},
    {"root, kept", {{"fsdp.wrap", "root"}, {"fsdp.sharding_strategy", "SHARD_GRAD_OP"}}},
    {"ddp", {{"parallel.mode", "ddp"}}},
};

// The peaks of a job under each variant, compared with the replay of a recorded run of the job.
void expect_peaks(const Lifted& lifted, const job::Job& job, const std::vector<Variant>& variants,
                  const std::string& what) {
    for (const Variant& variant : variants) {
        const Replay replay = lift::replay(lifted, lifted.cluster, variant.changes, 1);
        ASSERT_TRUE(replay.can_be()) << what << ", " << variant.name << ": " << replay.impossible;
        const sharding::Program program(variant.of(job));
        const plan::MemoryPeak peak = program.predict().peak;
        EXPECT_EQ(replay.peak.bytes, peak.bytes) << what << ", " << variant.name;
        EXPECT_EQ(replay.peak.at_peak, peak.at_peak) << what << ", " << variant.name;
        const job::Job own = job_of(lifted, variant.changes);
        EXPECT_EQ(testing::collectives(program_of(lifted, own)), testing::collectives(program))
            << what << ", " << variant.name;
    }
}

// --- in virtual time
// ----------------------------------------------------------------------------------------

class LiftedJson : public ::testing::Test {
  protected:
    Lifted lifted(const job::Job& job) {
        trace_ = testing::simulated_json(job, cluster_, folder_.path());
        return lift(*trace_);
    }
    // The step time of the job under each variant, compared with that replay.
    void expect_steps(const Lifted& lifted, const job::Job& job, const std::vector<Variant>& variants) {
        for (const Variant& variant : variants) {
            const Replay replay = lift::replay(lifted, lifted.cluster, variant.changes, 1);
            const double own = testing::simulated_step(variant.of(job), cluster_);
            EXPECT_LT(difference(replay.step_s, own), variant.changes.empty() ? 10 * kPercent : 20 * kPercent)
                << variant.name << ": replayed " << replay.step_s << " s, the job itself " << own << " s";
        }
    }
    static sim::Cluster cluster() {
        sim::Cluster cluster = sim::load_cluster("h100_ib");
        return cluster;
    }

    const traces::TemporaryFolder folder_;
    const sim::Cluster cluster_ = cluster();
    std::unique_ptr<traces::store::Trace> trace_;
};

TEST_F(LiftedJson, AGptThatWasWrappedByBlocksGivesItsOwnStepAndThoseOfOtherWraps) {
    const testing::SampleText text;
    job::Job job = with_wrap(gpt_job(text, 4, 2), "module:Block");
    job.model.width = 256;
    job.model.context = 128;
    job.run.steps = 8;
    const Lifted lifted = this->lifted(job);
    EXPECT_EQ(lifted.wrap, "module:Block");
    // FSDP alone has no all-reduce; everything else is known.
    EXPECT_THAT(lifted.notes, ::testing::ElementsAre(HasSubstr("no all_reduce")));
    const Replay unmodified = replay_unmodified(lifted);
    EXPECT_LT(difference(unmodified.step_s, lifted.step_s), 10 * kPercent)
        << unmodified.step_s << " s, recorded " << lifted.step_s << " s";
    EXPECT_EQ(unmodified.peak.bytes, lifted.peak_bytes);
    expect_steps(lifted, job, {kGptVariants.begin(), kGptVariants.begin() + 10});
    expect_peaks(lifted, job, kGptVariants, "gpt");
}

TEST_F(LiftedJson, AnMlpThatWasWrappedByLayersGivesItsOwnStepAndThatOfOneUnit) {
    job::Job job = with_wrap(mlp_job(6, 512, 64, 2), "module:Linear");
    job.run.steps = 8;
    const Lifted lifted = this->lifted(job);
    const Replay unmodified = replay_unmodified(lifted);
    EXPECT_LT(difference(unmodified.step_s, lifted.step_s), 10 * kPercent);
    EXPECT_EQ(unmodified.peak.bytes, lifted.peak_bytes);
    expect_steps(lifted, job, kMlpVariants);
    expect_peaks(lifted, job, kMlpVariants, "mlp");
}

TEST_F(LiftedJson, SlowerLinksMakeTheStepLongerByTheExposedTime) {
    job::Job job = with_wrap(mlp_job(6, 512, 64, 2), "module:Linear");
    job.run.steps = 6;
    const Lifted lifted = this->lifted(job);
    Question question;
    question.bandwidth = 1e9;
    const Replay slow = lift::replay(lifted, asked_cluster(lifted, question), {}, 1);
    const Replay own = replay_unmodified(lifted);
    EXPECT_GT(slow.step_s, 2 * own.step_s);
    EXPECT_GT(slow.exposed_s, 0.5 * slow.step_s);
    // 17 gathers and reductions of 512 x 512 + 512 elements, of which each rank sends half.
    const double wire = 17.0 * (512 * 512 + 512) * 4 / 2 / 1e9;
    EXPECT_NEAR(slow.exposed_s, wire, 0.5 * wire);
    EXPECT_EQ(slow.peak.bytes, own.peak.bytes);
}

// --- what is recorded on the cpu
// ----------------------------------------------------------------------------

struct Recorded {
    const char* name;
    job::Job job;
};

class LiftedRun : public ::testing::Test {
  protected:
    static Lifted lifted(const job::Job& job) { return lift(*testing::record(job)); }
    const testing::SampleText text_;
};

TEST_F(LiftedRun, PeaksAreThoseThatTheJobMeasuresUnderTheOtherWrap) {
    job::Job job = with_wrap(gpt_job(text_, 2, 2), "module:Block");
    const Lifted lifted = LiftedRun::lifted(job);
    for (const Variant& variant : kGptVariants) {
        const executor::RunResult run = testing::run(variant.of(job));
        const Replay replay = lift::replay(lifted, lifted.cluster, variant.changes, 1);
        EXPECT_EQ(replay.peak.bytes, run.peaks.front().bytes) << variant.name;
        EXPECT_EQ(replay.peak.at_peak, run.peaks.front().at_peak) << variant.name;
    }
}

// The settings under which the run was recorded do not matter.
TEST_F(LiftedRun, AnyRecordedSettingsPredictTheOthers) {
    const job::Job gpt = gpt_job(text_, 1, 2);
    std::vector<Recorded> all = {
        {"root", with_wrap(gpt, "root")},
        {"per Linear", with_wrap(gpt, "module:Linear")},
        {"ddp", with_mode(gpt, job::ParallelMode::ddp)},
        {"kept after the forward",
         testing::with_strategy(with_wrap(gpt, "module:Block"), job::ShardingStrategy::shard_grad_op)},
        {"not sharded",
         testing::with_strategy(with_wrap(gpt, "module:Block"), job::ShardingStrategy::no_shard)},
        {"offload", with_wrap(gpt, "module:Block")},
        {"accumulation", with_wrap(gpt, "module:Block")},
        {"tied embeddings", with_wrap(gpt, "module:Block")},
        {"clipping", with_wrap(gpt, "module:Block")},
        {"bf16", with_wrap(gpt, "module:Block")},
    };
    all[5].job.fsdp.cpu_offload = true;
    all[6].job.train.accumulation = 2;
    all[7].job.model.tied_embeddings = true;
    all[8].job.train.clip_norm = 1;
    all[9].job.precision.param = job::Precision::bf16;
    for (const Recorded& recorded : all) {
        const Lifted lifted = LiftedRun::lifted(recorded.job);
        EXPECT_EQ(replay_unmodified(lifted).peak.bytes, lifted.peak_bytes) << recorded.name;
        std::vector<Variant> variants = {kGptVariants.begin(), kGptVariants.begin() + 6};
        if (recorded.job.precision.param == job::Precision::fp32) variants.push_back(kGptVariants.back());
        if (recorded.job.parallel.mode != job::ParallelMode::fsdp) {
            for (Variant& variant : variants)
                if (!variant.changes.empty() && variant.changes.front().key != "parallel.mode")
                    variant.changes.push_back({"parallel.mode", "fsdp"});
        }
        expect_peaks(lifted, recorded.job, variants, recorded.name);
    }
}

TEST_F(LiftedRun, AHybridThatKeepsItsUnitsHasPytorchsNameForIt) {
    job::Job job = testing::with_strategy(with_wrap(gpt_job(text_, 1, 4), "module:Block"),
                                          job::ShardingStrategy::hybrid_shard_zero2);
    job.fsdp.shard_group = 2;
    const Lifted lifted = LiftedRun::lifted(job);
    EXPECT_EQ(job_of(lifted, {}).fsdp.sharding_strategy, job::ShardingStrategy::hybrid_shard_zero2);
}

// --- what is tried and what is said
// ---------------------------------------------------------------------------

TEST_F(LiftedRun, TriesTheRecordedRunFirstAndEachCombinationOnce) {
    const Lifted lifted = LiftedRun::lifted(with_wrap(gpt_job(text_, 1, 2), "module:Block"));
    const auto changes = changes_to_try(lifted, {});
    ASSERT_FALSE(changes.empty());
    EXPECT_TRUE(changes.front().empty());
    for (std::size_t i = 0; i < changes.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) EXPECT_NE(changes[i], changes[j]);
    const std::atomic<bool> stop{false};
    const auto rows = replay_all(lifted, lifted.cluster, changes, 2, stop, [](std::size_t, std::size_t) {});
    ASSERT_EQ(rows.size(), changes.size());
    bool front = false;
    for (const Replay& row : rows) {
        EXPECT_TRUE(row.can_be()) << row.impossible;
        front = front || row.front;
    }
    EXPECT_TRUE(front);
}

TEST_F(LiftedRun, OtherKeysAreRefusedWithThePossibleOnes) {
    const Lifted lifted = LiftedRun::lifted(with_wrap(gpt_job(text_, 1, 2), "root"));
    try {
        changes_to_try(lifted, {{{"precision.param", {"bf16"}}}, 0, ""});
        FAIL();
    } catch (const job::JobError& error) {
        EXPECT_THAT(error.what(), HasSubstr("--precision.param"));
        EXPECT_THAT(error.what(), HasSubstr("[fsdp]"));
    }
}

TEST_F(LiftedRun, ARunWithoutCollectivesIsRefusedWithWhatToDo) {
    job::Job job = with_mode(mlp_job(2, 8, 2, 1), job::ParallelMode::none);
    try {
        LiftedRun::lifted(job);
        FAIL();
    } catch (const LiftError& error) {
        EXPECT_THAT(error.what(), HasSubstr("no collectives"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::lift
