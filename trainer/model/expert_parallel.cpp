#include "trainer/model/expert_parallel.h"

#include <string>
#include <utility>

#include "trainer/model/layer_tools.h"
#include "trainer/model/tensor_parallel.h"

namespace shardscope::trainer::model {

namespace {

plan::Tensor integers(Graph& graph, const char* name, std::int64_t n, bool on_host = false) {
    return graph.builder.new_tensor(name, plan::MemoryCategory::activations, n, plan::DType::int32,
                                    on_host ? plan::Stream::host : plan::Stream::compute,
                                    on_host ? plan::MemorySpace::pinned : plan::MemorySpace::device);
}

// One way of the rows, without a backward.
plan::Tensor exchange_rows(Graph& graph, const char* name, const plan::Tensor& rows, const Routed& arriving,
                           const plan::Tensor& sent, const plan::Tensor& received, std::int64_t width) {
    plan::Tensor arrived = graph.activation(name, arriving.rows * width, rows.dtype);
    graph.builder.exchange_rows(arrived, rows, sent, received, width, arriving.expected, plan::Group::expert);
    return arrived;
}

plan::Tensor exchanged(Graph& graph, const char* name, const plan::Tensor& rows, const Routed& from,
                       const Routed& to, const plan::Tensor& sent, const plan::Tensor& received,
                       std::int64_t width) {
    plan::Tensor arrived;
    {
        const plan::PlanBuilder::Range range(graph.builder, "_c10d_functional::all_to_all_single");
        arrived = exchange_rows(graph, name, rows, to, sent, received, width);
    }
    if (!wants(graph, rows)) return arrived;
    arrived.value = graph.tape.new_value();
    graph.tape.node("_AllToAllSingleBackward",
                    [&graph, from, sent, received, width, value = arrived.value, of = rows.value] {
                        const plan::Tensor gradient = graph.tape.take_gradient(value);
                        graph.tape.accumulate(of, exchange_rows(graph, "exchanged rows.grad", gradient, from,
                                                                received, sent, width));
                    });
    return arrived;
}

}  // namespace

TensorCut expert_cut(int ranks) {
    if (ranks == 1) return {};
    return {Cut::rows, ranks, {}, plan::Group::expert};
}

ExpertExchange exchange_counts(Graph& graph, const Routed& here, std::int64_t most) {
    const std::int64_t n = here.groups();
    ExpertExchange made;
    made.here = here;
    made.there = {integers(graph, "rows of experts", n), most, here.expected};
    made.to_ranks = integers(graph, "rows to ranks (host)", n, true);
    made.from_ranks = integers(graph, "rows from ranks (host)", n, true);
    const plan::PlanBuilder::Range range(graph.builder, "_c10d_functional::all_to_all_single");
    graph.builder.collective(
        {.operation = plan::Operation::all_to_all, .dtype = plan::DType::int32, .group = plan::Group::expert},
        made.there.counts, here.counts, here.counts.bytes(), plan::Stream::compute);
    graph.builder.memcpy(made.to_ranks, here.counts, traces::schema::kCopyDeviceToHost);
    graph.builder.memcpy(made.from_ranks, made.there.counts, traces::schema::kCopyDeviceToHost);
    const plan::EventId copied = graph.builder.new_event();
    graph.builder.record(copied, plan::Stream::compute);
    graph.builder.host_wait(copied);
    return made;
}

plan::Tensor send_to_experts(Graph& graph, const plan::Tensor& rows, const ExpertExchange& exchange,
                             std::int64_t width) {
    return exchanged(graph, "dispatched rows", rows, exchange.here, exchange.there, exchange.to_ranks,
                     exchange.from_ranks, width);
}

plan::Tensor send_back(Graph& graph, const plan::Tensor& rows, const ExpertExchange& exchange,
                       std::int64_t width) {
    return exchanged(graph, "returned rows", rows, exchange.there, exchange.here, exchange.from_ranks,
                     exchange.to_ranks, width);
}

void sum_over_tokens(Graph& graph, const plan::Tensor& shares) {
    const auto over = [&](plan::Group group) {
        graph.builder.collective({.operation = plan::Operation::all_reduce, .group = group}, shares, shares,
                                 shares.bytes(), plan::Stream::compute);
    };
    if (graph.sequence) over(plan::Group::tensor);
    if (graph.data * graph.context > 1) over(graph.all_data);
}

}  // namespace shardscope::trainer::model
