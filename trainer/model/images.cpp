#include "trainer/model/images.h"

#include <cmath>
#include <utility>
#include <vector>

#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"

namespace shardscope::trainer::model {

namespace {

constexpr double kMomentum = 0.1;
constexpr std::size_t kRunningMean = 0, kRunningVariance = 1;

}  // namespace

Conv2d::Conv2d(std::string attribute, int side, int in, int out, const kernels::Window& window, bool bias)
    : Module("Conv2d", std::move(attribute)), side_(side), in_(in), out_(out), window_(window), bias_(bias) {
    const int taps = window.size * window.size;
    const auto fan_out = static_cast<float>(out * taps);
    add_parameter("weight", out, std::int64_t{taps} * in, {InitKind::normal, 0, std::sqrt(2.0F / fan_out)})
        .window = window.size;
    if (bias) add_parameter("bias", out, 1, {});
}

plan::Tensor Conv2d::forward(Graph& graph, const plan::Tensor& x) {
    const Parameter& weight = parameters()[kWeight];
    const std::int64_t batch = x.elements() / (side_ * side_ * in_);
    const std::int64_t places = batch * result_side() * result_side();
    const std::int64_t flops = kernels::convolution_flops(places, weight.width, out_);
    plan::Tensor y = output_of(graph, path + ".output", places * out_, wants(graph, x, weight));
    if (y.value >= 0) graph.tape.saves_inputs();
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::conv2d");
        std::vector<plan::Arg> args = {y, x, graph.store.parameter(weight)};
        if (bias_) args.push_back(graph.store.parameter(parameters()[kBias]));
        check_output(graph, graph.kernel(plan::Kernel::convolution_forward, "convolution_forward",
                                         std::move(args), dims(batch), flops + (bias_ ? places * out_ : 0)));
    }
    if (y.value < 0) return y;
    graph.tape.node(
        "ConvolutionBackward0", [this, &graph, &weight, x, batch, places, flops, value = y.value]() mutable {
            const plan::Tensor dy = graph.tape.take_gradient(value);
            plan::Tensor dx, dw, db;
            if (x.value >= 0) {
                dx = graph.activation(path + ".input.grad", x.elements());
                graph.kernel(plan::Kernel::convolution_backward_input, "convolution_backward_input",
                             {dx, dy, graph.store.parameter(weight)}, dims(batch), flops);
            }
            if (weight.trained) {
                dw = graph.gradient(weight);
                graph.kernel(plan::Kernel::convolution_backward_weight, "convolution_backward_weight",
                             {dw, dy, x}, dims(batch), flops);
            }
            if (weight.trained && bias_) {  // weight and bias are frozen together
                db = graph.gradient(parameters()[kBias]);
                graph.kernel(plan::Kernel::linear_backward_bias, "column_sum", {db, dy}, {places, out_},
                             kernels::linear_backward_bias_cost(places, out_).flops);
            }
            if (dx) graph.tape.accumulate(x.value, std::move(dx));
            if (dw) graph.store.gradient_ready(weight, std::move(dw));
            if (db) graph.store.gradient_ready(parameters()[kBias], std::move(db));
        });
    return y;
}

BatchNorm2d::BatchNorm2d(std::string attribute, int channels, bool synced)
    : Module(synced ? "SyncBatchNorm" : "BatchNorm2d", std::move(attribute)),
      channels_(channels),
      synced_(synced) {
    add_parameter("weight", channels, 1, {InitKind::constant, 1, 0});
    add_parameter("bias", channels, 1, {});
    add_buffer("running_mean", channels, 0);
    add_buffer("running_var", channels, 1);
}

