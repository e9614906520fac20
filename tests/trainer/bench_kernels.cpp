// How fast the kernels are on the shapes of a small GPT (6 layers, width 384, 6 heads, context 256, batch 8,
// vocabulary 256): flops and bytes per second of processor time, as trainer/kernels/cost.h counts them (bytes
// of Bf16 halved), next to their bounds: `copy` only moves memory, `gemm` calls only the BLAS. Not a test;
// run bin/bench_kernels, with --benchmark_filter=NAME for some of them. `step/…` is all kernels of a training
// step in turn: its gemm_flops (only matmuls, masked attention as half) relative to `gemm/step` is the share
// of the BLAS's rate that a step reaches.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/activation.h"
#include "trainer/kernels/attention.h"
#include "trainer/kernels/bf16_matmul.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/cost.h"
#include "trainer/kernels/dropout.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/layer_norm.h"
#include "trainer/kernels/linear.h"
#include "trainer/kernels/loss.h"
#include "trainer/kernels/optimizer.h"
#include "trainer/kernels/random.h"
#include "trainer/kernels/reductions.h"
#include "trainer/kernels/rms_norm.h"
#include "trainer/kernels/rotary.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

using benchmark::Counter;
using testing::as;
using testing::Floats;
using testing::normals;
using testing::Tokens;

constexpr int kLayers = 6, kWidth = 384, kHeads = 6, kContext = 256, kBatch = 8, kVocabulary = 256;
constexpr int kRows = kBatch * kContext, kHidden = 4 * kWidth;
constexpr std::size_t kActivations = static_cast<std::size_t>(kRows) * kWidth;
constexpr std::size_t kHiddens = static_cast<std::size_t>(kRows) * kHidden;
constexpr std::size_t kSquares = static_cast<std::size_t>(kBatch) * kHeads * kContext * kContext;
constexpr AttentionShape kAttention{kBatch, kContext, kWidth, kHeads, kHeads};

struct Layer {
    const char* name;
    int in, out;
};
constexpr std::array<Layer, 4> kBlock = {{{"qkv", kWidth, 3 * kWidth},
                                          {"projection", kWidth, kWidth},
                                          {"up", kWidth, kHidden},
                                          {"down", kHidden, kWidth}}};
constexpr Layer kHead{"head", kWidth, kVocabulary};

constexpr std::size_t parameters() {
    std::size_t n = static_cast<std::size_t>(kWidth) * (2 * kVocabulary + kContext);
    for (const Layer& layer : kBlock) n += kLayers * static_cast<std::size_t>(layer.in) * layer.out;
    return n;
}

// Memory for every kernel with one element type. Sizes are those of the largest kernel that uses it.
template <class T>
struct Memory {
    static Memory& get() {
        static Memory memory;
        return memory;
    }
    std::vector<T> x = as<T>(normals(kHiddens, "x")), dy = as<T>(normals(kHiddens, "dy"));
    std::vector<T> up = as<T>(normals(kHiddens, "up")), dup = up;
    std::vector<T> y = x, w = as<T>(normals(kWidth * kHidden, "w")), dw = w, b = as<T>(normals(kHidden, "b"));
    std::vector<T> db = b, gamma = b, probabilities = std::vector<T>(kSquares);
    std::vector<T> table = std::vector<T>(kContext * kWidth / kHeads);
    Floats mean = Floats(kRows), rstd = Floats(kRows, 1.0f);
    Floats scratch = Floats(attention_backward_scratch(kAttention));
    Tokens tokens = testing::tokens(kRows, kVocabulary, "tokens");
    Floats logits = normals(static_cast<std::size_t>(kRows) * kVocabulary, "logits"), softmax = logits;
    Floats param = normals(parameters(), "param"), grad = param, m = Floats(parameters()), v = m;
    double loss = 0.0;
    std::int64_t step = 0;
};

template <class T>
constexpr const char* kSuffix = !Narrow<T> ? "/fp32" : "/bf16";

using Work = std::function<void()>;

