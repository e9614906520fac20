#include "trainer/executor/cpu_kernels.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "trainer/kernels/activation.h"
#include "trainer/kernels/attention.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/layer_norm.h"
#include "trainer/kernels/linear.h"
#include "trainer/kernels/loss.h"
#include "trainer/kernels/optimizer.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer {

namespace {

constexpr float kLayerNormEps = 1e-5F;  // torch.nn.LayerNorm's

// The rank's piece of a parameter: dims are key, first element in the flat sequence, elements, elements per
// rank (0: the rank holds all). A weight depends on (seed, path, element) alone.
void initialize(const Op& op, float* data, const KernelContext& context) {
    const auto [key, first, elements, per_rank] = op.dims;
    const std::int64_t piece_begin = per_rank > 0 ? context.rank * per_rank : 0;
    const std::int64_t piece_end = per_rank > 0 ? piece_begin + per_rank : first + elements;
    const std::int64_t begin = std::max(first, piece_begin);
    const std::int64_t end = std::min(first + elements, piece_end);
    if (begin >= end) return;
    float* out = data + (begin - piece_begin);
    const auto n = static_cast<std::size_t>(end - begin);
    const auto seed = static_cast<std::uint64_t>(context.seed);
    const auto stream = static_cast<std::uint64_t>(key);
    const auto index = static_cast<std::uint64_t>(begin - first);
    const auto a = static_cast<float>(op.scalars[0]);
    const auto b = static_cast<float>(op.scalars[1]);
    switch (op.kernel) {
        case Kernel::init_normal:
            return kernels::fill_normal(out, n, seed, stream, index, a, b);
        case Kernel::init_uniform:
            return kernels::fill_uniform(out, n, seed, stream, index, a, b);
        default:
            std::fill_n(out, n, a);
    }
}

// Copies between one contiguous buffer and pieces, in order.
void cat(const Op& op, const std::vector<std::byte*>& data, bool gather) {
    std::byte* whole = data[0];
    for (std::size_t i = 1; i < data.size(); ++i) {
        const auto bytes = static_cast<std::size_t>(op.args[i].bytes);
        if (gather) {
            std::memcpy(whole, data[i], bytes);
        } else {
            std::memcpy(data[i], whole, bytes);
        }
        whole += bytes;
    }
}

}  // namespace

void run_kernel(const Op& op, const std::vector<std::byte*>& data, const KernelContext& context) {
    namespace k = kernels;
    const auto f = [&](std::size_t i) { return reinterpret_cast<float*>(data[i]); };
    const auto tokens = [&](std::size_t i) { return reinterpret_cast<const std::int32_t*>(data[i]); };
    const auto mean = [&](std::size_t i) { return reinterpret_cast<double*>(data[i]); };
    const auto d = [&](std::size_t i) { return static_cast<int>(op.dims[i]); };
    const auto n = static_cast<std::size_t>(op.dims[0]);
    const auto& s = op.scalars;
    switch (op.kernel) {
        case Kernel::none:
            break;
        case Kernel::init_normal:
        case Kernel::init_uniform:
        case Kernel::init_constant:
            return initialize(op, f(0), context);
        case Kernel::linear_forward:
            return k::linear_forward(f(1), f(2), data.size() > 3 ? f(3) : nullptr, f(0), d(0), d(1), d(2));
        case Kernel::linear_backward_input:
            return k::linear_backward_input(f(1), f(2), f(0), d(0), d(1), d(2));
        case Kernel::linear_backward_weight:
            return k::linear_backward_weight(f(1), f(2), f(0), d(0), d(1), d(2));
        case Kernel::linear_backward_bias:
            return k::linear_backward_bias(f(1), f(0), d(0), d(1));
        case Kernel::relu_forward:
            return k::relu_forward(f(1), f(0), n);
        case Kernel::relu_backward:
            return k::relu_backward(f(1), f(2), f(0), n);
        case Kernel::gelu_forward:
            return k::gelu_forward(f(1), f(0), n);
        case Kernel::gelu_backward:
            return k::gelu_backward(f(1), f(2), f(0), n);
        case Kernel::add:
            return k::add(f(1), f(2), f(0), n);
        case Kernel::accumulate:
            return k::accumulate(f(1), f(0), n);
        case Kernel::layer_norm_forward:
            return k::layer_norm_forward(f(3), f(4), f(5), f(0), f(1), f(2), d(0), d(1), kLayerNormEps);
        case Kernel::layer_norm_backward:
            k::layer_norm_backward_parameters(f(3), f(4), f(6), f(7), f(1), f(2), d(0), d(1));
            return k::layer_norm_backward_input(f(3), f(4), f(5), f(6), f(7), f(0), d(0), d(1));
        case Kernel::attention_forward:
            return k::attention_forward(f(2), f(0), f(1), d(0), d(1), d(3), d(2));
        case Kernel::attention_backward:
            return k::attention_backward(f(2), f(3), f(4), f(0), f(1), d(0), d(1), d(3), d(2));
        case Kernel::embedding_forward:
            return k::embedding_forward(tokens(1), f(2), f(0), d(0), d(1));
        case Kernel::embedding_backward:
            return k::embedding_backward(f(1), tokens(2), f(0), d(0), d(2), d(1));
        case Kernel::position_forward:
            return k::position_embedding_forward(f(1), f(2), f(0), d(0) * d(1), d(1), d(2));
        case Kernel::position_backward:
            return k::position_embedding_backward(f(1), f(0), d(0) * d(1), d(1), d(3), d(2));
        case Kernel::mse_forward:
            return k::mse_forward(f(1), f(2), mean(0), n);
        case Kernel::mse_backward:
            return k::mse_backward(f(1), f(2), f(0), n);
        case Kernel::cross_entropy_forward:
            return k::cross_entropy_forward(f(2), tokens(3), f(1), mean(0), d(0), d(1));
        case Kernel::cross_entropy_backward:
            return k::cross_entropy_backward(f(1), tokens(2), f(0), d(0), d(1));
        case Kernel::cat:
            return cat(op, data, true);
        case Kernel::split:
            return cat(op, data, false);
        case Kernel::sgd:
            return k::sgd(f(0), f(1), data.size() > 2 ? f(2) : nullptr, n, s[0], s[1], false, s[2]);
        case Kernel::adamw:
            return k::adamw(f(0), f(1), f(2), f(3), n, s[0], s[1], s[2], s[3], s[4], context.step + 1);
    }
    throw std::logic_error("a Plan names a kernel that the cpu executor does not have");
}

}  // namespace shardscope::trainer
