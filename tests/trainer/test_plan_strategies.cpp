// What each strategy and option does to a step, read from the Plan: which collectives, in which group, of how
// many bytes, in which order; and the memory account compared with closed forms.
//
// W: bytes of a Linear of width d, (d*d + d)*4. A: bytes of an activation, b*d*4. U units of one Linear each,
// Psi = U*W, N ranks, SGD, p = 4 tensors that a step's variables hold (input, target, output, loss storage).
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan_jobs.h"

namespace shardscope::trainer::sharding {
namespace TEST_FILE {

using testing::Count;
using Counts = std::map<std::pair<plan::Operation, plan::Group>, Count>;

constexpr std::int64_t kP = 4;

struct Shape {
    int layers = 8, width = 64, batch = 2, ranks = 4;
    std::int64_t w() const { return (std::int64_t{width} * width + width) * 4; }
    std::int64_t a() const { return std::int64_t{batch} * width * 4; }
    std::int64_t psi() const { return layers * w(); }
    job::Job job(const char* wrap = "module:Linear") const {
        return testing::with_wrap(testing::mlp_job(layers, width, batch, ranks), wrap);
    }
    // The largest of f(i) over the units, i = 1 … U in forward order.
    std::int64_t largest(const std::function<std::int64_t(std::int64_t i)>& f) const {
        std::int64_t most = 0;
        for (std::int64_t i = 1; i <= layers; ++i) most = std::max(most, f(i));
        return most;
    }
};

// --- collectives -------------------------------------------------------------------------------------------

TEST(Strategies, CollectivesOfAStepFollowTheClosedForms) {
    const Shape s;
    const std::int64_t u = s.layers;
    const Count each{u, s.psi()}, twice{2 * u, 2 * s.psi()};
    const auto of = [](const job::Job& job) { return testing::collectives(Program(job)); };
    using enum job::ShardingStrategy;
    EXPECT_EQ(of(s.job()), (Counts{{{plan::Operation::all_gather, plan::Group::shard}, twice},
                                   {{plan::Operation::reduce_scatter, plan::Group::shard}, each}}));
    EXPECT_EQ(of(testing::with_strategy(s.job(), shard_grad_op)),
              (Counts{{{plan::Operation::all_gather, plan::Group::shard}, each},
                      {{plan::Operation::reduce_scatter, plan::Group::shard}, each}}));
    EXPECT_EQ(of(testing::with_strategy(s.job(), no_shard)),
              (Counts{{{plan::Operation::all_reduce, plan::Group::world}, each}}));
    // Groups of 2 of 4 ranks: the shards of the gradients, half as large, are reduced across the groups.
    EXPECT_EQ(of(testing::with_strategy(s.job(), hybrid_shard, 2)),
              (Counts{{{plan::Operation::all_gather, plan::Group::shard}, twice},
                      {{plan::Operation::reduce_scatter, plan::Group::shard}, each},
                      {{plan::Operation::all_reduce, plan::Group::replicate}, {u, s.psi() / 2}}}));
    EXPECT_EQ(of(testing::with_strategy(s.job(), hybrid_shard_zero2, 2)),
              (Counts{{{plan::Operation::all_gather, plan::Group::shard}, each},
                      {{plan::Operation::reduce_scatter, plan::Group::shard}, each},
                      {{plan::Operation::all_reduce, plan::Group::replicate}, {u, s.psi() / 2}}}));
    // ZeRO stage 1: DDP's buckets and one gather of the parameters.
    job::Job zero = testing::with_mode(s.job(), job::ParallelMode::ddp);
    zero.ddp.shard_optimizer = true;
    EXPECT_EQ(of(zero), (Counts{{{plan::Operation::all_reduce, plan::Group::world}, {1, s.psi()}},
                                {{plan::Operation::all_gather, plan::Group::shard}, {1, s.psi()}}}));
}

TEST(Strategies, Bf16HalvesTheBytes) {
    const Shape s;
    job::Job job = s.job();
    job.precision.param = job::Precision::bf16;
    auto counts = testing::collectives(Program(job));
    EXPECT_EQ((counts[{plan::Operation::all_gather, plan::Group::shard}]), (Count{16, s.psi()}));
    EXPECT_EQ((counts[{plan::Operation::reduce_scatter, plan::Group::shard}]), (Count{8, s.psi()}))
        << "reduced in fp32";
    job.precision.reduce = job::Precision::bf16;
    counts = testing::collectives(Program(job));
    EXPECT_EQ((counts[{plan::Operation::reduce_scatter, plan::Group::shard}]), (Count{8, s.psi() / 2}));
}

TEST(Strategies, AccumulationWithoutSynchronisationReducesOnce) {
    const Shape s;
    job::Job job = s.job();
    job.train.accumulation = 3;
    auto counts = testing::collectives(Program(job));
    EXPECT_EQ((counts[{plan::Operation::all_gather, plan::Group::shard}].count), 3 * 16);
    EXPECT_EQ((counts[{plan::Operation::reduce_scatter, plan::Group::shard}].count), 3 * 8);
    job.train.accumulation_sync = false;
    counts = testing::collectives(Program(job));
    EXPECT_EQ((counts[{plan::Operation::all_gather, plan::Group::shard}].count), 3 * 16);
    EXPECT_EQ((counts[{plan::Operation::reduce_scatter, plan::Group::shard}].count), 8);
    // SHARD_GRAD_OP keeps the gathered parameters until the reduction.
    job.fsdp.sharding_strategy = job::ShardingStrategy::shard_grad_op;
    counts = testing::collectives(Program(job));
    EXPECT_EQ((counts[{plan::Operation::all_gather, plan::Group::shard}].count), 8);
    EXPECT_EQ((counts[{plan::Operation::reduce_scatter, plan::Group::shard}].count), 8);
}

// checkpoint(FSDP(m)) gathers for the recomputation, too; FSDP(checkpoint(m)) recomputes from what the
// backward has gathered.
TEST(Strategies, CheckpointingOutsideOfUnitsGathersThemOnceMoreUnlessTheyEndIt) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 1, 2), "module:Block");
    job.memory.activation_checkpointing.names = {"Block"};
    const auto gathers = [](const job::Job& of) {
        return testing::collectives(Program(of))[{plan::Operation::all_gather, plan::Group::shard}].count;
    };
    EXPECT_EQ(gathers(job), 2 * 3 - 1);
    EXPECT_EQ(gathers(testing::with_wrap(job, "module:CausalSelfAttention")), 3 * 2 + 1) << "and the root's";
    // The recomputation ends inside the unit, which is still gathered when its backward begins.
    EXPECT_EQ(gathers(testing::with_wrap(job, "module:FeedForward")), 2 * 2 + 1);
    job.fsdp.layout = job::FsdpLayout::fsdp2;  // frees nothing after a recomputed forward
    EXPECT_EQ(gathers(testing::with_wrap(job, "module:CausalSelfAttention")), 2 * 2 + 1);
}