template <class T>
void add_benchmark(std::string name, Cost cost, Work work) {
    const double width = !Narrow<T> ? 1.0 : 0.5;
    benchmark::RegisterBenchmark((name + kSuffix<T>).c_str(), [cost, width, work](benchmark::State& state) {
        for (auto _ : state) {
            work();
            benchmark::ClobberMemory();
        }
        const double runs = static_cast<double>(state.iterations());
        state.counters["flops"] = Counter(static_cast<double>(cost.flops) * runs, Counter::kIsRate);
        state.counters["bytes"] = Counter(static_cast<double>(cost.bytes) * width * runs, Counter::kIsRate);
    });
}

template <class T>
void forward(const Layer& layer) {
    auto& m = Memory<T>::get();
    linear_forward(m.x.data(), m.w.data(), m.b.data(), m.y.data(), kRows, layer.in, layer.out);
}
template <class T>
void backward_input(const Layer& layer) {
    auto& m = Memory<T>::get();
    linear_backward_input(m.dy.data(), m.w.data(), m.y.data(), kRows, layer.in, layer.out);
}
template <class T>
void backward_weight(const Layer& layer) {
    auto& m = Memory<T>::get();
    linear_backward_weight(m.dy.data(), m.x.data(), m.dw.data(), kRows, layer.in, layer.out);
}
template <class T>
void backward_bias(const Layer& layer) {
    auto& m = Memory<T>::get();
    linear_backward_bias(m.dy.data(), m.db.data(), kRows, layer.out);
}

// The same three matmuls, by the BLAS alone.
void products_alone(const Layer& layer) {
    auto& m = Memory<float>::get();
    const Blas& blas = Blas::get();
    blas.sgemm(false, true, kRows, layer.out, layer.in, 1.0f, m.x.data(), layer.in, m.w.data(), layer.in,
               0.0f, m.y.data(), layer.out);
    blas.sgemm(false, false, kRows, layer.in, layer.out, 1.0f, m.dy.data(), layer.out, m.w.data(), layer.in,
               0.0f, m.y.data(), layer.in);
    blas.sgemm(true, false, layer.out, layer.in, kRows, 1.0f, m.dy.data(), layer.out, m.x.data(), layer.in,
               0.0f, m.dw.data(), layer.in);
}

constexpr Cost products_cost(const Layer& layer) {
    return linear_forward_cost(kRows, layer.in, layer.out, false) +
           linear_backward_input_cost(kRows, layer.in, layer.out) +
           linear_backward_weight_cost(kRows, layer.in, layer.out);
}

template <class T>
void norm_backward() {
    auto& m = Memory<T>::get();
    layer_norm_backward_input(m.dy.data(), m.x.data(), m.gamma.data(), m.mean.data(), m.rstd.data(),
                              m.y.data(), kRows, kWidth);
    layer_norm_backward_parameters(m.dy.data(), m.x.data(), m.mean.data(), m.rstd.data(), m.dw.data(),
                                   m.db.data(), kRows, kWidth);
}

template <class T>
void entropy() {
    auto& m = Memory<T>::get();
    cross_entropy_forward(m.logits.data(), m.tokens.data(), m.softmax.data(), &m.loss, kRows, kVocabulary);
    cross_entropy_backward(m.softmax.data(), m.tokens.data(), m.softmax.data(), kRows, kVocabulary);
}

template <class T>
void optimize() {
    auto& m = Memory<T>::get();
    adamw(m.param.data(), m.grad.data(), m.m.data(), m.v.data(), m.param.size(),
          {1e-6, 0.9, 0.999, 1e-8, 0.01}, ++m.step);
}

template <class T>
struct Calls {
    Memory<T>& m = Memory<T>::get();
    Work embed = [&] { embedding_forward(m.tokens.data(), m.w.data(), m.y.data(), kRows, kWidth); };
    Work embed_backward = [&] {
        embedding_backward(m.dy.data(), m.tokens.data(), m.dw.data(), kRows, kVocabulary, kWidth);
    };
    Work position = [&] {
        position_embedding_forward(m.x.data(), m.w.data(), m.y.data(), kRows, kContext, kWidth);
    };
    Work position_backward = [&] {
        position_embedding_backward(m.dy.data(), m.dw.data(), kRows, kContext, kContext, kWidth);
    };
    Work norm = [&] {
        layer_norm_forward(m.x.data(), m.gamma.data(), m.b.data(), m.y.data(), m.mean.data(), m.rstd.data(),
                           kRows, kWidth, 1e-5f);
    };
    Work attend = [&] { attention_forward(m.x.data(), m.y.data(), m.probabilities.data(), kAttention); };
    Work attend_backward = [&] {
        attention_backward(m.dy.data(), m.x.data(), m.probabilities.data(), m.y.data(), m.scratch.data(),
                           kAttention);
    };
    Work gelu = [&] { gelu_forward(m.x.data(), m.y.data(), kHiddens); };
    Work gelu_back = [&] { gelu_backward(m.dy.data(), m.x.data(), m.y.data(), kHiddens); };
    Work residual = [&] { add(m.x.data(), m.dy.data(), m.y.data(), kActivations); };
};

