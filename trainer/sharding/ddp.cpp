#include "trainer/sharding/ddp.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

plan::Mesh with_shards(plan::Mesh mesh, bool shard_optimizer) {
    mesh.shard = shard_optimizer ? mesh.size(plan::Group::data) : 1;
    return mesh;
}

// Of the flat parameters; 0: each parameter has a buffer of its own.
int parts_of(const job::Job& job, const plan::Mesh& mesh) {
    if (job.ddp.shard_optimizer) return mesh.size(plan::Group::data);
    return is_onebit(job.optimizer.type) || job.train.local_steps > 0 ? 1 : 0;
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(std::unique_ptr<model::Module> inner)
    : model::Module("DistributedDataParallel", "") {
    add_child(std::move(inner));
}

plan::Tensor DistributedDataParallel::forward(model::Graph& graph, const plan::Tensor& input) {
    const plan::PlanBuilder::Range range(graph.builder, "DistributedDataParallel.forward");
    static_cast<Ddp&>(graph.store).before_forward();
    return call(graph, child(0), input);
}

Ddp::Ddp(const job::Job& job, plan::Mesh mesh, const model::ModuleTree& tree,
         const std::vector<const model::Parameter*>& order)
    : Replicated(job, with_shards(mesh, job.ddp.shard_optimizer), tree, parts_of(job, mesh)),
      options_(job.ddp),
      hook_(make_comm_hook(job)),
      counts_only_(job.ddp.static_graph),
      accumulation_sync_(job.train.accumulation_sync),
      bucket_of_(tree.parameters.size(), -1),
      offset_of_(tree.parameters.size(), 0) {
    if (options_.gradient_as_bucket_view) {
        if (options_.shard_optimizer) {
            throw job::JobError(where(job, "ddp.gradient_as_bucket_view") +
                                "ddp.gradient_as_bucket_view: a sharded optimizer keeps its gradients in one "
                                "buffer of its own; set one of the two to false");
        }
        optimizer_.keep_gradients();
    }
    for (const model::Parameter* p : tree.parameters) own_gradients_.push_back(gradient_arg(*p));
    if (job.train.local_steps > 0) {
        local_.emplace(job.train, mesh_, persistent_, optimizer_.slot(0));
        return;  // without buckets
    }
    std::vector<const model::Parameter*> reversed = trained();
    std::reverse(reversed.begin(), reversed.end());
    std::vector<Bucket> first;
    for (const std::vector<const model::Parameter*>& part : by_group(reversed)) {
        const auto unit = static_cast<int>(units_.size());
        first.push_back(
            declare_bucket(unit == 0 ? "bucket of the first step" : "bucket of experts", unit, part));
    }
    use(std::move(first));
    if (order.empty()) return;
    next_buckets_ = declare_buckets(order);
    for (const Bucket& bucket : next_buckets_)
        if (hook_) hook_->declare(*this, as_hook_sees(bucket));
}

std::vector<std::vector<const model::Parameter*>> Ddp::by_group(
    const std::vector<const model::Parameter*>& parameters) const {
    std::vector<std::vector<const model::Parameter*>> parts;
    for (const bool experts : {false, true}) {
        std::vector<const model::Parameter*> part;
        for (const model::Parameter* p : parameters)
            if (p->is_cut(plan::Group::expert) == experts) part.push_back(p);
        if (!part.empty()) parts.push_back(std::move(part));
    }
    if (parts.empty()) parts.emplace_back();
    return parts;
}

Ddp::Bucket Ddp::declare_bucket(const std::string& name, int unit,
                                const std::vector<const model::Parameter*>& parameters) {
    Bucket bucket;
    bucket.parameters = parameters;
    bucket.unit = unit;
    bucket.group = parameters.empty() ? mesh_.all_data() : group_of(*parameters.front());
    for (const model::Parameter* p : parameters) bucket.elements += p->elements();
    const plan::MemoryCategory category = options_.gradient_as_bucket_view
                                              ? plan::MemoryCategory::gradients
                                              : plan::MemoryCategory::communication;
    bucket.buffer = declare({name, category, plan::MemorySpace::device, bucket.elements * kFloat, unit, 0});
    units_.push_back({0, name, bucket.elements, bucket.elements, bucket.elements, bucket.elements * kFloat});
    return bucket;
}

// A bucket is closed once it has reached its limit, which is smaller for the first.
std::vector<Ddp::Bucket> Ddp::declare_buckets(const std::vector<const model::Parameter*>& order) {
    struct Open {
        std::vector<const model::Parameter*> parameters;
        std::int64_t bytes = 0;
    };
    std::vector<Bucket> buckets;
    Open open[2];  // one for each group
    const auto close = [&](Open& bucket) {
        buckets.push_back(declare_bucket(fmt::format("bucket {}", buckets.size()),
                                         static_cast<int>(units_.size()), bucket.parameters));
        bucket = {};
    };
    for (const model::Parameter* p : order) {
        Open& bucket = open[p->is_cut(plan::Group::expert) ? 1 : 0];
        bucket.parameters.push_back(p);
        bucket.bytes += bytes_of(*p);
        const double limit =
            (buckets.empty() ? options_.first_bucket_mb : options_.bucket_cap_mb) * (1 << 20);
        if (static_cast<double>(bucket.bytes) >= limit) close(bucket);
    }
    for (Open& bucket : open)
        if (!bucket.parameters.empty()) close(bucket);
    return buckets;
}

void Ddp::use(std::vector<Bucket> buckets) {
    buckets_ = std::move(buckets);
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        std::int64_t offset = 0;
        for (const model::Parameter* p : buckets_[b].parameters) {
            bucket_of_[static_cast<std::size_t>(p->id)] = static_cast<int>(b);
            offset_of_[static_cast<std::size_t>(p->id)] = offset;
            offset += bytes_of(*p);
        }
    }
}