// --- order -------------------------------------------------------------------------------------------------

job::Job four_linears() {
    return testing::with_wrap(testing::mlp_job(4, 8, 1, 4), "module:Linear");
}
std::string order_of(const job::Job& job) {
    return testing::host_order(testing::steady(Program(job)));
}

TEST(Order, ShardGradOpGathersOnceAndFreesInTheBackward) {
    EXPECT_EQ(order_of(testing::with_strategy(four_linears(), job::ShardingStrategy::shard_grad_op)),
              "AG0 f0 AG1 f1 AG2 f2 AG3 f3 g3 free3 RS3 g2 free2 RS2 g1 free1 RS1 g0 free0 RS0");
}

TEST(Order, UnitsMayBeTreatedOtherwiseThanTheStrategySays) {
    job::Job job = four_linears();
    job.fsdp.unit = job::parse_unit_rules("path:net.6=false");
    EXPECT_EQ(
        order_of(job),
        "AG0 f0 free0 AG1 f1 free1 AG2 f2 free2 AG3 f3 AG2 g3 free3 RS3 AG1 g2 free2 RS2 AG0 g1 free1 RS1 g0 "
        "free0 RS0");
    job = testing::with_strategy(four_linears(), job::ShardingStrategy::shard_grad_op);
    job.fsdp.unit = job::parse_unit_rules("every:2,Linear=true path:net.4=false");
    EXPECT_EQ(order_of(job),
              "AG0 f0 free0 AG1 f1 AG2 f2 AG3 f3 g3 free3 RS3 g2 free2 RS2 AG0 g1 free1 RS1 g0 free0 RS0");
}