// All kernels of a step, each on memory of its size; the computed values do not matter here.
template <class T>
void step() {
    static const Calls<T> calls;
    calls.embed();
    calls.position();
    for (int layer = 0; layer < kLayers; ++layer) {
        calls.norm();
        forward<T>(kBlock[0]);
        calls.attend();
        forward<T>(kBlock[1]);
        calls.residual();
        calls.norm();
        forward<T>(kBlock[2]);
        calls.gelu();
        forward<T>(kBlock[3]);
        calls.residual();
    }
    calls.norm();
    forward<T>(kHead);
    entropy<T>();
    const auto linear_backward = [](const Layer& layer) {
        backward_input<T>(layer);
        backward_weight<T>(layer);
        backward_bias<T>(layer);
    };
    linear_backward(kHead);
    norm_backward<T>();
    for (int layer = 0; layer < kLayers; ++layer) {
        linear_backward(kBlock[3]);
        calls.gelu_back();
        linear_backward(kBlock[2]);
        norm_backward<T>();
        calls.residual();
        linear_backward(kBlock[1]);
        calls.attend_backward();
        linear_backward(kBlock[0]);
        norm_backward<T>();
        calls.residual();
    }
    calls.position_backward();
    calls.embed_backward();
    optimize<T>();
}

// Only matmuls: 2 width per pair in each of the two matmuls of the forward, twice that in the backward.
constexpr Cost step_products_cost() {
    Cost cost = products_cost(kHead);
    for (const Layer& layer : kBlock) {
        for (int i = 0; i < kLayers; ++i) cost = cost + products_cost(layer);
    }
    return cost + Cost{kLayers * kBatch * causal_pairs(kContext) * 12 * kWidth, 0};
}

