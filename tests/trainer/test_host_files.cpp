// memory.nvme: the same bits as without, the memory of each space as predicted, what is read and written, and
// when.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs.h"
#include "offload_jobs.h"
#include "pipeline_jobs.h"
#include "tests/traces/temporary_folder.h"
#include "trainer/sharding/file_ring.h"

namespace shardscope::trainer::sharding {
namespace TEST_FILE {

using plan::Stream;
using testing::kDelays, testing::kLayouts, testing::kOptimizer;
using testing::SampleText;

using Change = std::function<void(job::Job&)>;

class HostFiles : public ::testing::Test {
  protected:
    job::Job gpt(job::ParallelMode mode, int ranks) const { return testing::gpt(text_, mode, ranks); }
    // Either the optimizer's part is on the host, or also the shards that are gathered.
    job::Job in_files(job::Job job, bool shards = false) const {
        job.memory.nvme = folder_.path();
        if (shards)
            job.fsdp.cpu_offload = true;
        else
            job.memory.offload.optimizer = true;
        return job;
    }
    void expect_same_bits(const job::Job& job) const {
        const std::vector<double> expected = testing::losses_as_predicted(job);
        EXPECT_EQ(testing::losses_as_predicted(in_files(job)), expected) << testing::mesh_of(job);
        if (job.parallel.mode != job::ParallelMode::fsdp) return;
        EXPECT_EQ(testing::losses_as_predicted(in_files(job, true)), expected) << testing::mesh_of(job);
    }

    const SampleText text_;
    const traces::TemporaryFolder folder_;
};

TEST_F(HostFiles, ChangeNoBit) {
    const std::vector<std::pair<const char*, Change>> changes = {
        {"as it is", [](job::Job&) {}},
        {"accumulation, clipping",
         [](job::Job& job) {
             job.train.accumulation = 3;
             job.train.clip_norm = 0.1;
         }},
        {"no state", [](job::Job& job) { job.optimizer.type = job::OptimizerType::sgd; }},
        {"checkpointing, tied, frozen", [](job::Job& job) {
             job.memory.activation_checkpointing.names = {"Block"};
             job.model.tied_embeddings = true;
             job.train.freeze = job::parse_modules("path:blocks.0,blocks.1.norm_1");
         }}};
    for (const auto& [name, change] : changes) {
        if (testing::kShort && &change != &changes[1].second) continue;
        SCOPED_TRACE(name);
        for (const job::ParallelMode mode : {job::ParallelMode::none, job::ParallelMode::ddp}) {
            job::Job job = gpt(mode, mode == job::ParallelMode::none ? 1 : 2);
            change(job);
            expect_same_bits(job);
        }
        for (const job::FsdpLayout layout : kLayouts) {
            job::Job job = gpt(job::ParallelMode::fsdp, 2);
            job.fsdp.layout = layout;
            change(job);
            expect_same_bits(job);
        }
    }
}

TEST_F(HostFiles, ChangeNoBitInLowPrecisionOrInAMesh) {
    for (const job::FsdpLayout layout : kLayouts) {
        job::Job job = gpt(job::ParallelMode::fsdp, 4);
        job = testing::with_strategy(job, job::ShardingStrategy::hybrid_shard, 2);
        job.fsdp.layout = layout;
        job.fsdp.sync_module_states = job.fsdp.forward_prefetch = true;
        job.precision.param = job.precision.reduce = job.precision.buffer = job::Precision::bf16;
        expect_same_bits(job);
    }
    job::Job pipeline = gpt(job::ParallelMode::fsdp, 2);
    pipeline.train.accumulation = 4;
    pipeline.train.accumulation_sync = false;
    expect_same_bits(testing::piped(pipeline, {2, "1f1b"}));
}

// Files with 12 bytes of each parameter; pinned are its gradient and the ring, three times the largest unit.
TEST_F(HostFiles, LeaveOnlyGradientsAndARingInMemory) {
    job::Job job = gpt(job::ParallelMode::fsdp, 1);
    job.fsdp.layout = job::FsdpLayout::lean;
    job.model.layers = 12;
    const std::int64_t host = testing::bytes_of(job, plan::MemorySpace::host);
    const std::int64_t pinned = testing::bytes_of(job, plan::MemorySpace::pinned);
    const Program program(job);
    std::int64_t elements = 0, largest = 0;
    for (const UnitInfo& unit : program.units()) {
        elements += unit.shard_elements;
        largest = std::max(largest, unit.shard_elements);
    }
    for (const bool shards : {false, true}) {
        const job::Job files = in_files(job, shards);
        EXPECT_EQ(testing::bytes_of(files, plan::MemorySpace::disk), 12 * elements);
        EXPECT_EQ(testing::bytes_of(files, plan::MemorySpace::host), host);
        const std::int64_t ring = testing::bytes_of(files, plan::MemorySpace::pinned) - pinned - 4 * elements;
        EXPECT_GE(ring, 3 * 12 * largest);
        EXPECT_LE(ring, 3 * (12 * largest + 3 * 4096));
        EXPECT_LE(Program(files).predict().peak.bytes, program.predict().peak.bytes);
    }
    // The host also rounds what the device gathers.
    job::Job narrow = in_files(job);
    narrow.precision.param = job::Precision::bf16;
    const std::int64_t ring = testing::bytes_of(narrow, plan::MemorySpace::pinned) - pinned - 4 * elements;
    EXPECT_GE(ring, 3 * 14 * largest);
    EXPECT_LE(ring, 3 * (14 * largest + 3 * 4096));
}

// Of each unit only a part is trained, and the ring has room for a few of them.
TEST_F(HostFiles, HaveRoomForManyUnitsWithAFrozenPart) {
    for (const job::FsdpLayout layout : kLayouts) {
        job::Job job = gpt(job::ParallelMode::fsdp, 2);
        job.fsdp.layout = layout;
        job.model.layers = 12;
        job.train.freeze =
            job::parse_modules("path:blocks.0,blocks.1.norm_1,blocks.3.attention,blocks.7.norm_2");
        job.run.steps = 2;
        expect_same_bits(job);
    }
}

// "read blocks.0", "gather blocks.0", "update blocks.0" and "write blocks.0", in a step that repeats.
std::vector<std::string> moves_of(const job::Job& job, plan::Phase phase) {
    const Program program(job);
    std::vector<std::string> moves;
    for (const plan::Op& op : testing::steady(program).ops) {
        const char* what = op.kind == plan::OpKind::memcpy && op.stream == Stream::disk_read    ? "read "
                           : op.kind == plan::OpKind::memcpy && op.stream == Stream::disk_write ? "write "
                           : op.kind == plan::OpKind::collective                                ? "gather "
                           : op.kind == plan::OpKind::kernel && op.stream == Stream::host       ? "update "
                                                                                                : nullptr;
        if (what == nullptr || op.phase != phase || op.unit < 0) continue;
        const std::string move = what + program.units()[static_cast<std::size_t>(op.unit)].name;
        if (moves.empty() || moves.back() != move) moves.push_back(move);
    }
    return moves;
}

// The next unit's shard is read while the forward of this one runs, and in the update the next one's state.
TEST_F(HostFiles, AreReadAhead) {
    job::Job job = gpt(job::ParallelMode::fsdp, 2);
    job.model.layers = 3;
    EXPECT_THAT(
        moves_of(in_files(job, true), plan::Phase::forward),
        ::testing::ElementsAre("read root", "gather root", "read blocks.0", "gather blocks.0",
                               "read blocks.1", "gather blocks.1", "read blocks.2", "gather blocks.2"));
    EXPECT_THAT(moves_of(in_files(job), plan::Phase::optimizer),
                ::testing::ElementsAre("read blocks.2", "read blocks.1", "read blocks.0", "update blocks.2",
                                       "write blocks.2", "update blocks.1", "write blocks.1", "read root",
                                       "update blocks.0", "write blocks.0", "update root", "write root"));
}

TEST_F(HostFiles, DelaysAndPoisonChangeNoBit) {
    for (const job::ParallelMode mode : {job::ParallelMode::ddp, job::ParallelMode::fsdp}) {
        job::Job job = gpt(mode, 2);
        job.train.accumulation = 2;
        const std::vector<double> calm = testing::losses_as_predicted(job);
        executor::RunOptions delayed;
        delayed.test.poison = true;
        for (delayed.test.delay_seed = 1; delayed.test.delay_seed <= kDelays; ++delayed.test.delay_seed) {
            for (const bool shards : {false, true}) {
                if (shards && mode == job::ParallelMode::ddp) continue;
                EXPECT_EQ(testing::run(in_files(job, shards), delayed).losses, calm);
            }
        }
    }
}

// --- the ring ----------------------------------------------------------------------------------------------

class Ring : public ::testing::Test {
  protected:
    Ring() {
        ring_.declare(persistent_, 100);
        builder_.emplace(plan::PlanKind::steady, persistent_);
        ring_.begin_plan(*builder_);
    }
    std::optional<std::int64_t> take(std::int64_t bytes, bool waits = true) {
        const std::optional<plan::Arg> place = ring_.take(*builder_, bytes, waits);
        return place ? std::optional(place->offset) : std::nullopt;
    }
    void give_back(std::int64_t begin) { ring_.give_back(*builder_, {0, begin, 0}, {Stream::disk_write}); }
    int waits() {
        const plan::Plan plan = builder_->take();
        return static_cast<int>(std::count_if(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
            return op.kind == plan::OpKind::host_wait;
        }));
    }