TEST(Order, TheRootOfFullyShardMayBeFreedAfterItsForward) {
    job::Job job = testing::with_wrap(testing::mlp_job(1, 8, 1, 2), "root");
    job.fsdp.layout = job::FsdpLayout::fsdp2;
    EXPECT_EQ(order_of(job), "AG0 f0 g0 free0 RS0");
    job.fsdp.reshard_after_forward = job::Reshard::yes;
    EXPECT_EQ(order_of(job), "AG0 f0 free0 AG0 g0 free0 RS0");
    job = testing::with_wrap(testing::mlp_job(2, 8, 1, 2), "module:Linear");
    job.fsdp.layout = job::FsdpLayout::fsdp2;
    job.fsdp.reshard_after_forward = job::Reshard::no;
    EXPECT_EQ(order_of(job), "AG0 f0 AG1 f1 g1 free1 RS1 g0 free0 RS0");
}

TEST(Order, UnderNoShardGradientsAreOnlyReduced) {
    EXPECT_EQ(order_of(testing::with_strategy(four_linears(), job::ShardingStrategy::no_shard)),
              "f0 f1 f2 f3 g3 AR3 g2 AR2 g1 AR1 g0 AR0");
}

TEST(Order, HybridShardReducesAcrossGroupsAfterEachReduction) {
    EXPECT_EQ(
        order_of(testing::with_strategy(four_linears(), job::ShardingStrategy::hybrid_shard, 2)),
        "AG0 f0 free0 AG1 f1 free1 AG2 f2 free2 AG3 f3 free3 AG3 AG2 g3 free3 RS3 AR3 AG1 g2 free2 RS2 AR2 "
        "AG0 g1 free1 RS1 AR1 g0 free0 RS0 AR0");
}

// A prefetched unit's views are older than the nodes of the module before it, so its gradient is reduced
// after that module's backward.
TEST(Order, ForwardPrefetchGathersTheNextUnitBeforeTheForwardOfThisOne) {
    job::Job job = four_linears();
    job.fsdp.forward_prefetch = true;
    const Program program(job);
    EXPECT_EQ(testing::host_order(program.step(0)).substr(0, 11), "AG0 f0 free")
        << "the order is not known yet";
    EXPECT_EQ(
        testing::host_order(testing::steady(program)),
        "AG0 AG1 f0 free0 AG2 f1 free1 AG3 f2 free2 f3 free3 AG3 AG2 g3 AG1 g2 free3 RS3 AG0 g1 free2 RS2 "
        "g0 free1 RS1 free0 RS0");
}

TEST(Order, LeanKeepsTheLastUnit) {
    job::Job job = four_linears();
    job.fsdp.layout = job::FsdpLayout::lean;
    EXPECT_EQ(
        order_of(job),
        "AG0 f0 free0 AG1 f1 free1 AG2 f2 free2 AG3 f3 AG2 g3 free3 RS3 AG1 g2 free2 RS2 AG0 g1 free1 RS1 "
        "g0 free0 RS0");
}

TEST(Order, ACheckpointedUnitRecomputesFromWhatItsBackwardGathered) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 1, 2), "module:Block");
    job.memory.activation_checkpointing.names = {"Block"};
    job.fsdp.backward_prefetch = job::BackwardPrefetch::none;
    EXPECT_EQ(order_of(job),
              "AG0 AG1 f1 free1 AG2 f2 free2 f0 g0 AG2 r2 g2 free2 RS2 AG1 r1 g1 free1 RS1 free0 RS0");
}

// What a linear layer saves is its input, so that the recomputation ends before its matmul.
TEST(Order, ARecomputationEndsWhenAllSavedTensorsAreThereAgain) {
    job::Job job = four_linears();
    job.memory.activation_checkpointing.names = {"Linear"};
    EXPECT_EQ(order_of(job), order_of(four_linears()));
}

