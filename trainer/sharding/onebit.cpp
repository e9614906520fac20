#include "trainer/sharding/onebit.h"

#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/sharding/optimizer.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

constexpr std::int64_t kBits = 32;  // of a word

}  // namespace

Onebit::Onebit(job::OptimizerType type, const job::OptimizerSection& options, int micro_batches,
               const plan::Mesh& mesh, std::vector<plan::Buffer>& persistent, const OptimizerSlot& slot)
    : is_lamb_(type == job::OptimizerType::onebit_lamb),
      options_(options),
      share_(1.0 / micro_batches),
      group_(mesh.all_data()),
      ranks_(mesh.size(group_)),
      elements_(slot.elements),
      part_((elements_ + ranks_ * kBits - 1) / (ranks_ * kBits) * kBits),
      segments_(slot.segments) {
    const auto declare = [&](const char* what, std::int64_t elements) {
        persistent.push_back({slot.name + what, plan::MemoryCategory::optimizer_state,
                              plan::MemorySpace::device, elements * kFloat, slot.unit, slot.module});
        return static_cast<plan::BufferId>(persistent.size() - 1);
    };
    worker_error_ = declare(".worker_error", elements_);
    server_error_ = declare(".server_error", part_);
    if (is_lamb_) factors_ = declare(".factors", std::ssize(segments_));
}

// The rank's part of a buffer with as many elements of each rank.
plan::Arg Onebit::own(const plan::Tensor& whole, std::int64_t elements) const {
    const std::int64_t bytes = elements * size_of(whole.dtype);
    return {whole.view.buffer, 0, bytes, bytes, group_};
}

Onebit::Signs Onebit::new_signs(plan::PlanBuilder& builder, std::int64_t words) const {
    const auto tensor = [&](const char* name, std::int64_t elements, plan::DType type) {
        return builder.new_tensor(name, plan::MemoryCategory::communication, elements, type);
    };
    Signs signs{tensor("signs", words, plan::DType::int32),
                tensor("scales", ranks_ * std::ssize(segments_), plan::DType::fp32)};
    builder.memset(signs.words);  // also the bits that stand for nothing
    return signs;
}

plan::Op& Onebit::kernel(plan::PlanBuilder& builder, plan::Kernel kernel, const char* name,
                         std::vector<plan::Arg> args, std::array<std::int64_t, 6> dims,
                         std::int64_t flops) const {
    plan::Op& op = builder.kernel(kernel, name, std::move(args), dims, flops);
    op.kernel().segments = builder.add_segments(segments_);
    return op;
}

void Onebit::collective(plan::PlanBuilder& builder, plan::Operation operation, const plan::Tensor& output,
                        const plan::Arg& input) const {
    builder.collective({.operation = operation, .dtype = output.dtype, .group = group_}, output, input,
                       output.bytes(), plan::Stream::post_backward);
}

// Errors of 0; with LAMB factors of 1 and, at the step that freezes it, a variance that goes on.
void Onebit::begin(plan::PlanBuilder& builder, const OptimizerSlot& slot, std::int64_t number) {
    if (std::exchange(has_begun_, true)) return;
    for (const plan::BufferId error : {worker_error_, server_error_}) {
        builder.allocate(error, plan::Stream::compute);
        builder.memset(builder.whole(error));
    }
    if (number == options_.freeze_step) {
        kernel(builder, plan::Kernel::onebit_freeze, "onebit_freeze", {slot.state[1]}, {elements_, 0},
               2 * elements_);
    }
    if (!is_lamb_) return;
    builder.allocate(factors_, plan::Stream::compute);
    builder
        .kernel(plan::Kernel::init_constant, "initialize", {builder.whole(factors_)},
                {0, 0, std::ssize(segments_)})
        .kernel()
        .scalars = {1};
    if (number == options_.freeze_step) {
        builder.memcpy(slot.state[2], slot.state[1], traces::schema::kCopyDeviceToDevice);
    }
}

