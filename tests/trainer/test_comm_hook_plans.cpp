// What DDP's communication hooks send, read from the Plan: operations, bytes and divisors by the closed forms
// in sharding/hook_*.cpp, from which step on, and in which memory.
//
// An mlp of 4 layers of 64 features on 4 ranks has one bucket of four 64 x 64 matrices and four vectors.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan_jobs.h"

namespace shardscope::trainer::sharding {
namespace TEST_FILE {

constexpr std::int64_t kWidth = 64, kLayers = 4, kRanks = 4;
constexpr std::int64_t kElements = kLayers * (kWidth * kWidth + kWidth);

job::Job hooked(const std::string& hook) {
    job::Job job = testing::with_mode(testing::mlp_job(kLayers, kWidth, 2, kRanks), job::ParallelMode::ddp);
    job.ddp.comm_hook = job::parse_comm_hook(hook);
    return job;
}

struct Sent {
    plan::Operation operation;
    plan::DType dtype;
    std::int64_t bytes;
    int divisor;
    bool operator==(const Sent&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sent& sent) {
    return out << traces::schema::name(sent.operation) << " of " << sent.bytes << " bytes, divided by "
               << sent.divisor;
}

std::vector<Sent> sent_in(const plan::Plan& plan) {
    std::vector<Sent> all;
    for (const plan::Op& op : plan.ops) {
        if (op.kind != plan::OpKind::collective) continue;
        EXPECT_EQ(op.stream, plan::Stream::post_backward);
        const plan::CollectiveOp& own = op.collective();
        all.push_back({own.operation, own.dtype, op.bytes, own.divisor});
    }
    return all;
}

using enum plan::Operation;
using enum plan::DType;
const std::vector<Sent> kWhole = {{all_reduce, fp32, 4 * kElements, kRanks}};

TEST(CommHooks, NarrowTypesHalveTheBytesFromTheFirstStepOn) {
    for (const auto& [hook, type] : {std::pair{"bf16", bf16}, {"fp16", fp16}}) {
        const Program program(hooked(hook));
        const std::vector<Sent> half = {{all_reduce, type, 2 * kElements, 1}};
        EXPECT_EQ(sent_in(program.step(0)), half);
        EXPECT_EQ(sent_in(testing::steady(program)), half);
    }
}

TEST(CommHooks, PowerSgdSendsTwoMatricesOfItsRankAndTheVectors) {
    for (const std::int64_t rank : {1, 3}) {
        const Program program(hooked("powersgd:" + std::to_string(rank)));
        EXPECT_EQ(sent_in(testing::steady(program)),
                  (std::vector<Sent>{{all_reduce, fp32, 4 * kLayers * kWidth, kRanks},
                                     {all_reduce, fp32, 4 * kLayers * kWidth * rank, 1},
                                     {all_reduce, fp32, 4 * kLayers * kWidth * rank, kRanks}}));
    }
}

// (64 + 64) 2 R < 64 64 holds up to R = 15.
TEST(CommHooks, PowerSgdLeavesMatricesWholeThatWouldNotBecomeHalf) {
    EXPECT_EQ(sent_in(testing::steady(Program(hooked("powersgd:15")))).size(), 3U);
    EXPECT_EQ(sent_in(testing::steady(Program(hooked("powersgd:16")))), kWhole);
}

TEST(CommHooks, TopkGathersPlacesAndValuesOfItsShare) {
    for (const auto& [share, k] : {std::pair{"0.01", (kElements + 99) / 100}, {"1", kElements}}) {
        const Program program(hooked(std::string("topk:") + share));
        EXPECT_EQ(sent_in(testing::steady(program)),
                  (std::vector<Sent>{{all_gather, int32, kRanks * k * 4, 1},
                                     {all_gather, fp32, kRanks * k * 4, 1}}));
    }
}

// Steps 0 and 1 find the buckets; the first compressed one makes what the later ones find.
TEST(CommHooks, ThoseThatKeepAnErrorBeginAtTheirStep) {
    for (const std::string hook : {"powersgd:2", "topk:0.1"}) {
        for (const std::int64_t start : {2, 3, 1000}) {
            job::Job job = hooked(hook);
            job.ddp.comm_hook_start = start;
            const Program program(job);
            const auto first = static_cast<std::size_t>(start);
            EXPECT_EQ(program.warm_up_steps(), first + 1);
            EXPECT_EQ(program.stretches().size(), start == 2 ? 4U : 5U);
            for (const std::size_t step : {std::size_t{0}, first - 1}) {
                const std::vector<Sent> sent = sent_in(program.step(step));
                EXPECT_EQ(sent.back(), kWhole.front()) << hook << ", step " << step;
            }
            EXPECT_EQ(sent_in(program.step(first)), sent_in(testing::steady(program)));
            EXPECT_EQ(program.predict().steps.size(), first + 3);
        }
    }
}

// Of every bucket the error, of PowerSGD also Q: R numbers for each column.
TEST(CommHooks, ErrorsAreMemoryOfCommunication) {
    const auto communication = [](const std::string& hook) {
        const Program program(hooked(hook));
        std::int64_t bytes = 0;
        for (const plan::Plan* plan : program.plans()) {
            for (const plan::Op& op : plan->ops) {
                const bool counts = op.kind == plan::OpKind::allocate || op.kind == plan::OpKind::free;
                if (!counts) continue;
                const plan::Buffer& buffer = plan->buffers[static_cast<std::size_t>(op.args[0].buffer)];
                if (buffer.category != plan::MemoryCategory::communication) continue;
                bytes += op.kind == plan::OpKind::allocate ? buffer.bytes : -buffer.bytes;
            }
        }
        return bytes;
    };
    const std::int64_t bucket = communication("none");
    EXPECT_EQ(bucket, 4 * kElements);
    EXPECT_EQ(communication("bf16"), bucket);
    EXPECT_EQ(communication("powersgd:3") - bucket, 4 * kLayers * (kWidth * kWidth + 3 * kWidth));
    EXPECT_EQ(communication("topk:0.1") - bucket, 4 * kElements);
}

// A hook averages over its group; what a step means beyond that is done before.
TEST(CommHooks, TheMeanOverMicroBatchesAndTheSumOverTokensComeBefore) {
    const auto scale_of = [](const job::Job& job) {
        const Program program(job);
        for (const plan::Op& op : testing::steady(program).ops) {
            const bool scales = op.kind == plan::OpKind::kernel && op.stream == plan::Stream::post_backward &&
                                op.kernel().kernel == plan::Kernel::scale && op.kernel().dtype == fp32;
            if (scales) return op.kernel().scalars[0];
        }
        return 1.0;
    };
    job::Job job = hooked("powersgd:2");
    EXPECT_EQ(scale_of(job), 1.0);
    job.train.accumulation = 4;
    job.train.accumulation_sync = false;
    EXPECT_EQ(scale_of(job), 0.25);
    const testing::SampleText text;
    job::Job context = testing::with_mode(testing::gpt_job(text, 2, 4), job::ParallelMode::ddp);
    context.parallel.context = 2;
    context.ddp.comm_hook = job::parse_comm_hook("bf16");
    EXPECT_EQ(scale_of(context), 2.0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sharding