plan::Tensor BatchNorm2d::forward(Graph& graph, const plan::Tensor& x) {
    const Parameter &weight = parameters()[kWeight], &bias = parameters()[kBias];
    const std::int64_t rows = x.elements() / channels_;
    const plan::Arg average = graph.store.buffer(buffers()[kRunningMean]);
    const plan::Arg variance = graph.store.buffer(buffers()[kRunningVariance]);
    plan::Tensor y = output_of(graph, path + ".output", rows * channels_, wants(graph, x, weight));
    const plan::PlanBuilder::Range range(graph.builder, "aten::batch_norm");
    if (!graph.training) {
        graph.kernel(plan::Kernel::batch_norm_evaluate, "batch_norm_evaluate",
                     {y, average, variance, x, graph.store.parameter(weight), graph.store.parameter(bias)},
                     {rows, channels_}, kernels::batch_norm_evaluate_flops(rows, channels_));
        return y;
    }
    const bool synced = synced_ && graph.data > 1;  // one rank has all images
    plan::Tensor mean = graph.activation(path + ".mean", channels_);
    plan::Tensor rstd = graph.activation(path + ".rstd", channels_);
    std::vector<plan::Arg> args = {
        y, mean, rstd, average, variance, x, graph.store.parameter(weight), graph.store.parameter(bias)};
    plan::Tensor statistics;
    if (synced) {
        statistics = gathered_statistics(graph, x);
        args.push_back(statistics);
    }
    plan::Op& op =
        graph.kernel(synced ? plan::Kernel::batch_norm_synced_forward : plan::Kernel::batch_norm_forward,
                     synced ? "batch_norm_synced_forward" : "batch_norm_forward", std::move(args),
                     {rows, channels_, synced ? graph.data : 0},
                     synced ? kernels::batch_norm_evaluate_flops(rows, channels_)
                            : kernels::batch_norm_forward_flops(rows, channels_));
    op.kernel().scalars = {kMomentum};
    check_output(graph, op);
    if (y.value < 0) return y;
    graph.tape.node(synced ? "SyncBatchNormBackward" : "NativeBatchNormBackward0",
                    [this, &graph, &weight, &bias, x, mean, rstd, rows, synced, value = y.value] {
                        plan::Tensor dy = graph.tape.take_gradient(value);
                        plan::Tensor dx, dgamma, dbeta;
                        if (x.value >= 0) dx = graph.activation(path + ".input.grad", rows * channels_);
                        if (weight.trained) {  // weight and bias are frozen together
                            dgamma = graph.gradient(weight);
                            dbeta = graph.gradient(bias);
                        }
                        if (synced) {
                            synced_backward(graph, {dx, dgamma, dbeta, dy, x, mean, rstd});
                        } else {
                            graph.kernel(
                                plan::Kernel::batch_norm_backward, "batch_norm_backward",
                                {dx, dgamma, dbeta, dy, x, graph.store.parameter(weight), mean, rstd},
                                {rows, channels_},
                                kernels::batch_norm_backward_flops(rows, channels_, x.value >= 0));
                        }
                        dy = {};
                        if (dx) graph.tape.accumulate(x.value, std::move(dx));
                        if (!dgamma) return;
                        graph.store.gradient_ready(weight, std::move(dgamma));
                        graph.store.gradient_ready(bias, std::move(dbeta));
                    });
    return y;
}

// Mean, squares and number of rows of each rank, as PyTorch gathers them.
plan::Tensor BatchNorm2d::gathered_statistics(Graph& graph, const plan::Tensor& x) const {
    const std::int64_t rows = x.elements() / channels_, n = 2 * channels_ + 1;
    const plan::Tensor own = graph.activation(path + ".statistics", n);
    graph.kernel(plan::Kernel::batch_norm_statistics, "batch_norm_statistics", {own, x}, {rows, channels_},
                 kernels::batch_norm_statistics_flops(rows, channels_));
    plan::Tensor all = graph.activation(path + ".statistics of all ranks", n * graph.data);
    graph.builder.collective({.operation = plan::Operation::all_gather, .group = graph.all_data}, all, own,
                             all.bytes(), plan::Stream::compute);
    return all;
}

