#include "trainer/model/mixture_of_experts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/expert_parallel.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"

namespace shardscope::trainer::model {

namespace {

constexpr std::size_t kRouter = 0, kExperts = 1, kDropout = 2;
constexpr std::size_t kFirst = 0, kSecond = 1, kThird = 2;  // children of Experts

// A matmul of the rows that exist. `weight`: the place of the weight among the args; the others are rows.
void grouped_kernel(Graph& graph, plan::Kernel kernel, std::string_view transposes,
                    std::vector<plan::Arg> args, std::size_t weight, const std::array<std::int64_t, 6>& dims,
                    const Routed& routed) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i + 1 < args.size(); ++i)
        bytes += i == weight ? args[i].bytes : args[i].bytes / dims[0] * routed.expected;
    graph
        .kernel(kernel, "grouped_" + matmul_name(graph, transposes), std::move(args), dims,
                kernels::linear_forward_cost(routed.expected, dims[1], dims[2], false).flops)
        .bytes = bytes;
}

}  // namespace

// --- experts
// ------------------------------------------------------------------------------------------------

GroupedLinear::GroupedLinear(std::string attribute, const ExpertsShape& experts, int in, int out, float std)
    : Module("GroupedLinear", std::move(attribute)),
      experts_(experts.experts / experts.ranks),
      in_(in),
      out_(out) {
    add_parameter("weight", std::int64_t{experts.experts} * out, in, {InitKind::normal, 0, std},
                  expert_cut(experts.ranks));
}

plan::Tensor GroupedLinear::forward(Graph& graph, const plan::Tensor& x) {
    const Parameter& weight = parameters()[kWeight];
    const Routed routed = graph.routed;
    const std::int64_t rows = x.elements() / in_;
    const std::array<std::int64_t, 6> dims = {rows, in_, out_, experts_, routed.groups()};
    const bool wanted = wants(graph, x, weight);
    if (wanted) graph.tape.saves_inputs();
    plan::Tensor y = output_of(graph, path + ".output", rows * out_, wanted);
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::_grouped_mm");
        grouped_kernel(graph, plan::Kernel::grouped_linear_forward, "nt",
                       {y, x, graph.store.parameter(weight), routed.counts}, 2, dims, routed);
    }
    if (!wanted) return y;
    graph.tape.node(
        "GroupedMmBackward0", [this, &graph, &weight, routed, dims, from = x.value,
                               saved = weight.trained ? x : plan::Tensor{}, value = y.value]() mutable {
            plan::Tensor dy = graph.tape.take_gradient(value);
            if (from >= 0) {
                plan::Tensor dx = graph.activation(path + ".input.grad", dims[0] * in_);
                grouped_kernel(graph, plan::Kernel::grouped_linear_backward_input, "nn",
                               {dx, dy, graph.store.parameter(weight), routed.counts}, 2, dims, routed);
                graph.tape.accumulate(from, std::move(dx));
            }
            if (!weight.trained) return;
            graph.tape.weight_work(
                [&graph, &weight, routed, dims, dy = std::move(dy), saved = std::move(saved)]() mutable {
                    plan::Tensor dw = graph.gradient(weight);
                    grouped_kernel(graph, plan::Kernel::grouped_linear_backward_weight, "tn",
                                   {dw, dy, saved, routed.counts}, 0, dims, routed);
                    dy = saved = {};
                    graph.tape.hand_on([&graph, &weight, dw = std::move(dw)]() mutable {
                        graph.store.gradient_ready(weight, std::move(dw));
                    });
                });
        });
    return y;
}

Experts::Experts(std::string attribute, const MixtureShape& shape)
    : Module("Experts", std::move(attribute)), gated_(shape.gated), divided_(shape.experts.ranks > 1) {
    const auto linear = [&](const char* called, int in, int out, float std) {
        add_child(std::make_unique<GroupedLinear>(called, shape.experts, in, out, std));
    };
    linear(gated_ ? "w1" : "expand", shape.width, shape.hidden, shape.std);
    if (gated_) {
        linear("w3", shape.width, shape.hidden, shape.std);
    } else {
        add_child(
            std::make_unique<Activation>(std::string(kernels::name_of(shape.activation)), shape.activation));
    }
    linear(gated_ ? "w2" : "projection", shape.hidden, shape.width, shape.projection_std);
}