TEST(Order, WithoutSynchronisationNothingIsReducedUntilTheLast) {
    job::Job job = testing::with_wrap(testing::mlp_job(1, 8, 1, 2), "module:Linear");
    job.train.accumulation = 2;
    job.train.accumulation_sync = false;
    EXPECT_EQ(order_of(job), "AG0 f0 free0 AG0 g0 free0 AG0 f0 free0 AG0 g0 free0 RS0");
}

// Units whose memory is allocated when a gather is enqueued: on the host, those gathered and not freed yet;
// on the device, also those whose end of use the host has not seen yet.
struct Held {
    int host = 0, device = 0;
};
Held most_held(const plan::Plan& plan) {
    Held most;
    int gathered = 0;
    std::vector<plan::EventId> in_use;  // frees whose event the host has not waited for
    bool just_freed = false;
    for (const plan::Op& op : plan.ops) {
        const bool unsharded = (op.kind == plan::OpKind::allocate || op.kind == plan::OpKind::free) &&
                               plan.buffers[static_cast<std::size_t>(op.args[0].buffer)].category ==
                                   plan::MemoryCategory::unsharded_parameters;
        if (unsharded) gathered += op.kind == plan::OpKind::allocate ? 1 : -1;
        if (op.kind == plan::OpKind::record_event && just_freed) in_use.push_back(op.event());
        if (op.kind == plan::OpKind::host_wait) std::erase(in_use, op.event());
        just_freed = unsharded && op.kind == plan::OpKind::free;
        most.host = std::max(most.host, gathered);
        most.device = std::max(most.device, gathered + static_cast<int>(in_use.size()));
    }
    return most;
}

TEST(Order, WithTheLimiterTwoUnitsAreGatheredInHostOrderAndThreeOnTheDevice) {
    for (const int group : {0, 2}) {
        job::Job job = testing::with_wrap(testing::mlp_job(12, 8, 1, 4), "module:Linear");
        if (group > 0) job = testing::with_strategy(job, job::ShardingStrategy::hybrid_shard, group);
        const Held limited = most_held(testing::steady(Program(job)));
        EXPECT_EQ(limited.host, 2);
        EXPECT_EQ(limited.device, 3);
        job.fsdp.limit_all_gathers = false;
        EXPECT_GT(most_held(testing::steady(Program(job))).host, 1);
    }
}

TEST(Order, AnOffloadedShardIsOnTheDeviceOnlyForItsGather) {
    job::Job job = four_linears();
    job.fsdp.cpu_offload = true;
    const Program program(job);
    int on_device = 0, gathers = 0;
    for (const plan::Op& op : testing::steady(program).ops) {
        if (op.kind == plan::OpKind::collective && op.collective().operation == plan::Operation::all_gather) {
            ++gathers;
            EXPECT_EQ(on_device, 1) << "the shard that this gather reads";
        }
        if (op.kind != plan::OpKind::allocate && op.kind != plan::OpKind::free) continue;
        const plan::Buffer& buffer =
            testing::steady(program).buffers[static_cast<std::size_t>(op.args[0].buffer)];
        if (buffer.space != plan::MemorySpace::device || buffer.category != plan::MemoryCategory::parameters)
            continue;
        on_device += op.kind == plan::OpKind::allocate ? 1 : -1;
    }
    EXPECT_EQ(on_device, 0);
    EXPECT_EQ(gathers, 8);
}

// --- memory ------------------------------------------------------------------------------------------------

TEST(Account, ShardGradOpHoldsTheWholeModel) {
    const Shape s;
    const std::int64_t expected = s.psi() / s.ranks + s.psi() + 2 * s.w() + (kP + (s.layers - 1) + 1) * s.a();
    EXPECT_EQ(testing::peak_of(testing::with_strategy(s.job(), job::ShardingStrategy::shard_grad_op)),
              expected);
}

TEST(Account, NoShardHoldsTheModelAndItsGradients) {
    const Shape s;
    EXPECT_EQ(testing::peak_of(testing::with_strategy(s.job("root"), job::ShardingStrategy::no_shard)),
              s.psi() + 2 * s.psi() + kP * s.a());
    EXPECT_EQ(testing::peak_of(testing::with_strategy(s.job(), job::ShardingStrategy::no_shard)),
              s.largest([&](std::int64_t i) {
                  return s.psi() + (s.layers - i) * s.w() + 2 * s.w() + (kP + (i - 1) + (i > 1)) * s.a();
              }));
}