    std::vector<plan::Buffer> persistent_;
    FileRing ring_;
    std::optional<plan::PlanBuilder> builder_;
};

TEST_F(Ring, GivesPlacesInTurn) {
    EXPECT_EQ(take(40), 0);
    EXPECT_EQ(take(40), 40);
    EXPECT_EQ(take(40), std::nullopt) << "the first is not given back";
    give_back(0);
    EXPECT_EQ(take(40, false), std::nullopt) << "it may still be in use";
    EXPECT_EQ(take(40), 0) << "20 bytes at the end are too few";
    EXPECT_EQ(take(1), std::nullopt);
    give_back(40);
    EXPECT_EQ(take(50), 40);
    EXPECT_EQ(take(11), std::nullopt);
    EXPECT_EQ(take(10), 90);
    EXPECT_EQ(waits(), 3 + 2) << "for three streams of earlier Plans, and two places";
}

TEST_F(Ring, HasRoomForItsWholeSizeAndNoMore) {
    EXPECT_EQ(take(101), std::nullopt);
    EXPECT_EQ(take(100), 0);
    EXPECT_EQ(take(1), std::nullopt);
    give_back(0);
    EXPECT_EQ(take(100), 0);
}

TEST_F(Ring, KeepsThePlacesThatCameAfterOneThatIsGivenBack) {
    for (const std::int64_t begin : {0, 25, 50, 75}) EXPECT_EQ(take(25), begin);
    give_back(25);
    EXPECT_EQ(take(25), std::nullopt);
    give_back(0);
    EXPECT_EQ(take(50), 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sharding