std::unique_ptr<Parallelism> Ddp::with_what_it_learned(const job::Job& job) const {
    if (!next_buckets_.empty() || !are_ordered()) return nullptr;
    return std::make_unique<Ddp>(job, mesh_, tree_, ready_order_);
}

// If gradients are views, they are where their bucket is.
void Ddp::place(const Bucket& bucket) {
    if (offload_) return;  // its memory is that of one reduction
    builder().allocate(bucket.buffer, plan::Stream::compute);
    if (!options_.gradient_as_bucket_view) return;
    for (const model::Parameter* p : bucket.parameters) {
        gradient_arg(*p) = slot_in_bucket(*p);
        optimizer_.set_gradient(slot_of(*p), slot_in_bucket(*p));
    }
}

void Ddp::rebuild_buckets() {
    const plan::PlanBuilder::Scope scope(builder(), plan::Phase::forward, 0,
                                         -1);  // the reducer does it there
    std::vector<plan::BufferId> old;
    for (const Bucket& bucket : buckets_) old.push_back(bucket.buffer);
    const auto free_old = [&] {
        for (const plan::BufferId buffer : old)
            if (!offload_) builder().free(buffer);
    };
    // Gradients that are views of an old bucket are moved.
    std::vector<std::pair<const model::Parameter*, plan::Arg>> moved;
    for (const model::Parameter* p : ready_order_) {
        if (!is_own(*p) && has_gradient(*p)) moved.emplace_back(p, gradient_arg(*p));
    }
    if (moved.empty()) free_old();
    use(next_buckets_);
    // The reducer gives all ranks rank 0's buckets: the indices of their parameters with the number of
    // buckets, then their sizes.
    for (const std::size_t numbers : {ready_order_.size() + 1, buckets_.size()}) {
        const plan::Tensor indices =
            builder().new_tensor("bucket indices", plan::MemoryCategory::communication,
                                 static_cast<std::int64_t>(numbers), plan::DType::int32);
        builder().memset(indices);
        builder().order(plan::Stream::compute, plan::Stream::post_backward);
        builder().collective(
            {.operation = plan::Operation::broadcast, .dtype = plan::DType::int32, .group = mesh_.all_data()},
            indices, indices, indices.bytes(), plan::Stream::post_backward);
        builder().order(plan::Stream::post_backward, plan::Stream::compute);
    }
    for (const Bucket& made : buckets_) {
        const plan::PlanBuilder::Scope of_bucket(builder(), plan::Phase::forward, 0, made.unit);
        place(made);
    }
    for (const auto& [parameter, from] : moved)
        builder().kernel(plan::Kernel::cat, "copy_to_bucket", {gradient_arg(*parameter), from}, {});
    if (!moved.empty()) free_old();
}