TEST(Account, HybridShardHoldsShardsOfItsGroup) {
    const Shape s;
    const auto peak =
        Program(testing::with_strategy(s.job(), job::ShardingStrategy::hybrid_shard, 2)).predict().peak;
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::parameters), s.psi() / 2);
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::unsharded_parameters), 2 * s.w());
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::unsharded_gradients), 2 * s.w());
}

// Shards are on the host; reduced gradients stay on the device until the end of the backward.
TEST(Account, OffloadLeavesFourUnits) {
    for (const Shape s : {Shape{}, Shape{8, 64, 32, 8}, Shape{4, 32, 16, 2}}) {
        job::Job job = s.job();
        job.fsdp.cpu_offload = true;
        EXPECT_EQ(testing::peak_of(job), s.largest([&](std::int64_t i) {
            return (s.layers - i) * s.w() / s.ranks + (1 + (i > 1)) * s.w() + 2 * s.w() +
                   (kP + (i - 1) + (i > 1)) * s.a();
        }));
    }
}

TEST(Account, TheTalkAtLaptopScaleAndAtFullSize) {
    job::Job job = testing::mlp_job(8, 1024, 512, 8);
    const auto offloaded = [](job::Job of) {
        of.fsdp.cpu_offload = true;
        return of;
    };
    EXPECT_EQ(testing::peak_of(testing::with_wrap(job, "root")), 113'348'608);
    EXPECT_EQ(testing::peak_of(testing::with_wrap(job, "module:Linear")), 46'157'824);
    EXPECT_EQ(testing::peak_of(offloaded(testing::with_wrap(job, "module:Linear"))), 41'959'424);
    // Published: 43,218.2, 17,616.6 and 16,016.6 MB, with two workspaces of 8.125 MB.
    job = testing::mlp_job(8, 20480, 10240, 8);
    job.memory.gemm_workspace_bytes = 8'519'680;
    const auto tenths = [](std::int64_t bytes) {
        return std::llround(static_cast<double>(bytes) / (1 << 20) * 10);
    };
    EXPECT_EQ(tenths(testing::peak_of(testing::with_wrap(job, "root"))), 432'182);
    EXPECT_EQ(tenths(testing::peak_of(testing::with_wrap(job, "module:Linear"))), 176'166);
    EXPECT_EQ(tenths(testing::peak_of(offloaded(testing::with_wrap(job, "module:Linear")))), 160'166);
}

// At the end of a unit's gradients fully_shard holds its parameters, the next unit's gather, its gradients,
// the previous reduction and the incoming gradient. With the root alone, a gather's buffer and the copy.
TEST(Account, Fsdp2HoldsTwoBuffersOfParametersAndTwoOfGradients) {
    for (const Shape s : {Shape{}, Shape{8, 64, 32, 8}}) {
        job::Job job = s.job();
        job.fsdp.layout = job::FsdpLayout::fsdp2;
        EXPECT_EQ(testing::peak_of(job), s.largest([&](std::int64_t i) {
            return s.psi() / s.ranks + (s.layers - i) * s.w() / s.ranks + (1 + (i > 1)) * s.w() +
                   (1 + (i < s.layers)) * s.w() + (kP + (i - 1) + (i > 1) + 1) * s.a();
        }));
        job = s.job("root");
        job.fsdp.layout = job::FsdpLayout::fsdp2;
        const plan::MemoryPeak peak = Program(job).predict().peak;
        EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::unsharded_parameters) +
                      testing::at_peak(peak, plan::MemoryCategory::communication) +
                      testing::at_peak(peak, plan::MemoryCategory::unsharded_gradients),
                  2 * s.psi());
    }
}

// The most bytes of these categories that are allocated during a phase of the step.
std::int64_t most_held_in(plan::Phase phase, const job::Job& job,
                          const std::vector<plan::MemoryCategory>& categories) {
    const Program program(job);
    const plan::Plan& plan = testing::steady(program);
    std::int64_t live = 0, most = 0;
    for (const plan::Op& op : plan.ops) {
        if (op.kind != plan::OpKind::allocate && op.kind != plan::OpKind::free) continue;
        const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
        if (std::find(categories.begin(), categories.end(), buffer.category) == categories.end()) continue;
        live += op.kind == plan::OpKind::allocate ? buffer.bytes : -buffer.bytes;
        if (op.phase == phase) most = std::max(most, live);
    }
    return most;
}
// Bytes of gathers' buffers and gathered parameters.
std::int64_t most_gathered_in_forward(const job::Job& job) {
    return most_held_in(plan::Phase::forward, job,
                        {plan::MemoryCategory::unsharded_parameters, plan::MemoryCategory::communication});
}

// fully_shard's wait_for_unshard frees the last gather's buffer before it allocates the parameters into which
// the next one is copied out.
TEST(Account, Fsdp2FreesAGathersBufferBeforeTheNextCopyOut) {
    const Shape s;
    job::Job job = s.job();
    job.fsdp.layout = job::FsdpLayout::fsdp2;
    EXPECT_EQ(most_gathered_in_forward(job), 2 * s.w());
    // If the forward has the peak: the gathered model, and the last unit's buffer.
    job = testing::with_strategy(testing::with_wrap(testing::mlp_job(8, 1024, 8, 8), "module:Linear"),
                                 job::ShardingStrategy::shard_grad_op);
    job.fsdp.layout = job::FsdpLayout::fsdp2;
    job.model.bias = false;
    EXPECT_EQ(testing::peak_of(job), 42'860'544);
}

// Three layers of W bytes in one unit, two ranks: 1.5 W of shards, 1.5 W of gradients in bf16 and 3 W into
// which they are copied as fp32; and activations.
TEST(Account, Fsdp2ConvertsGradientsAsItCopiesThemIn) {
    job::Job job = testing::with_wrap(testing::mlp_job(3, 1024, 1, 2), "root");
    job.fsdp.layout = job::FsdpLayout::fsdp2;
    job.model.bias = false;
    job.precision.param = job::Precision::bf16;
    job.precision.reduce = job::Precision::fp32;
    const plan::MemoryPeak peak = Program(job).predict().peak;
    const std::int64_t w = 1024 * 1024 * 4;
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::parameters), 3 * w / 2);
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::unsharded_gradients), 3 * w / 2);
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::communication), 3 * w);
    EXPECT_LT(peak.bytes, 6 * w + 100'000);
}