void Onebit::step(plan::PlanBuilder& builder, const OptimizerSlot& slot, std::int64_t number) {
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, slot.module, slot.unit);
    begin(builder, slot, number);
    const plan::Arg m = slot.state[0], v = slot.state[1];
    plan::Tensor last;
    if (is_lamb_) {
        last =
            builder.new_tensor("momentum of the last step", plan::MemoryCategory::optimizer_state, elements_);
        builder.memcpy(last, m, traces::schema::kCopyDeviceToDevice);
    }
    kernel(builder, plan::Kernel::onebit_momentum, "onebit_momentum", {m, slot.gradient, v}, {elements_, 0},
           3 * elements_)
        .kernel()
        .scalars = {options_.betas[0], share_};
    const plan::Tensor part = serve(builder, slot);
    const Signs all = new_signs(builder, words());
    kernel(builder, plan::Kernel::compress_signs, "compress_signs",
           {own(all.words, part_ / kBits), own(all.scales, std::ssize(segments_)), part,
            builder.whole(server_error_), v},
           {part_, part_}, kernels::compress_signs_flops(part_));
    builder.order(plan::Stream::compute, plan::Stream::post_backward);
    collective(builder, plan::Operation::all_gather, all.words, own(all.words, part_ / kBits));
    collective(builder, plan::Operation::all_gather, all.scales, own(all.scales, std::ssize(segments_)));
    builder.order(plan::Stream::post_backward, plan::Stream::compute);
    kernel(builder, plan::Kernel::expand_signs, "expand_signs", {m, all.words, all.scales, v},
           {elements_, part_, ranks_}, elements_);
    update(builder, slot, last);
}

// The mean of the ranks' momentum, of the part that this rank serves.
plan::Tensor Onebit::serve(plan::PlanBuilder& builder, const OptimizerSlot& slot) const {
    const plan::Arg m = slot.state[0], v = slot.state[1];
    plan::Tensor received = builder.new_tensor("signs of all ranks", plan::MemoryCategory::communication,
                                               words(), plan::DType::int32);
    const Signs mine = new_signs(builder, words());
    kernel(builder, plan::Kernel::compress_signs, "compress_signs",
           {mine.words, own(mine.scales, std::ssize(segments_)), m, builder.whole(worker_error_), v},
           {elements_, 0}, kernels::compress_signs_flops(elements_));
    builder.order(plan::Stream::compute, plan::Stream::post_backward);
    collective(builder, plan::Operation::all_to_all, received, mine.words);
    collective(builder, plan::Operation::all_gather, mine.scales, own(mine.scales, std::ssize(segments_)));
    builder.order(plan::Stream::post_backward, plan::Stream::compute);
    plan::Tensor part =
        builder.new_tensor("mean of a part of the momentum", plan::MemoryCategory::communication, part_);
    kernel(builder, plan::Kernel::average_signs, "average_signs", {part, received, mine.scales},
           {part_, part_, ranks_}, ranks_ * part_);
    return part;
}

void Onebit::update(plan::PlanBuilder& builder, const OptimizerSlot& slot, const plan::Tensor& last) const {
    std::vector<plan::Arg> args = {slot.parameter, slot.state[0]};
    if (is_lamb_) args.push_back(last);
    args.push_back(slot.state[1]);
    if (is_lamb_) {
        args.push_back(slot.state[2]);
        for (const plan::BufferId numbers : {slot.moments, factors_}) args.push_back(builder.whole(numbers));
    }
    kernel(builder, is_lamb_ ? plan::Kernel::onebit_lamb : plan::Kernel::onebit_adam,
           is_lamb_ ? "onebit_lamb_step" : "onebit_adam_step", std::move(args), {elements_, 0},
           (is_lamb_ ? 26 : 7) * elements_)
        .kernel()
        .scalars = {options_.betas[0], options_.betas[1], options_.eps, options_.weight_decay,
                    static_cast<double>(options_.freeze_step)};
}

}  // namespace shardscope::trainer::sharding