plan::Arg Ddp::slot_in_bucket(const model::Parameter& p) const {
    const auto id = static_cast<std::size_t>(p.id);
    return {buckets_[static_cast<std::size_t>(bucket_of_[id])].buffer, offset_of_[id], bytes_of(p)};
}

Ddp::Bucket& Ddp::bucket_of(const model::Parameter& p) {
    return buckets_[static_cast<std::size_t>(bucket_of_[static_cast<std::size_t>(p.id)])];
}

int Ddp::unit_of(const model::Parameter& p) const {
    const int bucket = bucket_of_[static_cast<std::size_t>(p.id)];
    return bucket < 0 ? -1 : buckets_[static_cast<std::size_t>(bucket)].unit;
}

std::string Ddp::state_key() const {
    if (local_) return Replicated::state_key() + (local_->has_begun() ? " outer" : "");
    if (!first_buckets_) return Replicated::state_key() + (hook_has_begun_ ? " hook" : "");
    return Replicated::state_key() + (counts_only_ ? " first buckets, counting" : " first buckets") +
           (ready_order_.empty() ? "" : ", ordered");
}

std::optional<std::int64_t> Ddp::next_change(std::int64_t step) const {
    if (local_) {
        const std::int64_t first = optimizer_.first_step();
        const auto change = local_->next_change(first + step);
        return change ? std::optional(*change - first) : std::nullopt;
    }
    if (const auto exchange = optimizer_.first_exchange(); exchange && step <= *exchange) return exchange;
    const bool begins = traits(options_.comm_hook.kind).keeps_error && step <= options_.comm_hook_start;
    return begins ? std::optional(options_.comm_hook_start) : std::nullopt;
}

bool Ddp::is_hooked() const {
    if (!hook_) return false;
    if (!traits(options_.comm_hook.kind).keeps_error) return true;
    return !first_buckets_ && step_ >= options_.comm_hook_start;
}

HookBucket Ddp::as_hook_sees(const Bucket& bucket) const {
    return {bucket.unit,
            bucket.parameters,
            {bucket.buffer, 0, bucket.elements * kFloat},
            bucket.group,
            mesh_.size(bucket.group)};
}

void Ddp::setup(plan::PlanBuilder& builder) {
    Replicated::setup(builder);
    // Every rank gets the values of the first one with the same parameters: a coalesced broadcast, as in
    // DDP's constructor.
    const plan::PlanBuilder::Range range(builder, "_sync_module_states");
    for (const std::vector<const model::Parameter*>& part : by_group(tree_.held)) {
        std::int64_t elements = 0;
        std::vector<plan::Arg> args = {{}};
        for (const model::Parameter* p : part) {
            args.push_back(parameter_arg(*p));
            elements += p->elements();
        }
        const plan::Tensor flat =
            builder.new_tensor("broadcast_coalesced", plan::MemoryCategory::communication, elements);
        args.front() = flat;
        builder.kernel(plan::Kernel::cat, "flatten", args, {});
        builder.order(plan::Stream::compute, plan::Stream::post_backward);
        builder.collective({.operation = plan::Operation::broadcast, .group = group_of(*part.front())}, flat,
                           flat, flat.bytes(), plan::Stream::post_backward);
        builder.order(plan::Stream::post_backward, plan::Stream::compute);
        builder.kernel(plan::Kernel::split, "unflatten", args, {});
    }
    copy_parameters_out(builder);
}

void Ddp::begin_step(plan::PlanBuilder& builder) {
    Replicated::begin_step(builder);
    if (local_) return local_->begin(builder, optimizer_.slot(0));
    if (optimizer_.exchanges_momentum()) {
        for (const Bucket& bucket : buckets_)
            if (placed_) builder.free(bucket.buffer);
        placed_ = false;
        return;
    }
    if (std::exchange(placed_, true)) return;
    for (const Bucket& bucket : buckets_) {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::none, 0, bucket.unit);
        place(bucket);
    }
}