// fully_shard under no_sync, three layers of W bytes in one unit: the kept gradients (3 W in fp32) and, in a
// later micro-batch, the one that autograd adds next, in its own type. Where the reduction's type is
// narrower, autograd converts it first (W, and W/2).
TEST(Account, Fsdp2AddsUnconvertedGradientsToTheKeptOnes) {
    job::Job job = testing::with_wrap(testing::mlp_job(3, 1024, 1, 2), "root");
    job.fsdp.layout = job::FsdpLayout::fsdp2;
    job.model.bias = false;
    job.train.accumulation = 3;
    job.train.accumulation_sync = false;
    const std::int64_t w = 1024 * 1024 * 4;
    const auto most = [&](job::Precision param, job::Precision reduce) {
        job.precision.param = param;
        job.precision.reduce = reduce;
        return most_held_in(plan::Phase::backward, job, {plan::MemoryCategory::unsharded_gradients});
    };
    EXPECT_EQ(most(job::Precision::bf16, job::Precision::fp32), 3 * w + w / 2);
    EXPECT_EQ(most(job::Precision::fp32, job::Precision::bf16), 3 * w / 2 + w + w / 2);
    EXPECT_EQ(most(job::Precision::fp32, job::Precision::fp32), 3 * w + w);
    EXPECT_EQ(most(job::Precision::bf16, job::Precision::bf16), 3 * w / 2 + w / 2);
}