void BatchNorm2d::synced_backward(Graph& graph, const Backward& of) const {
    const std::int64_t rows = of.x.elements() / channels_;
    const plan::Tensor sums = graph.activation(path + ".sums", 2 * channels_);
    graph.kernel(plan::Kernel::batch_norm_gradient_sums, "batch_norm_gradient_sums",
                 {sums, of.dgamma, of.dbeta, of.dy, of.x, of.mean, of.rstd}, {rows, channels_},
                 kernels::batch_norm_gradient_sums_flops(rows, channels_));
    if (!of.dx) return;
    graph.builder.collective({.operation = plan::Operation::all_reduce, .group = graph.all_data}, sums, sums,
                             sums.bytes(), plan::Stream::compute);
    graph.kernel(plan::Kernel::batch_norm_synced_backward, "batch_norm_synced_backward",
                 {of.dx, of.dy, of.x, graph.store.parameter(parameters()[kWeight]), of.mean, of.rstd, sums},
                 {rows, channels_, graph.data}, kernels::batch_norm_synced_backward_flops(rows, channels_));
}

MaxPool2d::MaxPool2d(std::string attribute, int side, int channels, const kernels::Window& window)
    : Module("MaxPool2d", std::move(attribute)), side_(side), channels_(channels), window_(window) {}

plan::Tensor MaxPool2d::forward(Graph& graph, const plan::Tensor& x) {
    const std::int64_t batch = x.elements() / (side_ * side_ * channels_);
    const std::int64_t side = window_.places(static_cast<int>(side_)), n = batch * side * side * channels_;
    const std::array<std::int64_t, 6> dims = {batch, side_, side_, channels_, window_.packed()};
    plan::Tensor y = output_of(graph, path + ".output", n, wants(graph, x));
    // PyTorch's places are int64; the kernel writes int32 in the same memory.
    plan::Tensor places = graph.activation(path + ".places", n, plan::DType::fp64);
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::max_pool2d");
        graph.kernel(plan::Kernel::max_pool_forward, "max_pool_forward", {y, places, x}, dims,
                     n * window_.size * window_.size);
    }
    if (y.value < 0) return y;
    graph.tape.node("MaxPool2DWithIndicesBackward0", [this, &graph, x, places, dims, n, value = y.value] {
        const plan::Tensor dy = graph.tape.take_gradient(value);
        plan::Tensor dx = graph.activation(path + ".input.grad", x.elements());
        graph.kernel(plan::Kernel::max_pool_backward, "max_pool_backward", {dx, dy, places}, dims, n);
        graph.tape.accumulate(x.value, std::move(dx));
    });
    return y;
}

plan::Tensor AdaptiveAvgPool2d::forward(Graph& graph, const plan::Tensor& x) {
    const std::int64_t n = x.elements(), batch = n / (side_ * side_ * channels_);
    const std::array<std::int64_t, 6> dims = {batch, side_, side_, channels_, result_};
    plan::Tensor y =
        output_of(graph, path + ".output", batch * result_ * result_ * channels_, wants(graph, x));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::adaptive_avg_pool2d");
        graph.kernel(plan::Kernel::adaptive_average_forward, "adaptive_average_forward", {y, x}, dims, n);
    }
    if (y.value < 0) return y;
    graph.tape.node(
        result_ == 1 ? "MeanBackward1" : "AdaptiveAvgPool2DBackward0",
        [this, &graph, dims, n, from = x.value, value = y.value] {
            const plan::Tensor dy = graph.tape.take_gradient(value);
            plan::Tensor dx = graph.activation(path + ".input.grad", n);
            graph.kernel(plan::Kernel::adaptive_average_backward, "adaptive_average_backward", {dx, dy}, dims,
                         n);
            graph.tape.accumulate(from, std::move(dx));
        },
        false);
    return y;
}

}  // namespace shardscope::trainer::model