void Ddp::begin_micro_batch(MicroBatch micro) {
    Replicated::begin_micro_batch(micro);
    next_bucket_ = 0;
}

void Ddp::begin_backward(MicroBatch micro) {
    Replicated::begin_backward(micro);
    synchronizes_ = (micro.last() || accumulation_sync_) && !keeps_gradients();
}

void Ddp::before_forward() {
    if (!evaluating_ && !keeps_gradients()) prepare_buckets();
    if (!local_ && (micro_.first() || accumulation_sync_)) sync_buffers();
}

void Ddp::prepare_buckets() {
    if (first_buckets_ && are_ordered() && !next_buckets_.empty()) {
        first_buckets_ = false;
        rebuild_buckets();
    }
    // Without synchronization no bucket is prepared, so gradients have memory of their own until it is.
    if (micro_.first() && !synchronizes_) {
        for (const model::Parameter* p : trained())
            gradient_arg(*p) = own_gradients_[static_cast<std::size_t>(p->id)];
    }
    for (Bucket& bucket : buckets_) bucket.pending = bucket.parameters.size();
}

// The buffers of the group's first rank: before each forward that follows one whose gradients are reduced
// (require_forward_param_sync), or with the mean of the parameters.
void Ddp::sync_buffers() {
    if (!options_.broadcast_buffers || buffers_.empty()) return;
    const plan::PlanBuilder::Range range(builder(), "_sync_buffers");
    std::int64_t elements = 0;
    for (const model::ModuleBuffer* b : module_buffers_) elements += b->elements;
    const plan::Tensor flat =
        builder().new_tensor("broadcast_coalesced", plan::MemoryCategory::communication, elements);
    std::vector<plan::Arg> args = {flat};
    args.insert(args.end(), buffers_.begin(), buffers_.end());
    builder().kernel(plan::Kernel::cat, "flatten", args, {});
    builder().order(plan::Stream::compute, plan::Stream::post_backward);
    builder().collective({.operation = plan::Operation::broadcast, .group = mesh_.all_data()}, flat, flat,
                         flat.bytes(), plan::Stream::post_backward);
    builder().order(plan::Stream::post_backward, plan::Stream::compute);
    builder().kernel(plan::Kernel::split, "unflatten", args, {});
}

bool Ddp::is_own(const model::Parameter& parameter) const {
    return gradient_arg(parameter).buffer == own_gradients_[static_cast<std::size_t>(parameter.id)].buffer;
}

plan::Tensor Ddp::new_gradient(const model::Parameter& parameter) {
    if (is_own(parameter)) return Replicated::new_gradient(parameter);
    return builder().new_tensor(parameter.path + ".grad (new)", plan::MemoryCategory::gradients,
                                parameter.elements());
}

// Autograd cannot write into a view of a bucket; its gradients are copied, or added, into their place.
void Ddp::gradient_ready(const model::Parameter& parameter, plan::Tensor gradient) {
    if (parameter.partial_gradient) sum_over_tensor_group(builder(), gradient);
    if (!is_own(parameter) && !has_gradient(parameter)) {
        builder().kernel(plan::Kernel::cat, "copy_to_bucket", {gradient_arg(parameter), gradient}, {});
    }
    Replicated::gradient_ready(parameter, std::move(gradient));
}

void Ddp::gradient_complete(const model::Parameter& parameter) {
    if (offload_ && (!synchronizes_ || &parameter == waiting_)) return leave_device(parameter);
    if (!synchronizes_ || counts_only_ || &parameter == waiting_) return;
    if (!are_ordered()) ready_order_.push_back(&parameter);
    copy_to_bucket(parameter);
    launch_ready_buckets();
}

void Ddp::copy_to_bucket(const model::Parameter& parameter) {
    Bucket& bucket = bucket_of(parameter);
    const plan::PlanBuilder::Scope scope(builder(), plan::Phase::backward, builder().module(), bucket.unit);
    const plan::Arg slot = slot_in_bucket(parameter);
    plan::Arg& gradient = gradient_arg(parameter);
    if (offload_ && bucket.pending == bucket.parameters.size())
        builder().allocate(bucket.buffer, plan::Stream::compute);
    if (gradient.buffer != slot.buffer || gradient.offset != slot.offset) {
        builder().kernel(plan::Kernel::cat, "copy_to_bucket", {slot, gradient}, {});
        if (options_.gradient_as_bucket_view || offload_) builder().free(gradient.buffer);
        if (options_.gradient_as_bucket_view) gradient = slot;
    }
    --bucket.pending;
}