// PyTorch's post_reshard frees the copy in low precision after the forward; the result of the conversion for
// the reduction becomes the gradient.
TEST(Account, NoShardInBf16FreesAUnitsCopyAfterEachUse) {
    const Shape s;
    job::Job job = testing::with_strategy(s.job(), job::ShardingStrategy::no_shard);
    job.precision.param = job::Precision::bf16;
    EXPECT_EQ(most_gathered_in_forward(job), s.w() / 2);
    const plan::MemoryPeak peak = Program(job).predict().peak;
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::unsharded_parameters), s.w() / 2);
    job = testing::with_strategy(s.job("root"), job::ShardingStrategy::no_shard);
    job.precision.param = job::Precision::bf16;
    job.precision.reduce = job::Precision::fp32;
    EXPECT_LT(testing::peak_of(job), s.psi() * 26 / 10) << "parameters, gradients in both types";
}

// Otherwise a step would hold more memory than the previous one.
TEST(Account, AStepAllocatesNoBufferTwiceAndLeavesNoneBehind) {
    const Shape s;
    using enum job::ShardingStrategy;
    for (const job::ShardingStrategy strategy :
         {full_shard, shard_grad_op, no_shard, hybrid_shard, hybrid_shard_zero2})
        for (const job::Precision param : {job::Precision::fp32, job::Precision::bf16})
            for (const job::Precision reduce : {job::Precision::fp32, job::Precision::bf16})
                for (const int micro_batches : {1, 2})
                    for (const bool sync : {true, false}) {
                        job::Job job = testing::with_strategy(s.job(), strategy, 2);
                        job.precision.param = param;
                        job.precision.reduce = reduce;
                        job.train.accumulation = micro_batches;
                        job.train.accumulation_sync = sync;
                        const Program program(job);
                        const plan::Plan& plan = testing::steady(program);
                        struct Balance {
                            int now = 0, least = 0, most = 0;  // relative to the step's beginning
                        };
                        std::map<plan::BufferId, Balance> held;
                        for (const plan::Op& op : plan.ops) {
                            if (op.kind != plan::OpKind::allocate && op.kind != plan::OpKind::free) continue;
                            Balance& buffer = held[op.args[0].buffer];
                            buffer.now += op.kind == plan::OpKind::allocate ? 1 : -1;
                            buffer.least = std::min(buffer.least, buffer.now);
                            buffer.most = std::max(buffer.most, buffer.now);
                        }
                        for (const auto& [id, buffer] : held) {
                            const std::string& name = plan.buffers[static_cast<std::size_t>(id)].name;
                            EXPECT_EQ(buffer.now, 0) << name;
                            EXPECT_EQ(buffer.most - buffer.least, 1) << name;
                        }
                        if (::testing::Test::HasFailure()) return;
                    }
}

// Three unit buffers: the unit's parameters, the next one's, and one flat gradient.
TEST(Account, LeanHoldsThreeUnits) {
    for (const Shape s : {Shape{}, Shape{8, 64, 32, 8}}) {
        job::Job job = s.job();
        job.fsdp.layout = job::FsdpLayout::lean;
        EXPECT_EQ(testing::peak_of(job), s.largest([&](std::int64_t i) {
            return s.psi() / s.ranks + (s.layers - i) * s.w() / s.ranks + (1 + (i > 1)) * s.w() + s.w() +
                   (kP + (i - 1) + (i > 1) + 1) * s.a();
        }));
    }
}

TEST(Account, Bf16HalvesWhatIsGatheredAndItsGradients) {
    const Shape s;
    job::Job job = s.job();
    job.precision.param = job.precision.reduce = job::Precision::bf16;
    const plan::MemoryPeak peak = Program(job).predict().peak;
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::parameters), s.psi() / s.ranks) << "fp32 shards";
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::unsharded_parameters), s.w());
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::unsharded_gradients), s.w());
}

// Parameters once, gradients and buckets; with views of buckets the gradients are the buckets.
TEST(Account, DdpWithBucketViewsHoldsOneCopyLess) {
    const Shape s;
    job::Job job = testing::with_mode(s.job(), job::ParallelMode::ddp);
    const plan::MemoryPeak copies = Program(job).predict().peak;
    EXPECT_EQ(testing::at_peak(copies, plan::MemoryCategory::communication), s.psi());
    job.ddp.gradient_as_bucket_view = true;
    const plan::MemoryPeak views = Program(job).predict().peak;
    EXPECT_EQ(testing::at_peak(views, plan::MemoryCategory::communication), 0);
    EXPECT_LE(testing::at_peak(views, plan::MemoryCategory::gradients), s.psi() + 2 * s.w());
}

