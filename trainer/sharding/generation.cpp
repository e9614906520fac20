// The Plans of a Program that continues texts: of the whole context, and with a key/value cache of the
// prompts and of one more token each. They keep no gradients, and read the logits of the last token.
#include "trainer/model/attention.h"
#include "trainer/model/layers.h"
#include "trainer/sharding/program.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

void Program::read_logits(plan::PlanBuilder& builder, const plan::Tensor& logits) const {
    const plan::Tensor on_host =
        builder.new_tensor("logits (host)", plan::MemoryCategory::other, logits.elements(), plan::DType::fp32,
                           plan::Stream::host, plan::MemorySpace::pinned);
    builder.memcpy(on_host, logits, traces::schema::kCopyDeviceToHost);
    const plan::EventId copied = builder.new_event();
    builder.record(copied, plan::Stream::compute);
    builder.host_wait(copied);
    builder.host_call(plan::HostCall::read_logits, "read_logits", {on_host});
}

// One buffer for all layers: the keys and values of each, [texts, context, keys of a token].
void Program::declare_cache() {
    keys_.assign(tree_.modules.size(), {});
    const std::int64_t tokens = std::int64_t{texts_.count} * job_.model.context;
    const std::int64_t bytes_of_element = size_of(dtype_of(job_.precision.param));
    std::int64_t bytes = 0;
    for (const model::Module* module : tree_.modules) {
        const auto* attention = dynamic_cast<const model::SelfAttention*>(module);
        if (!attention) continue;
        const std::int64_t own = tokens * attention->keys_of_token() * bytes_of_element;
        keys_[static_cast<std::size_t>(module->id)] = {-1, bytes, own};
        bytes += own;
    }
    cache_ = parallelism_->declare(
        {"key/value cache", plan::MemoryCategory::activations, plan::MemorySpace::device, bytes, -1, -1});
    for (plan::Arg& keys : keys_)
        if (keys.bytes > 0) keys.buffer = cache_;
}

void Program::make_generation() {
    if (texts_.prompt == 0 || texts_.prompt + texts_.tokens > job_.model.context)
        evaluation_ = make_forward(plan::Phase::prefill, "forward", nullptr);
    if (texts_.prompt == 0) return;
    model::Cached cached;
    cached.keys = keys_;
    cached.tokens = texts_.prompt;
    cached.prefill = true;
    prefill_ = make_forward(plan::Phase::prefill, "prefill", &cached);
    cached.tokens = 1;
    cached.prefill = false;
    decode_ = make_forward(plan::Phase::decode, "decode", &cached);
}

// `cached`: null if the forward is of the whole context, whose logits are read, too.
plan::Plan Program::make_forward(plan::Phase phase, const char* name, model::Cached* cached) {
    plan::PlanBuilder builder = new_builder(plan::PlanKind::generation);
    parallelism_->begin_evaluation(builder);
    {
        const plan::PlanBuilder::Scope scope(builder, phase, -1, -1);
        const plan::PlanBuilder::Range range(builder, name);
        plan::Tape tape(builder);
        tape.set_recording(false);
        model::Graph graph = new_graph(builder, tape);
        graph.training = false;
        const auto numbers = [&](const char* what, std::int64_t elements, bool on_host) {
            return builder.new_tensor(what, plan::MemoryCategory::activations, elements, plan::DType::int32,
                                      on_host ? plan::Stream::host : plan::Stream::compute,
                                      on_host ? plan::MemorySpace::pinned : plan::MemorySpace::device);
        };
        // The positions of the tokens, and behind them the row of each text that is read.
        const std::int64_t rows = texts_.count * (cached ? cached->tokens : job_.model.context);
        const std::int64_t bytes = rows * size_of(plan::DType::int32);
        const plan::Tensor host_tokens = numbers("tokens (host)", rows, true);
        const plan::Tensor host_places = numbers("positions (host)", rows + texts_.count, true);
        builder.host_call(plan::HostCall::next_batch, "next_tokens", {host_tokens, host_places});
        const plan::Tensor tokens = numbers("tokens", rows, false);
        const plan::Tensor places = numbers("positions", rows + texts_.count, false);
        builder.memcpy(tokens, host_tokens, traces::schema::kCopyHostToDevice);
        if (cached) {
            builder.memcpy(places, host_places, traces::schema::kCopyHostToDevice);
            cached->positions = {places.view.buffer, 0, bytes};
            cached->last = {places.view.buffer, bytes, places.bytes() - bytes};
            graph.cached = cached;
        }
        read_logits(builder, to_dtype(graph, call(graph, *tree_.root, tokens), plan::DType::fp32));
        parallelism_->end_evaluation();
    }
    return builder.take();
}

}  // namespace shardscope::trainer::sharding
