// How fast the kernels are: flops and bytes per second as trainer/kernels/cost.h counts them. Not a test; run
// bin/bench_kernels, with --benchmark_filter=NAME for some of them.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/activation.h"
#include "trainer/kernels/attention.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/cost.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/layer_norm.h"
#include "trainer/kernels/linear.h"
#include "trainer/kernels/loss.h"
#include "trainer/kernels/optimizer.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::kernels {
namespace {

using benchmark::Counter;
using testing::Floats;
using testing::normals;

void report(benchmark::State& state, Cost cost) {
    const double iterations = static_cast<double>(state.iterations());
    state.counters["flops"] = Counter(static_cast<double>(cost.flops) * iterations, Counter::kIsRate);
    state.counters["bytes"] = Counter(static_cast<double>(cost.bytes) * iterations, Counter::kIsRate);
}

void linear_forward(benchmark::State& state) {
    const int rows = static_cast<int>(state.range(0)), width = static_cast<int>(state.range(1));
    const Floats x = normals(static_cast<std::size_t>(rows) * width, "x"), b = normals(width, "b");
    const Floats w = normals(static_cast<std::size_t>(width) * width, "w");
    Floats y(x.size());
    for (auto _ : state) kernels::linear_forward(x.data(), w.data(), b.data(), y.data(), rows, width, width);
    report(state, linear_forward_cost(rows, width, width, true));
}
BENCHMARK(linear_forward)->Args({8, 256})->Args({512, 256})->Args({512, 1024});

void linear_backward_input(benchmark::State& state) {
    const int rows = static_cast<int>(state.range(0)), width = static_cast<int>(state.range(1));
    const Floats dy = normals(static_cast<std::size_t>(rows) * width, "dy");
    const Floats w = normals(static_cast<std::size_t>(width) * width, "w");
    Floats dx(dy.size());
    for (auto _ : state) kernels::linear_backward_input(dy.data(), w.data(), dx.data(), rows, width, width);
    report(state, linear_backward_input_cost(rows, width, width));
}
BENCHMARK(linear_backward_input)->Args({512, 256})->Args({512, 1024});

void linear_backward_weight(benchmark::State& state) {
    const int rows = static_cast<int>(state.range(0)), width = static_cast<int>(state.range(1));
    const Floats dy = normals(static_cast<std::size_t>(rows) * width, "dy"), x = normals(dy.size(), "x");
    Floats dw(static_cast<std::size_t>(width) * width);
    for (auto _ : state) kernels::linear_backward_weight(dy.data(), x.data(), dw.data(), rows, width, width);
    report(state, linear_backward_weight_cost(rows, width, width));
}
BENCHMARK(linear_backward_weight)->Args({512, 256})->Args({512, 1024});

void linear_backward_bias(benchmark::State& state) {
    const Floats dy = normals(512 * 1024, "dy");
    Floats db(1024);
    for (auto _ : state) kernels::linear_backward_bias(dy.data(), db.data(), 512, 1024);
    report(state, linear_backward_bias_cost(512, 1024));
}
BENCHMARK(linear_backward_bias);

constexpr std::size_t kElements = 512 * 1024;

void relu_forward(benchmark::State& state) {
    const Floats x = normals(kElements, "x");
    Floats y(kElements);
    for (auto _ : state) kernels::relu_forward(x.data(), y.data(), kElements);
    report(state, relu_forward_cost(kElements));
}
BENCHMARK(relu_forward);

void gelu_forward(benchmark::State& state) {
    const Floats x = normals(kElements, "x");
    Floats y(kElements);
    for (auto _ : state) kernels::gelu_forward(x.data(), y.data(), kElements);
    report(state, gelu_forward_cost(kElements));
}
BENCHMARK(gelu_forward);

void gelu_backward(benchmark::State& state) {
    const Floats x = normals(kElements, "x"), dy = normals(kElements, "dy");
    Floats dx(kElements);
    for (auto _ : state) kernels::gelu_backward(dy.data(), x.data(), dx.data(), kElements);
    report(state, gelu_backward_cost(kElements));
}
BENCHMARK(gelu_backward);

constexpr int kRows = 1024, kCols = 256;

void layer_norm_forward(benchmark::State& state) {
    const Floats x = normals(kRows * kCols, "x"), gamma = normals(kCols, "gamma"),
                 beta = normals(kCols, "beta");
    Floats y(x.size()), mean(kRows), rstd(kRows);
    for (auto _ : state) {
        kernels::layer_norm_forward(x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data(),
                                    kRows, kCols, 1e-5f);
    }
    report(state, layer_norm_forward_cost(kRows, kCols));
}
BENCHMARK(layer_norm_forward);

void layer_norm_backward(benchmark::State& state) {
    const Floats x = normals(kRows * kCols, "x"), dy = normals(kRows * kCols, "dy"),
                 gamma = normals(kCols, "gamma");
    Floats mean(kRows, 0.0f), rstd(kRows, 1.0f), dx(x.size()), dgamma(kCols), dbeta(kCols);
    for (auto _ : state) {
        layer_norm_backward_input(dy.data(), x.data(), gamma.data(), mean.data(), rstd.data(), dx.data(),
                                  kRows, kCols);
        layer_norm_backward_parameters(dy.data(), x.data(), mean.data(), rstd.data(), dgamma.data(),
                                       dbeta.data(), kRows, kCols);
    }
    report(state,
           layer_norm_backward_input_cost(kRows, kCols) + layer_norm_backward_parameters_cost(kRows, kCols));
}
BENCHMARK(layer_norm_backward);

void attention(benchmark::State& state) {
    const bool backward = state.range(0) != 0;
    const int context = static_cast<int>(state.range(1)), batch = 8, width = 256, heads = 4;
    const std::size_t n = static_cast<std::size_t>(batch) * context * width;
    const Floats qkv = normals(3 * n, "qkv"), dout = normals(n, "dout");
    Floats out(n), probabilities(static_cast<std::size_t>(batch) * heads * context * context), dqkv(3 * n);
    Floats scratch(attention_backward_scratch(context));
    attention_forward(qkv.data(), out.data(), probabilities.data(), {batch, context, width, heads, heads});
    for (auto _ : state) {
        if (backward) {
            attention_backward(dout.data(), qkv.data(), probabilities.data(), dqkv.data(), scratch.data(),
                               {batch, context, width, heads, heads});
        } else {
            attention_forward(qkv.data(), out.data(), probabilities.data(),
                              {batch, context, width, heads, heads});
        }
    }
    report(state, backward ? attention_backward_cost(batch, context, width, heads)
                           : attention_forward_cost(batch, context, width, heads));
}
BENCHMARK(attention)->ArgNames({"backward", "context"})->ArgsProduct({{0, 1}, {64, 128, 256, 1024}});

void cross_entropy(benchmark::State& state) {
    const Floats logits = normals(kRows * 256, "logits");
    const std::vector<std::int32_t> targets(kRows, 3);
    Floats probabilities(logits.size()), dlogits(logits.size());
    double mean = 0.0;
    for (auto _ : state) {
        cross_entropy_forward(logits.data(), targets.data(), probabilities.data(), &mean, kRows, 256);
        cross_entropy_backward(probabilities.data(), targets.data(), dlogits.data(), kRows, 256);
    }
    report(state, cross_entropy_forward_cost(kRows, 256) + cross_entropy_backward_cost(kRows, 256));
}
BENCHMARK(cross_entropy);

void mse(benchmark::State& state) {
    const Floats y = normals(kElements, "y"), target = normals(kElements, "target");
    double mean = 0.0;
    for (auto _ : state) mse_forward(y.data(), target.data(), &mean, kElements);
    report(state, mse_forward_cost(kElements));
}
BENCHMARK(mse);

void sgd(benchmark::State& state) {
    Floats param = normals(kElements, "param");
    const Floats grad = normals(kElements, "grad");
    for (auto _ : state) kernels::sgd(param.data(), grad.data(), nullptr, kElements, 1e-6, 0.0, false, 0.0);
    report(state, sgd_cost(kElements, false));
}
BENCHMARK(sgd);

void adamw(benchmark::State& state) {
    Floats param = normals(kElements, "param"), m(kElements, 0.0f), v(kElements, 0.0f);
    const Floats grad = normals(kElements, "grad");
    std::int64_t step = 0;
    for (auto _ : state) {
        kernels::adamw(param.data(), grad.data(), m.data(), v.data(), kElements,
                       {1e-6, 0.9, 0.999, 1e-8, 0.01}, ++step);
    }
    report(state, adamw_cost(kElements));
}
BENCHMARK(adamw);

void sum_ranks(benchmark::State& state) {
    const int ranks = static_cast<int>(state.range(0));
    const std::vector<Floats> values(ranks, normals(kElements, "rank"));
    std::vector<const float*> inputs;
    for (const Floats& value : values) inputs.push_back(value.data());
    Floats out(kElements);
    for (auto _ : state) kernels::sum_ranks(inputs.data(), ranks, out.data(), kElements, 1.0f / ranks);
    report(state, sum_ranks_cost(ranks, kElements));
}
BENCHMARK(sum_ranks)->Arg(2)->Arg(4)->Arg(8);

void fill_normal(benchmark::State& state) {
    Floats out(kElements);
    for (auto _ : state) kernels::fill_normal(out.data(), out.size(), 1, 2, 0, 0.0f, 1.0f);
    report(state, random_cost(kElements));
}
BENCHMARK(fill_normal);

}  // namespace
}  // namespace shardscope::trainer::kernels

int main(int argc, char** argv) {
    const auto& blas = shardscope::trainer::kernels::Blas::get();
    benchmark::AddCustomContext("OpenBLAS", blas.core());
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