plan::Tensor Experts::forward(Graph& graph, const plan::Tensor& input) {
    if (!gated_) return call_in_order(graph, *this, input);
    plan::Tensor gate = call(graph, child(kFirst), input), up = call(graph, child(kSecond), input);
    plan::Tensor x = silu_mul(graph, path, gate, up);
    gate = up = {};
    return call(graph, child(kThird), x);
}

// --- router, dispatch, combine
// ------------------------------------------------------------------------------

MixtureOfExperts::MixtureOfExperts(std::string attribute, const MixtureShape& shape)
    : Module("MixtureOfExperts", std::move(attribute)), shape_(shape) {
    add_child(std::make_unique<Linear>("router", shape.width, shape.experts.experts, false, shape.std));
    add_child(std::make_unique<Experts>("experts", shape));
    if (shape.dropout > 0) add_child(std::make_unique<Dropout>("dropout", shape.dropout));
}

plan::Tensor MixtureOfExperts::forward(Graph& graph, const plan::Tensor& input) {
    const std::int64_t tokens = input.elements() / shape_.width;
    const Choices choices =
        choose(graph, to_dtype(graph, call(graph, child(kRouter), input), plan::DType::fp32), tokens);
    plan::Tensor rows = compute(graph, dispatch(graph, input, choices), choices);
    plan::Tensor y = combine(graph, rows, choices);
    rows = {};
    return shape_.dropout > 0 ? call(graph, child(kDropout), y) : y;
}

// The experts' results for the rows, in the same order.
plan::Tensor MixtureOfExperts::compute(Graph& graph, const plan::Tensor& rows, const Choices& choices) {
    const auto run = [&](const Routed& routed, const plan::Tensor& of) {
        graph.routed = routed;
        plan::Tensor y = call(graph, child(kExperts), of);
        graph.routed = {};
        return y;
    };
    if (shape_.experts.ranks == 1) return run(choices.routed, rows);
    const std::int64_t ranks = shape_.experts.ranks, own = shape_.experts.experts / ranks,
                       k = shape_.experts.per_token, limit = capacity(choices.tokens * k);
    std::int64_t most = ranks * choices.tokens * std::min(k, own);
    if (limit > 0) most = std::min(most, ranks * own * limit);
    const ExpertExchange exchange = exchange_counts(graph, choices.routed, most);
    plan::Tensor y = run(exchange.there, send_to_experts(graph, rows, exchange, shape_.width));
    return send_back(graph, y, exchange, shape_.width);
}

// Of each expert; 0: no limit.
std::int64_t MixtureOfExperts::capacity(std::int64_t choices) const {
    const ExpertsShape& of = shape_.experts;
    if (of.capacity_factor == 0) return 0;
    return static_cast<std::int64_t>(
        std::ceil(of.capacity_factor * static_cast<double>(choices) / static_cast<double>(of.experts)));
}

