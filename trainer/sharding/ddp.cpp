#include "trainer/sharding/ddp.h"

#include <fmt/format.h>

namespace shardscope::trainer {

namespace {
constexpr std::int64_t kFloat = sizeof(float);
}

DistributedDataParallel::DistributedDataParallel(std::unique_ptr<Module> inner)
    : Module("DistributedDataParallel", "") {
    add_child(std::move(inner));
}

Tensor DistributedDataParallel::forward(Graph& graph, const Tensor& input) {
    const PlanBuilder::Range range(graph.builder, "DistributedDataParallel.forward");
    return call(graph, child(0), input);
}

Ddp::Ddp(const ModuleTree& tree, const OptimizerSection& optimizer, const DdpSection& options, int ranks)
    : Replicated(tree, optimizer),
      ranks_(ranks),
      bucket_of_(tree.parameters.size(), -1),
      offset_of_(tree.parameters.size(), 0) {
    const auto limit = [&](std::size_t bucket) {
        return (bucket == 0 ? options.first_bucket_mb : options.bucket_cap_mb) * (1 << 20);
    };
    for (auto it = tree.parameters.rbegin(); it != tree.parameters.rend(); ++it) {
        const Parameter& parameter = **it;
        // As in PyTorch, a bucket is closed once it has reached its limit.
        if (buckets_.empty() ||
            static_cast<double>(buckets_.back().elements * kFloat) >= limit(buckets_.size() - 1)) {
            buckets_.emplace_back();
        }
        Bucket& bucket = buckets_.back();
        bucket_of_[static_cast<std::size_t>(parameter.id)] = static_cast<int>(buckets_.size()) - 1;
        offset_of_[static_cast<std::size_t>(parameter.id)] = bucket.elements * kFloat;
        bucket.parameters.push_back(&parameter);
        bucket.elements += parameter.elements;
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        Bucket& bucket = buckets_[i];
        const std::string name = fmt::format("bucket {}", i);
        persistent_.push_back({name, MemoryCategory::communication, MemorySpace::device,
                               bucket.elements * kFloat, static_cast<int>(i), 0});
        bucket.buffer = static_cast<BufferId>(persistent_.size() - 1);
        units_.push_back({0, name, bucket.elements, bucket.elements, bucket.elements});
    }
}

int Ddp::unit_of(const Parameter& parameter) const {
    return bucket_of_[static_cast<std::size_t>(parameter.id)];
}

void Ddp::setup(PlanBuilder& builder) {
    Replicated::setup(builder);
    // Rank 0's values for everybody: one coalesced broadcast, as DDP's constructor does.
    std::int64_t bytes = 0;
    std::vector<Arg> parameters;
    for (const OptimizerSlot& slot : optimizer_.slots()) {
        parameters.push_back(builder.whole(slot.parameter));
        bytes += parameters.back().bytes;
    }
    const PlanBuilder::Range range(builder, "_sync_module_states");
    {
        const Tensor flat = builder.new_tensor("broadcast_coalesced", MemoryCategory::communication, bytes);
        std::vector<Arg> args = parameters;
        args.insert(args.begin(), flat);
        builder.kernel(Kernel::cat, "flatten", args, {});
        builder.order(Stream::compute, Stream::post_backward);
        builder.collective(Operation::broadcast, flat, flat, bytes, 0, false, Stream::post_backward);
        builder.order(Stream::post_backward, Stream::compute);
        builder.kernel(Kernel::split, "unflatten", args, {});
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        const PlanBuilder::Scope scope(builder, Phase::setup, 0, static_cast<int>(i));
        builder.allocate(buckets_[i].buffer, Stream::compute);
    }
}

void Ddp::begin_step(PlanBuilder& builder) {
    Replicated::begin_step(builder);
    next_bucket_ = 0;
    for (Bucket& bucket : buckets_) bucket.pending = bucket.parameters.size();
}

void Ddp::gradient_ready(const Parameter& parameter, Tensor gradient) {
    Bucket& bucket = buckets_[static_cast<std::size_t>(unit_of(parameter))];
    const PlanBuilder::Scope scope(builder(), Phase::backward, builder().module(), unit_of(parameter));
    const Arg slot{bucket.buffer, offset_of_[static_cast<std::size_t>(parameter.id)], gradient.bytes()};
    builder().kernel(Kernel::cat, "copy_to_bucket", {slot, gradient}, {});
    --bucket.pending;
    launch_ready_buckets();
}

void Ddp::launch_ready_buckets() {
    for (; next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0; ++next_bucket_) {
        const PlanBuilder::Scope scope(builder(), Phase::backward, builder().module(),
                                       static_cast<int>(next_bucket_));
        const Arg buffer = builder().whole(buckets_[next_bucket_].buffer);
        builder().order(Stream::compute, Stream::post_backward);
        builder().collective(Operation::all_reduce, buffer, buffer, buffer.bytes, 0, true,
                             Stream::post_backward);
    }
}

void Ddp::end_backward() {
    builder().order(Stream::post_backward, Stream::compute);
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        const PlanBuilder::Scope scope(builder(), Phase::backward, 0, static_cast<int>(i));
        const PlanBuilder::Range range(builder(), "torch.distributed.ddp.reducer::copy_bucket_to_grad");
        std::vector<Arg> args = {builder().whole(buckets_[i].buffer)};
        for (const Parameter* parameter : buckets_[i].parameters) {
            args.push_back(
                builder().whole(optimizer_.slot(static_cast<std::size_t>(parameter->id)).gradient));
        }
        builder().kernel(Kernel::split, "copy_from_bucket", std::move(args), {});
    }
}

}  // namespace shardscope::trainer