template <class T>
void add_benchmarks() {
    static const Calls<T> calls;
    static auto& m = Memory<T>::get();
    const auto bench = [](const char* name, Cost cost, Work work) { add_benchmark<T>(name, cost, work); };
    bench("copy/activations", copy_cost(kActivations), [] { copy(m.x.data(), m.y.data(), kActivations); });
    bench("copy/hiddens", copy_cost(kHiddens), [] { copy(m.x.data(), m.y.data(), kHiddens); });
    for (const Layer& layer : {kBlock[0], kBlock[1], kBlock[2], kBlock[3], kHead}) {
        const auto named = [&](const char* what) { return std::string(what) + layer.name; };
        bench(named("linear_forward/").c_str(), linear_forward_cost(kRows, layer.in, layer.out, true),
              [layer] { forward<T>(layer); });
        bench(named("linear_backward_input/").c_str(), linear_backward_input_cost(kRows, layer.in, layer.out),
              [layer] { backward_input<T>(layer); });
        bench(named("linear_backward_weight/").c_str(),
              linear_backward_weight_cost(kRows, layer.in, layer.out),
              [layer] { backward_weight<T>(layer); });
        bench(named("linear_backward_bias/").c_str(), linear_backward_bias_cost(kRows, layer.out),
              [layer] { backward_bias<T>(layer); });
    }
    bench("attention_forward", attention_forward_cost(kBatch, kContext, kWidth, kHeads), calls.attend);
    bench("attention_backward", attention_backward_cost(kBatch, kContext, kWidth, kHeads),
          calls.attend_backward);
    bench("layer_norm_forward", layer_norm_forward_cost(kRows, kWidth), calls.norm);
    bench("layer_norm_backward",
          layer_norm_backward_input_cost(kRows, kWidth) + layer_norm_backward_parameters_cost(kRows, kWidth),
          norm_backward<T>);
    bench("rms_norm_forward", rms_norm_forward_cost(kRows, kWidth), [] {
        rms_norm_forward(m.x.data(), m.gamma.data(), m.y.data(), m.rstd.data(), kRows, kWidth, 1e-5f);
    });
    bench("rms_norm_backward", rms_norm_backward_cost(kRows, kWidth), [] {
        rms_norm_backward_input(m.dy.data(), m.x.data(), m.gamma.data(), m.rstd.data(), m.y.data(), kRows,
                                kWidth);
        rms_norm_backward_parameters(m.dy.data(), m.x.data(), m.rstd.data(), m.dw.data(), kRows, kWidth);
    });
    bench("relu_forward", relu_forward_cost(kHiddens),
          [] { relu_forward(m.x.data(), m.y.data(), kHiddens); });
    bench("gelu_forward", gelu_forward_cost(kHiddens), calls.gelu);
    bench("gelu_backward", gelu_backward_cost(kHiddens), calls.gelu_back);
    bench("silu_mul_forward", silu_mul_forward_cost(kHiddens),
          [] { silu_mul_forward(m.x.data(), m.up.data(), m.y.data(), kHiddens); });
    bench("silu_mul_backward", silu_mul_backward_cost(kHiddens), [] {
        silu_mul_backward(m.dy.data(), m.x.data(), m.up.data(), m.y.data(), m.dup.data(), kHiddens);
    });
    bench("dropout", dropout_cost(kActivations),
          [] { dropout(m.x.data(), m.y.data(), kActivations, 0.1f, 1, 2, 0); });
    bench("rotary", rotary_cost(kRows, kHeads, kWidth / kHeads), [] {
        rotary_forward(m.x.data(), m.table.data(), m.y.data(), kBatch, kContext, kHeads, kHeads,
                       kWidth / kHeads);
    });
    bench("add", add_cost(kActivations), calls.residual);
    bench("embedding_forward", embedding_forward_cost(kRows, kWidth), calls.embed);
    bench("embedding_backward", embedding_backward_cost(kRows, kVocabulary, kWidth), calls.embed_backward);
    bench("position_forward", position_embedding_forward_cost(kRows, kContext, kWidth), calls.position);
    bench("position_backward", position_embedding_backward_cost(kRows, kContext, kWidth),
          calls.position_backward);
    bench("sum_of_squares", {2 * kHiddens, 4 * kHiddens},
          [] { benchmark::DoNotOptimize(sum_of_squares(m.x.data(), kHiddens)); });
    bench("all_finite", {kHiddens, 4 * kHiddens},
          [] { benchmark::DoNotOptimize(all_finite(m.x.data(), kHiddens)); });
    for (const int ranks : {2, 8}) {
        bench(("sum_ranks/" + std::to_string(ranks)).c_str(), sum_ranks_cost(ranks, kActivations / 2),
              [ranks] {
                  const T* inputs[8];
                  for (int r = 0; r < ranks; ++r)
                      inputs[r] = m.x.data() + static_cast<std::size_t>(r) * kActivations / 2;
                  sum_ranks(inputs, ranks, m.y.data(), kActivations / 2, 1.0 / ranks);
              });
    }
    benchmark::RegisterBenchmark((std::string("step") + kSuffix<T>).c_str(), [](benchmark::State& state) {
        for (auto _ : state) step<T>();
        state.counters["gemm_flops"] =
            Counter(static_cast<double>(step_products_cost().flops) * static_cast<double>(state.iterations()),
                    Counter::kIsRate);
    });
}