MixtureOfExperts::Choices MixtureOfExperts::choose(Graph& graph, const plan::Tensor& logits,
                                                   std::int64_t tokens) const {
    const ExpertsShape& of = shape_.experts;
    const std::int64_t experts = of.experts, k = of.per_token, all = tokens * k;
    const auto integers = [&](const char* what, std::int64_t n) {
        return graph.activation(path + what, n, plan::DType::int32);
    };
    const bool balances = of.balance_loss > 0 && graph.training && wants(graph, logits);
    Choices made;
    made.tokens = tokens;
    const std::int64_t limit = capacity(all), most = limit > 0 ? std::min(all, experts * limit) : all;
    plan::Tensor probabilities =
        graph.activation(path + ".probabilities", tokens * experts, plan::DType::fp32);
    const plan::Tensor chosen = integers(".chosen", all);
    plan::Tensor shares;
    made.weights = graph.activation(path + ".weights", all, plan::DType::fp32);
    made.places = integers(".places", all);
    made.routed = {integers(".counts", experts), most, most};
    if (balances) shares = graph.activation(path + ".shares", experts, plan::DType::fp32);
    if (wants(graph, logits)) made.weights.value = graph.tape.new_value();
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::topk");
        graph.kernel(plan::Kernel::choose_experts, "choose_experts",
                     {made.weights, chosen, probabilities, logits}, {tokens, experts, k},
                     kernels::choose_experts_cost(tokens, experts, k).flops);
        graph.kernel(plan::Kernel::route, "route", {made.places, made.routed.counts, shares, chosen},
                     {all, experts, limit});
    }
    if (made.weights.value < 0) return made;
    if (balances) sum_over_tokens(graph, shares);
    // Each share is a number of choices of all ranks: f = share / (all choices), and the gradient of a rank's
    // tokens is divided by the number of ranks that read different samples later, as that of its loss.
    const std::int64_t of_micro_batch = tokens * (graph.sequence ? graph.tensor : 1) * graph.context;
    const double balance = of.balance_loss * static_cast<double>(experts) /
                           static_cast<double>(graph.data * k * of_micro_batch * of_micro_batch);
    graph.tape.node("TopkBackward0", [this, &graph, chosen, probabilities, shares, balance, tokens, experts,
                                      k, value = made.weights.value, from = logits.value] {
        const plan::Tensor dweights = graph.tape.take_gradient(value);
        plan::Tensor dlogits = graph.activation(path + ".logits.grad", tokens * experts, plan::DType::fp32);
        graph
            .kernel(plan::Kernel::choose_experts_backward, "choose_experts_backward",
                    {dlogits, dweights, chosen, probabilities, shares}, {tokens, experts, k},
                    kernels::choose_experts_backward_cost(tokens, experts, k).flops)
            .kernel()
            .scalars = {shares ? balance : 0.0};
        graph.tape.accumulate(from, std::move(dlogits));
    });
    return made;
}

plan::Tensor MixtureOfExperts::dispatch(Graph& graph, const plan::Tensor& input,
                                        const Choices& choices) const {
    const std::int64_t k = shape_.experts.per_token, all = choices.tokens * k, width = shape_.width;
    plan::Tensor rows = output_of(graph, path + ".rows", choices.routed.rows * width, wants(graph, input));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::index_select");
        graph.kernel(plan::Kernel::scatter_rows, "scatter_rows", {rows, {}, input, {}, {}, choices.places},
                     {all, k, width});
    }
    if (rows.value < 0) return rows;
    graph.tape.node("IndexSelectBackward0", [this, &graph, places = choices.places, tokens = choices.tokens,
                                             all, k, width, value = rows.value, from = input.value] {
        const plan::Tensor drows = graph.tape.take_gradient(value);
        plan::Tensor dx = graph.activation(path + ".input.grad", tokens * width);
        graph.kernel(plan::Kernel::gather_rows, "gather_rows", {dx, drows, {}, places}, {all, k, width},
                     kernels::move_rows_cost(all, width).flops);
        graph.tape.accumulate(from, std::move(dx));
    });
    return rows;
}

plan::Tensor MixtureOfExperts::combine(Graph& graph, const plan::Tensor& rows, const Choices& choices) const {
    const std::int64_t k = shape_.experts.per_token, all = choices.tokens * k, width = shape_.width;
    plan::Tensor y = output_of(graph, path + ".output", choices.tokens * width,
                               wants(graph, rows) || wants(graph, choices.weights));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::scatter_add");
        check_output(graph, graph.kernel(plan::Kernel::gather_rows, "gather_rows",
                                         {y, rows, choices.weights, choices.places}, {all, k, width},
                                         kernels::move_rows_cost(all, width).flops));
    }
    if (y.value < 0) return y;
    graph.tape.node("ScatterAddBackward0", [this, &graph, rows, weights = choices.weights,
                                            places = choices.places, all, k, width, value = y.value] {
        const plan::Tensor dy = graph.tape.take_gradient(value);
        plan::Tensor drows = graph.activation(path + ".rows.grad", rows.elements());
        plan::Tensor dweights = graph.activation(path + ".weights.grad", all, plan::DType::fp32);
        graph.kernel(plan::Kernel::scatter_rows, "scatter_rows", {drows, dweights, dy, rows, weights, places},
                     {all, k, width}, kernels::move_rows_cost(2 * all, width).flops);
        graph.tape.accumulate(rows.value, std::move(drows));
        graph.tape.accumulate(weights.value, std::move(dweights));
    });
    return y;
}

}  // namespace shardscope::trainer::model
