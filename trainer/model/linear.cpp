#include <cmath>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"
#include "trainer/model/tensor_parallel.h"

namespace shardscope::trainer::model {

namespace {

std::int64_t decodes(const Graph& graph) {
    return graph.cached && !graph.cached->prefill ? 1 : 0;
}

}  // namespace

Linear::Linear(std::string attribute, int in, int out, bool bias, float normal_std,
               kernels::ActivationKind fused, const TensorCut& cut)
    : Module("Linear", std::move(attribute)),
      bias_(bias),
      fused_(cut.cut == Cut::columns ? kernels::ActivationKind::none : fused) {
    const float bound = 1.0F / std::sqrt(static_cast<float>(in));
    const bool normal = normal_std > 0;
    const Parameter& whole = add_parameter(
        "weight", out, in,
        normal ? Init{InitKind::normal, 0, normal_std} : Init{InitKind::uniform, -bound, bound}, cut);
    in_ = whole.width;
    out_ = whole.rows;
    if (bias) {
        add_parameter("bias", out, 1, normal ? Init{} : Init{InitKind::uniform, -bound, bound},
                      cut.cut == Cut::rows ? cut : whole_in_pair(cut.ranks));
    }
}

Linear::Linear(std::string attribute, const Parameter& tied, int tensor)
    : Module("Linear", std::move(attribute)),
      in_(tied.width),
      out_(tied.rows),
      bias_(false),
      tied_(&tied),
      enters_(tensor) {}

std::unique_ptr<Linear> make_head(const HeadShape& shape, const Parameter& table) {
    if (shape.tied) return std::make_unique<Linear>("head", table, shape.tensor);
    auto head = std::make_unique<Linear>("head", shape.width, shape.vocabulary, false, shape.normal_std,
                                         kernels::ActivationKind::none, first_of_pair(shape.tensor));
    head->enter_tensor_region_of(shape.tensor);
    return head;
}

std::vector<const Parameter*> Linear::shared_parameters() const {
    if (tied_) return {tied_};
    return {};
}

std::vector<plan::Arg> Linear::with_parameters(const Graph& graph, std::vector<plan::Arg> args) const {
    args.push_back(graph.store.parameter(weight()));
    if (bias_ && !is_summed()) args.push_back(graph.store.parameter(parameters()[kBias]));
    return args;
}

plan::Tensor Linear::output(Graph& graph, const plan::Tensor& x, bool wanted) {
    const std::int64_t rows = x.elements() / in_;
    plan::Tensor y = output_of(graph, path + ".output", rows * out_, wanted);
    const plan::PlanBuilder::Range range(graph.builder, "aten::linear");
    const bool adds_bias = bias_ && !is_summed();
    check_output(graph, graph.kernel(plan::Kernel::linear_forward, matmul_name(graph, "nt"),
                                     with_parameters(graph, {y, x}), {rows, in_, out_, decodes(graph)},
                                     kernels::linear_forward_cost(rows, in_, out_, adds_bias).flops));
    if (!is_summed()) return y;
    y = leave_tensor_region(graph, y);
    if (bias_) add_bias(graph, y, graph.store.parameter(parameters()[kBias]), out_);
    return y;
}

plan::Tensor Linear::int8_output(Graph& graph, const plan::Tensor& x) const {
    const std::int64_t rows = x.elements() / in_;
    plan::Tensor y = graph.activation(path + ".output", rows * out_);
    const plan::PlanBuilder::Range range(graph.builder, "aten::_weight_int8pack_mm");
    std::vector<plan::Arg> args = {y, x, graph.store.parameter(weight()), graph.store.scales(weight())};
    if (bias_) args.push_back(graph.store.parameter(parameters()[kBias]));
    check_output(graph, graph.kernel(plan::Kernel::int8_linear_forward, "int8pack_mm", std::move(args),
                                     {rows, in_, out_},
                                     kernels::int8_linear_forward_cost(rows, in_, out_, bias_).flops));
    return y;
}

// The activation's module receives the sum if its backward reads that (GELU), else the activation itself:
// ReLU's backward reads its result, and without a backward nothing reads the sum. Either tensor has the
// sum's identity on the tape, because this module's backward takes the sum's gradient.
plan::Tensor Linear::activated_output(Graph& graph, const plan::Tensor& x, bool wanted) {
    const std::int64_t rows = x.elements() / in_;
    const bool relu = fused_ == kernels::ActivationKind::relu;
    // A checkpointed Linear is called while the tape is paused, but its activation may be called while it
    // records.
    const bool keeps_sum = !relu && (wanted || checkpointed);
    plan::Tensor given = output_of(graph, path + ".output", rows * out_, wanted);
    const plan::Tensor y = keeps_sum ? graph.activation(path + ".activation", rows * out_) : given;
    const plan::PlanBuilder::Range range(graph.builder, "aten::_addmm_activation");
    if (relu) {
        check_output(graph, graph.kernel(plan::Kernel::linear_relu_forward, matmul_name(graph, "nt_relu"),
                                         with_parameters(graph, {y, x}), {rows, in_, out_, decodes(graph)},
                                         kernels::linear_relu_forward_cost(rows, in_, out_, bias_).flops));
    } else {
        check_output(
            graph, graph.kernel(plan::Kernel::linear_gelu_forward, matmul_name(graph, "nt_gelu"),
                                with_parameters(graph, {y, keeps_sum ? given.view : plan::Arg{}, x}),
                                {rows, in_, out_, decodes(graph)},
                                kernels::linear_gelu_forward_cost(rows, in_, out_, bias_, keeps_sum).flops));
    }
    graph.activated = {given.view.buffer, y};
    return given;
}

void Linear::weight_gradients(Graph& graph, plan::Tensor dy, plan::Tensor saved, std::int64_t rows,
                              bool train_weight, bool train_bias) {
    plan::Tensor dw, db;
    if (train_weight) {
        dw = graph.gradient(weight());
        graph.kernel(plan::Kernel::linear_backward_weight, matmul_name(graph, "tn"), {dw, dy, saved},
                     {rows, in_, out_}, kernels::linear_backward_weight_cost(rows, in_, out_).flops);
    }
    if (graph.tape.recomputed()) saved = {};
    if (train_bias) {
        db = graph.gradient(parameters()[kBias]);
        graph.kernel(plan::Kernel::linear_backward_bias, "column_sum", {db, dy}, {rows, out_},
                     kernels::linear_backward_bias_cost(rows, out_).flops);
    }
    dy = {};
    if (train_bias) graph.store.gradient_ready(parameters()[kBias], std::move(db));
    // In autograd the weight's gradient is first transposed back, by a node of its own.
    if (!train_weight) return;
    graph.tape.hand_on([this, &graph, dw = std::move(dw)]() mutable {
        graph.store.gradient_ready(weight(), std::move(dw));
    });
}

plan::Tensor Linear::forward(Graph& graph, const plan::Tensor& input) {
    const plan::Tensor x = enter_tensor_region(graph, input, enters_);
    if (weight().stored == plan::DType::int8) return int8_output(graph, x);
    const std::int64_t rows = x.elements() / in_;
    const bool train_weight = weight().trained;
    const bool train_bias = bias_ && parameters()[kBias].trained;
    const bool wanted = wants(graph, x, weight()) || (graph.tape.recording() && train_bias);
    // A checkpointed Linear that records is being recomputed for its own backward: no module would take the
    // activation.
    const bool fuses = fused_ != kernels::ActivationKind::none && !(wanted && checkpointed);
    if (wanted) graph.tape.saves_inputs();
    plan::Tensor y = fuses ? activated_output(graph, x, wanted) : output(graph, x, wanted);
    if (!wanted) return y;
    // The input is kept only for the weight's gradient.
    graph.tape.node(
        "AddmmBackward0", [this, &graph, saved = train_weight ? x : plan::Tensor{}, from = x.value, rows,
                           train_weight, train_bias, value = y.value]() mutable {
            plan::Tensor dy = graph.tape.take_gradient(value);
            if (is_summed()) dy = gather_gradient(graph, dy);
            if (from >= 0) {
                plan::Tensor dx = graph.activation(path + ".input.grad", rows * in_);
                graph.kernel(plan::Kernel::linear_backward_input, matmul_name(graph, "nn"),
                             {dx, dy, graph.store.parameter(weight())}, {rows, in_, out_},
                             kernels::linear_backward_input_cost(rows, in_, out_).flops);
                graph.tape.accumulate(from, std::move(dx));
            }
            if (!train_weight && !train_bias) return;
            graph.tape.weight_work([this, &graph, dy = std::move(dy), saved = std::move(saved), rows,
                                    train_weight, train_bias]() mutable {
                weight_gradients(graph, std::move(dy), std::move(saved), rows, train_weight, train_bias);
            });
        });
    return y;
}

}  // namespace shardscope::trainer::model