void add_float_benchmarks() {
    const auto bench = [](const char* name, Cost cost, Work work) { add_benchmark<float>(name, cost, work); };
    static auto& m = Memory<float>::get();
    static auto& narrow = Memory<Bf16>::get();
    for (const Layer& layer : {kBlock[0], kBlock[1], kBlock[2], kBlock[3], kHead}) {
        bench((std::string("gemm/") + layer.name).c_str(), products_cost(layer),
              [layer] { products_alone(layer); });
    }
    Cost products = products_cost(kHead);
    for (const Layer& layer : kBlock) products = products + products_cost(layer);
    bench("gemm/step", products, [] {
        for (const Layer& layer : kBlock) products_alone(layer);
        products_alone(kHead);
    });
    bench("cross_entropy",
          cross_entropy_forward_cost(kRows, kVocabulary) + cross_entropy_backward_cost(kRows, kVocabulary),
          entropy<float>);
    bench("mse_forward", mse_forward_cost(kActivations),
          [] { mse_forward(m.x.data(), m.dy.data(), &m.loss, kActivations); });
    bench("sgd", sgd_cost(parameters(), false),
          [] { sgd(m.param.data(), m.grad.data(), nullptr, m.param.size(), 1e-6, 0.0, false, 0.0); });
    bench("adamw", adamw_cost(parameters()), optimize<float>);
    bench("fill_normal", random_cost(kActivations),
          [] { fill_normal(m.y.data(), kActivations, 1, 2, 0, 0.0f, 1.0f); });
    bench("cast_to_bf16", {0, 6 * kHiddens}, [] { cast(m.x.data(), narrow.y.data(), kHiddens); });
    bench("cast_to_fp32", {0, 6 * kHiddens}, [] { cast(narrow.x.data(), m.y.data(), kHiddens); });
    bench("bf16_product_by_conversion", products_cost(kBlock[2]), [] {
        const Layer& up = kBlock[2];
        matmul_by_conversion<Bf16>({false, true, true, kRows, up.out, up.in}, narrow.x.data(),
                                   narrow.w.data(), narrow.b.data(), narrow.y.data());
        matmul_by_conversion<Bf16>({false, false, false, kRows, up.in, up.out}, narrow.dy.data(),
                                   narrow.w.data(), nullptr, narrow.y.data());
        matmul_by_conversion<Bf16>({true, false, false, up.out, up.in, kRows}, narrow.dy.data(),
                                   narrow.x.data(), nullptr, narrow.dw.data());
    });
}

// What the host's optimizer does with memory.offload: parameters that no cache holds, 28 bytes of each moved
// (p, g, m, v read, p, m, v written), on two threads. `triad` moves the same bytes with one addition for each
// number that it writes.
constexpr int kHosts = 2;
constexpr std::size_t kHostParameters = std::size_t{16} << 20;  // of a thread

SHARDSCOPE_VECTOR_CLONES
void triad(float* param, const float* grad, float* m, float* v, std::size_t n) {
    FloatLanes g;
    FloatLanes x;
    for (std::size_t i = 0; i + kLanes <= n; i += kLanes) {
        std::memcpy(&g, grad + i, sizeof g);
        for (float* numbers : {param, m, v}) {
            std::memcpy(&x, numbers + i, sizeof x);
            x += g;
            std::memcpy(numbers + i, &x, sizeof x);
        }
    }
}

using HostUpdate = void (*)(float*, const float*, float*, float*, std::size_t);

void add_host_benchmark(const char* name, HostUpdate update) {
    const auto run = [update](benchmark::State& state) {
        static std::array<std::array<Floats, 4>, kHosts> all;
        std::array<Floats, 4>& own = all[static_cast<std::size_t>(state.thread_index())];
        for (Floats& numbers : own) numbers.resize(kHostParameters, 1e-3f);
        for (auto _ : state)
            update(own[0].data(), own[1].data(), own[2].data(), own[3].data(), kHostParameters);
        state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(28 * kHostParameters));
    };
    benchmark::RegisterBenchmark(name, run)->Threads(kHosts)->UseRealTime();
}

void add_host_benchmarks() {
    add_host_benchmark("host/triad", triad);
    add_host_benchmark("host/adam", [](float* param, const float* grad, float* m, float* v, std::size_t n) {
        adam(param, grad, m, v, n, {1e-6, 0.9, 0.999, 1e-8, 0.0}, 10);
    });
    add_host_benchmark("host/adamw", [](float* param, const float* grad, float* m, float* v, std::size_t n) {
        adamw(param, grad, m, v, n, {1e-6, 0.9, 0.999, 1e-8, 0.01}, 10);
    });
}

}  // namespace
}  // namespace shardscope::trainer::kernels

int main(int argc, char** argv) {
    namespace k = shardscope::trainer::kernels;
    benchmark::AddCustomContext("OpenBLAS", k::Blas::get().core());
    benchmark::AddCustomContext("bfloat16", k::bf16_matmul_method());
    k::add_host_benchmarks();
    k::add_float_benchmarks();
    k::add_benchmarks<float>();
    k::add_benchmarks<k::Bf16>();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