TEST(Account, ZeroOneShardsOnlyTheOptimizerState) {
    const Shape s;
    job::Job job = testing::with_mode(s.job(), job::ParallelMode::ddp);
    job.optimizer.type = job::OptimizerType::adamw;
    job.ddp.shard_optimizer = true;
    const plan::MemoryPeak peak = Program(job).predict().peak;
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::parameters), s.psi());
    EXPECT_EQ(testing::at_peak(peak, plan::MemoryCategory::optimizer_state), 2 * s.psi() / s.ranks);
}

TEST(Account, NoStepLeaksWhateverTheOptions) {
    const testing::SampleText text;
    std::vector<job::Job> jobs;
    for (const job::FsdpLayout layout :
         {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
        for (const bool offload : {false, true}) {
            for (const job::Precision precision : {job::Precision::fp32, job::Precision::bf16}) {
                for (const int accumulation : {1, 2, -2}) {
                    job::Job job = testing::with_wrap(testing::gpt_job(text, 1, 4), "module:Block");
                    job.fsdp.layout = layout;
                    job.fsdp.cpu_offload = offload;
                    job.fsdp.forward_prefetch = true;
                    job.precision.param = precision;
                    job.train.accumulation = std::abs(accumulation);
                    job.train.accumulation_sync = accumulation > 0;
                    job.train.clip_norm = 1;
                    job.optimizer.type = job::OptimizerType::lamb;
                    job.data.validation = 0.1;
                    jobs.push_back(job);
                    jobs.push_back(testing::with_strategy(job, job::ShardingStrategy::hybrid_shard_zero2, 2));
                }
            }
        }
    }
    for (const job::Job& job : jobs) {
        const Program program(job);
        plan::MemoryAccount account;
        account.walk(program.setup());
        for (std::size_t i = 0; i <= program.warm_up_steps(); ++i) account.walk(program.step(i));
        const std::int64_t live = account.counter().live_bytes();
        account.walk(*program.evaluation());
        account.walk(testing::steady(program));
        EXPECT_EQ(account.counter().live_bytes(), live);
    }
}

// GradScaler: unscale, find an overflow on any rank, clip, read it, step. In a reduction of fp16 over 8 ranks
// 4 divides before it and 2 after it.
TEST(Strategies, Fp16UnscalesAndAsksAllRanksBeforeItSteps) {
    job::Job job = testing::with_wrap(testing::mlp_job(3, 8, 2, 8), "module:Linear");
    job.train.clip_norm = 1;
    job.precision.param = job.precision.reduce = job::Precision::fp16;
    const sharding::Program program(job);
    std::string order;
    std::vector<double> factors;
    for (const plan::Op& op : testing::steady(program).ops) {
        if (op.kind == plan::OpKind::host_call && op.call() == plan::HostCall::read_overflow)
            order += " read";
        if (op.kind == plan::OpKind::collective && op.collective().group == plan::Group::world) {
            EXPECT_EQ(op.collective().reduction, plan::Reduction::max);
            EXPECT_EQ(op.bytes, 4);
            order += " max";
        }
        if (op.kind == plan::OpKind::collective &&
            op.collective().operation == plan::Operation::reduce_scatter) {
            EXPECT_EQ(op.collective().dtype, plan::DType::fp16);
            EXPECT_EQ(op.collective().divisor, 1);
        }
        if (op.kind != plan::OpKind::kernel) continue;
        if (op.kernel().kernel == plan::Kernel::scale) factors.push_back(op.kernel().scalars[0]);
        if (op.kernel().kernel == plan::Kernel::unscale) order += " unscale";
        if (op.kernel().kernel == plan::Kernel::clip_factor) order += " clip";
        if (op.kernel().kernel == plan::Kernel::sgd) order += " sgd";
    }
    EXPECT_EQ(order, " unscale unscale unscale max clip read sgd sgd sgd");
    EXPECT_EQ(factors, (std::vector<double>{0.25, 0.5, 0.25, 0.5, 0.25, 0.5}));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sharding