void Ddp::launch_ready_buckets() {
    for (; next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0; ++next_bucket_) {
        const Bucket& bucket = buckets_[next_bucket_];
        const plan::PlanBuilder::Scope scope(builder(), plan::Phase::backward, builder().module(),
                                             bucket.unit);
        builder().order(plan::Stream::compute, plan::Stream::post_backward);
        reduce(bucket);
        if (offload_) leave_device(bucket);
    }
}

void Ddp::leave_device(const Bucket& bucket) {
    for (const model::Parameter* p : bucket.parameters) {
        const plan::Arg gradient = slot_in_bucket(*p);
        if (is_last_gradient(*p)) divide(optimizer_.slot(slot_of(*p)), gradient, plan::Stream::post_backward);
        copy_gradient_out(*p, gradient);
    }
    builder().free(bucket.buffer);
    arrive(bucket.parameters);
}

void Ddp::reduce(const Bucket& bucket) {
    const HookBucket own = as_hook_sees(bucket);
    const int divisor = repeats_sums()       ? own.ranks
                        : accumulation_sync_ ? mesh_.data_size()
                                             : mesh_.data_size() * micro_.count;
    if (!is_hooked()) return hook_all_reduce(builder(), own, own.buffer, divisor);
    const plan::PlanBuilder::Range range(builder(), hook_->name());
    // A hook averages over the group: what else is meant (the mean over micro-batches, the sum over a context
    // group) is done before, so that what it keeps is on the scale of the gradients.
    if (divisor != own.ranks) {
        builder()
            .kernel(plan::Kernel::scale, "aten::mul_", {own.buffer}, {bucket.elements}, bucket.elements,
                    kHookStream)
            .kernel()
            .scalars = {static_cast<double>(own.ranks) / divisor};
    }
    hook_->reduce(builder(), own);
    hook_has_begun_ = true;
}

// With no_sync the only reduction divides by everything. Otherwise each reduction averages over the ranks,
// and the sum over micro-batches remains to be divided; that of experts, which fewer ranks have averaged, by
// the ranks that divide them, too; and that of the ranks of a context group, whose sum and not average is
// meant, is multiplied by their number.
double Ddp::final_divisor(const OptimizerSlot& slot) const {
    if (local_) return micro_.count;
    if (!repeats_sums() || optimizer_.exchanges_momentum()) return 1;
    return static_cast<double>(micro_.count) * (slot.of_experts() ? mesh_.expert : 1) / mesh_.context;
}

void Ddp::end_backward() {
    if (synchronizes_) {
        if (std::exchange(counts_only_, false)) {
            const plan::PlanBuilder::Range range(builder(),
                                                 "torch.distributed.ddp.reducer::delay_all_reduce");
            for (const Bucket& bucket : buckets_)
                for (const model::Parameter* p : bucket.parameters) copy_to_bucket(*p);
            launch_ready_buckets();
        }
        builder().order(plan::Stream::post_backward, plan::Stream::compute);
        for (const Bucket& bucket : buckets_) {
            if (options_.gradient_as_bucket_view || offload_) break;
            const plan::PlanBuilder::Scope scope(builder(), plan::Phase::backward, 0, bucket.unit);
            const plan::PlanBuilder::Range range(builder(),
                                                 "torch.distributed.ddp.reducer::copy_bucket_to_grad");
            std::vector<plan::Arg> args = {builder().whole(bucket.buffer)};
            for (const model::Parameter* p : bucket.parameters) args.push_back(gradient_arg(*p));
            builder().kernel(plan::Kernel::split, "copy_from_bucket", std::move(args), {});
        }
    }
    Replicated::end_backward();
}

void Ddp::after_optimizer() {
    Replicated::after_optimizer();
    if (!local_ || !local_->averages_after(optimizer_.first_step() + step_)) return;
    local_->average(builder(), optimizer_.slot(0));
    sync_buffers();
}

}  // namespace shardscope::trainer::sharding
