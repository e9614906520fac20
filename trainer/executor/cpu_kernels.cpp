#include "trainer/executor/cpu_kernels.h"

#include <atomic>
#include <cmath>
#include <numeric>
#include <span>
#include <stdexcept>

#include "trainer/executor/cpu_onebit.h"
#include "trainer/executor/cpu_segments.h"
#include "trainer/kernels/activation.h"
#include "trainer/kernels/attention.h"
#include "trainer/kernels/attention_fused.h"
#include "trainer/kernels/batch_norm.h"
#include "trainer/kernels/cached_attention.h"
#include "trainer/kernels/compression.h"
#include "trainer/kernels/context_attention.h"
#include "trainer/kernels/convolution.h"
#include "trainer/kernels/dropout.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/experts.h"
#include "trainer/kernels/int8_linear.h"
#include "trainer/kernels/kv_head.h"
#include "trainer/kernels/layer_norm.h"
#include "trainer/kernels/linear.h"
#include "trainer/kernels/loss.h"
#include "trainer/kernels/pool.h"
#include "trainer/kernels/reductions.h"
#include "trainer/kernels/rms_norm.h"
#include "trainer/kernels/rotary.h"
#include "trainer/kernels/vocabulary.h"
#include "trainer/kernels/window.h"

namespace shardscope::trainer::executor {

namespace {

namespace k = kernels;

// Calls use(T{}) with the C++ type of a dtype.
template <class Use>
auto with_type(plan::DType dtype, const Use& use) {
    if (dtype == plan::DType::bf16) return use(k::Bf16{});
    if (dtype == plan::DType::fp16) return use(k::Fp16{});
    return use(float{});
}

// The same for an input whose type is T, fp32 or, where T is fp32, any.
template <class T, class Use>
void with_input_type(plan::DType dtype, const Use& use) {
    if constexpr (k::Narrow<T>) {
        if (dtype == plan::DType::fp32) return use(float{});
        return use(T{});
    } else {
        with_type(dtype, use);
    }
}

[[noreturn]] void unknown_kernel() {
    throw std::logic_error("a Plan names a kernel that the cpu executor does not have");
}

using Operands = device::KernelOperands;

std::span<const std::int32_t> counts_at(const Operands& o, std::size_t arg) {
    return {o.tokens(arg), static_cast<std::size_t>(o.op.args[arg].bytes) / sizeof(std::int32_t)};
}

// The elements that exist: all, or those of the rows that the counts at `arg` add up to.
std::size_t existing(const Operands& o, std::size_t arg) {
    if (o.count <= arg) return o.n();
    const auto counts = counts_at(o, arg);
    return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) *
                                    o.own.dims[1]);
}

template <class T>
void rotate(const Operands& o) {
    const auto turn = [&](const auto* table) {
        if (o.own.kernel == plan::Kernel::rotary_forward) {
            k::rotary_forward(o.as<const T>(1), table, o.as<T>(0), o.d(0), o.d(1), o.d(2), o.d(3), o.d(4));
        } else {
            k::rotary_backward(o.as<const T>(1), table, o.as<T>(0), o.d(0), o.d(1), o.d(2), o.d(3), o.d(4));
        }
    };
    with_input_type<T>(input_type(o.own, 5), [&]<class Table>(Table) { turn(o.as<const Table>(2)); });
}

template <class T>
void linear(const Operands& o, const T* x, const T* weight, const T* bias, T* y) {
    const auto forward = o.d(3) != 0 ? k::linear_forward_of_few<T> : k::linear_forward<T>;
    forward(x, weight, bias, y, o.d(0), o.d(1), o.d(2));
}

// The matmul, rounded, then the activation of the result: the same bits as the two kernels one after the
// other.
template <class T>
void linear_activation_forward(const Operands& o) {
    const bool relu = o.own.kernel == plan::Kernel::linear_relu_forward;
    const std::size_t x = relu ? 1 : 2, bias = x + 2;
    T* y = o.as<T>(0);
    T* sum = !relu && o.data[1] ? o.as<T>(1) : y;
    linear(o, o.as<const T>(x), o.as<const T>(x + 1), o.count > bias ? o.as<const T>(bias) : nullptr, sum);
    const std::size_t n = o.n() * static_cast<std::size_t>(o.own.dims[2]);
    relu ? k::relu_forward<T>(sum, y, n) : k::gelu_forward<T>(sum, y, n);
}

template <class T>
void drop(const Operands& o, const device::KernelContext& context) {
    o.for_dropout(context, [&](std::int64_t at, std::size_t count, std::uint64_t index) {
        k::dropout(o.as<const T>(1) + at, o.as<T>(0) + at, count, static_cast<float>(o.own.scalars[0]),
                   static_cast<std::uint64_t>(context.seed), static_cast<std::uint64_t>(o.own.dims[1]),
                   index);
    });
}

template <class T>
void layer_norm_backward(const Operands& o) {
    if (o.data[1]) {
        k::layer_norm_backward_parameters(o.as<const T>(3), o.as<const T>(4), o.f(6), o.f(7), o.as<T>(1),
                                          o.as<T>(2), o.d(0), o.d(1));
    }
    if (o.data[0]) {
        k::layer_norm_backward_input(o.as<const T>(3), o.as<const T>(4), o.as<const T>(5), o.f(6), o.f(7),
                                     o.as<T>(0), o.d(0), o.d(1));
    }
}

template <class T>
void rms_norm_backward(const Operands& o) {
    if (o.data[1]) {
        k::rms_norm_backward_parameters(o.as<const T>(2), o.as<const T>(3), o.f(5), o.as<T>(1), o.d(0),
                                        o.d(1));
    }
    if (o.data[0]) {
        k::rms_norm_backward_input(o.as<const T>(2), o.as<const T>(3), o.as<const T>(4), o.f(5), o.as<T>(0),
                                   o.d(0), o.d(1));
    }
}

k::AttentionShape attention_shape(const Operands& o) {
    return {o.d(0), o.d(1), o.d(3), o.d(2), o.d(4), o.d(5) == 0};
}

k::ContextAttentionShape context_shape(const Operands& o, const device::KernelContext& context) {
    return {o.d(0), o.d(1), o.d(3), o.d(2), o.d(4), context.cut, o.d(5) - 1};
}

k::CacheShape cache_shape(const Operands& o) {
    return {o.d(0), o.d(1), o.d(3), o.d(2), o.d(4), o.d(5)};
}

k::KvParts kv_parts(const Operands& o, const device::KernelContext& context) {
    return {o.d(0), o.d(1), o.d(2), o.d(3), o.d(4), context.tensor};
}

template <class T>
void copy_columns(const Operands& o) {
    const auto copy = [&](const auto* x) { k::copy_columns(x, o.as<T>(0), o.d(0), o.d(1), o.d(2), o.d(3)); };
    if (input_type(o.own, 4) == plan::DType::fp32) return copy(o.as<const float>(1));
    copy(o.as<const T>(1));
}

// Conversions between fp32 and a narrow type; false: the operation is not one.
template <class T>
bool run_cast(const Operands& o) {
    if constexpr (k::Narrow<T>) {
        if (o.own.kernel == plan::Kernel::cast_from_fp32) return k::cast(o.f(1), o.as<T>(0), o.n()), true;
        if (o.own.kernel == plan::Kernel::cast_to_fp32) return k::cast(o.as<const T>(1), o.f(0), o.n()), true;
    }
    return false;
}

// Kernels whose element type is KernelOp::dtype.
template <class T>
void run_typed(const Operands& o, const device::KernelContext& context) {
    const auto t = [&](std::size_t arg) { return o.as<T>(arg); };
    const auto in = [&](std::size_t arg) { return o.as<const T>(arg); };
    const auto d = [&](std::size_t dim) { return o.d(dim); };
    const std::size_t n = o.n();
    switch (o.own.kernel) {
        case plan::Kernel::linear_forward:
            return linear(o, in(1), in(2), o.count > 3 ? in(3) : nullptr, t(0));
        case plan::Kernel::linear_relu_forward:
        case plan::Kernel::linear_gelu_forward:
            return linear_activation_forward<T>(o);
        case plan::Kernel::linear_backward_input:
            return k::linear_backward_input(in(1), in(2), t(0), d(0), d(1), d(2));
        case plan::Kernel::linear_backward_weight:
            return k::linear_backward_weight(in(1), in(2), t(0), d(0), d(1), d(2));
        case plan::Kernel::linear_backward_bias:
            return k::linear_backward_bias(in(1), t(0), d(0), d(1));
#define ACTIVATION(name, ...)                                  \
    case plan::Kernel::name##_forward:                         \
        return k::name##_forward(in(1), t(0), existing(o, 2)); \
    case plan::Kernel::name##_backward:                        \
        return k::name##_backward(in(1), in(2), t(0), existing(o, 3));
#include "trainer/kernels/activations.def"
#undef ACTIVATION
        case plan::Kernel::silu_mul_forward:
            return k::silu_mul_forward(in(1), in(2), t(0), existing(o, 3));
        case plan::Kernel::silu_mul_backward:
            return k::silu_mul_backward(in(2), in(3), in(4), t(0), t(1), existing(o, 5));
        case plan::Kernel::dropout_forward:
        case plan::Kernel::dropout_backward:
            return drop<T>(o, context);
        case plan::Kernel::add:
            return k::add(in(1), in(2), t(0), n);
        case plan::Kernel::accumulate:
            return with_input_type<T>(input_type(o.own, 1),
                                      [&]<class X>(X) { k::accumulate(o.as<const X>(1), t(0), n); });
        case plan::Kernel::subtract:
            return k::subtract(in(1), t(0), n);
        case plan::Kernel::scale:
            return k::scale(t(0), static_cast<float>(o.own.scalars[0]), n);
        case plan::Kernel::scale_by:
            return k::scale(t(0), *o.f(1), n);
        case plan::Kernel::sum_of_squares:
            *o.f64(0) = k::sum_of_squares(in(1), n);
            return;
        case plan::Kernel::layer_norm_forward:
            return k::layer_norm_forward(in(3), in(4), in(5), t(0), o.f(1), o.f(2), d(0), d(1),
                                         device::kNormEps);
        case plan::Kernel::layer_norm_backward:
            return layer_norm_backward<T>(o);
        case plan::Kernel::rms_norm_forward:
            return k::rms_norm_forward(in(2), in(3), t(0), o.f(1), d(0), d(1), device::kNormEps);
        case plan::Kernel::rms_norm_backward:
            return rms_norm_backward<T>(o);
        case plan::Kernel::rotary_table:
            return k::rotary_table(t(0), d(0), d(1), o.own.scalars[0], o.count > 1 ? o.tokens(1) : nullptr);
        case plan::Kernel::rotary_forward:
        case plan::Kernel::rotary_backward:
            return rotate<T>(o);
        case plan::Kernel::attention_forward:
            return k::attention_forward(in(2), t(0), t(1), attention_shape(o));
        case plan::Kernel::attention_backward:
            return k::attention_backward(in(2), in(3), in(4), t(0), o.f(1), attention_shape(o));
        case plan::Kernel::fused_attention_forward:
            return k::fused_attention_forward(in(2), t(0), o.f(1), attention_shape(o));
        case plan::Kernel::fused_attention_backward:
            return k::fused_attention_backward(in(2), in(3), in(4), o.f(5), t(0), o.f(1), attention_shape(o));
        case plan::Kernel::store_keys:
            return k::store_keys(in(1), o.tokens(2), t(0), cache_shape(o));
        case plan::Kernel::cached_attention_forward:
            return k::cached_attention_forward(in(1), in(2), o.tokens(3), t(0), cache_shape(o));
        case plan::Kernel::context_attention_forward:
            return k::context_attention_forward(in(2), in(3), o.f(0), o.f(1), context_shape(o, context));
        case plan::Kernel::context_attention_backward:
            return k::context_attention_backward(in(3), in(4), in(5), in(6), o.f(7), o.f(0), o.f(1), o.f(2),
                                                 context_shape(o, context));
        case plan::Kernel::copy_columns:
            return copy_columns<T>(o);
        case plan::Kernel::take_kv_head:
            return k::take_kv_head(in(1), t(0), kv_parts(o, context));
        case plan::Kernel::spread_kv_head:
            return k::spread_kv_head(in(1), t(0), kv_parts(o, context));
        case plan::Kernel::embedding_forward:
            return k::embedding_forward(o.tokens(1), in(2), t(0), d(0), d(1));
        case plan::Kernel::embedding_backward:
            return k::embedding_backward(in(1), o.tokens(2), t(0), d(0), d(2), d(1));
        case plan::Kernel::zero_rows:
            return k::zero_rows(t(0), o.tokens(1), d(0), d(1), d(2));
        case plan::Kernel::position_forward:
            return k::position_embedding_forward(in(1), in(2), t(0), o.position_rows(3), d(1), d(2),
                                                 o.first_row(3, context));
        case plan::Kernel::position_backward:
            return k::position_embedding_backward(in(1), t(0), o.position_rows(4), d(1), d(3), d(2),
                                                  o.first_row(4, context));
        case plan::Kernel::scatter_rows:
            return k::scatter_rows(in(2), in(3), o.f(4), o.tokens(5), t(0), o.f(1), d(0), d(1), d(2));
        case plan::Kernel::gather_rows:
            return k::gather_rows(in(1), o.f(2), o.tokens(3), t(0), d(0), d(1), d(2));
        case plan::Kernel::grouped_linear_forward:
            return k::grouped_linear_forward(in(1), in(2), t(0), counts_at(o, 3), d(1), d(2), d(3));
        case plan::Kernel::grouped_linear_backward_input:
            return k::grouped_linear_backward_input(in(1), in(2), t(0), counts_at(o, 3), d(1), d(2), d(3));
        case plan::Kernel::grouped_linear_backward_weight:
            return k::grouped_linear_backward_weight(in(1), in(2), t(0), counts_at(o, 3), d(1), d(2), d(3));
        default:
            if (!run_cast<T>(o)) unknown_kernel();
    }
}

k::ImageShape image_shape(const Operands& o) {
    return {o.d(0), o.d(1), o.d(2), o.d(3)};
}

// Kernels of images; false: the operation is not one of them.
bool run_on_images(const Operands& o) {
    const auto convolution = [&o] {
        return k::ConvolutionShape{image_shape(o), o.d(4), k::Window::unpacked(o.own.dims[5])};
    };
    const auto window = [&o] { return k::Window::unpacked(o.own.dims[4]); };
    switch (o.own.kernel) {
        case plan::Kernel::convolution_forward:
            return k::convolution_forward(o.f(1), o.f(2), o.count > 3 ? o.f(3) : nullptr, o.f(0),
                                          convolution()),
                   true;
        case plan::Kernel::convolution_backward_input:
            return k::convolution_backward_input(o.f(1), o.f(2), o.f(0), convolution()), true;
        case plan::Kernel::convolution_backward_weight:
            return k::convolution_backward_weight(o.f(1), o.f(2), o.f(0), convolution()), true;
        case plan::Kernel::max_pool_forward:
            return k::max_pool_forward(o.f(2), o.f(0), o.as<std::int32_t>(1), image_shape(o), window()), true;
        case plan::Kernel::max_pool_backward:
            return k::max_pool_backward(o.f(1), o.tokens(2), o.f(0), image_shape(o), window()), true;
        case plan::Kernel::adaptive_average_forward:
            return k::adaptive_average_forward(o.f(1), o.f(0), image_shape(o), o.d(4)), true;
        case plan::Kernel::adaptive_average_backward:
            return k::adaptive_average_backward(o.f(1), o.f(0), image_shape(o), o.d(4)), true;
        case plan::Kernel::batch_norm_forward:
            return k::batch_norm_forward(o.f(5), o.f(6), o.f(7), o.f(0), o.f(1), o.f(2),
                                         {o.f(3), o.f(4), static_cast<float>(o.own.scalars[0])}, o.d(0),
                                         o.d(1), device::kNormEps),
                   true;
        case plan::Kernel::batch_norm_evaluate:
            return k::batch_norm_evaluate(o.f(3), o.f(4), o.f(5), o.f(1), o.f(2), o.f(0), o.d(0), o.d(1),
                                          device::kNormEps),
                   true;
        case plan::Kernel::batch_norm_backward:
            return k::batch_norm_backward(o.f(3), o.f(4), o.f(5), o.f(6), o.f(7), o.f(0), o.f(1), o.f(2),
                                          o.d(0), o.d(1)),
                   true;
        case plan::Kernel::batch_norm_statistics:
            return k::batch_norm_statistics(o.f(1), o.f(0), o.d(0), o.d(1)), true;
        case plan::Kernel::batch_norm_synced_forward:
            return k::batch_norm_synced_forward(o.f(5), o.f(8), o.d(2), o.f(6), o.f(7), o.f(0), o.f(1),
                                                o.f(2),
                                                {o.f(3), o.f(4), static_cast<float>(o.own.scalars[0])},
                                                o.d(0), o.d(1), device::kNormEps),
                   true;
        case plan::Kernel::batch_norm_gradient_sums:
            return k::batch_norm_gradient_sums(o.f(3), o.f(4), o.f(5), o.f(6), o.f(0), o.f(1), o.f(2), o.d(0),
                                               o.d(1)),
                   true;
        case plan::Kernel::batch_norm_synced_backward:
            return k::batch_norm_synced_backward(o.f(1), o.f(2), o.f(3), o.f(4), o.f(5), o.f(6), o.f(0),
                                                 o.d(0), o.d(1), o.own.dims[0] * o.own.dims[2]),
                   true;
        default:
            return false;
    }
}

void orthogonalize(const Operands& o, const device::KernelContext& context) {
    const auto rank = static_cast<std::size_t>(o.own.dims[0]);
    for (const plan::Segment& segment : context.segments) {
        const std::size_t length = static_cast<std::size_t>(segment.elements) / rank;
        const auto epsilon = static_cast<float>(o.own.scalars[0]);
        float* matrix = o.f(0) + segment.first;
        o.own.dims[1] != 0 ? k::orthogonalize_rows(matrix, rank, length, epsilon)
                           : k::orthogonalize_columns(matrix, length, rank, epsilon);
    }
}

// Kernels whose element types are fixed; false: the operation is not one of them.
bool run_untyped(const Operands& o, const device::KernelContext& context) {
    const std::size_t n = o.n();
    const auto loss_scale = static_cast<float>(context.loss_scale);
    switch (o.own.kernel) {
        case plan::Kernel::none:
            return true;
        case plan::Kernel::init_normal:
        case plan::Kernel::init_uniform:
        case plan::Kernel::init_constant:
            return initialize(o.op, o.data, context), true;
        case plan::Kernel::int8_linear_forward:
            return k::int8_linear_forward(o.f(1), o.as<const std::int8_t>(2), o.f(3),
                                          o.count > 4 ? o.f(4) : nullptr, o.f(0), o.d(0), o.d(1), o.d(2)),
                   true;
        case plan::Kernel::mse_forward:
            return k::mse_forward(o.f(1), o.f(2), o.f64(0), n), true;
        case plan::Kernel::mse_backward:
            return k::mse_backward(o.f(1), o.f(2), o.f(0), n, loss_scale), true;
        case plan::Kernel::cross_entropy_forward:
            return k::cross_entropy_forward(o.f(2), o.tokens(3), o.f(1), o.f64(0), o.d(0), o.d(1), o.d(2),
                                            o.own.scalars[0]),
                   true;
        case plan::Kernel::cross_entropy_backward:
            return k::cross_entropy_backward(o.f(1), o.tokens(2), o.f(0), o.d(0), o.d(1), o.d(2),
                                             o.own.scalars[0], loss_scale),
                   true;
        case plan::Kernel::top_one:
            *o.f64(0) = k::top_one(o.f(1), o.tokens(2), o.d(0), o.d(1));
            return true;
        case plan::Kernel::local_tokens:
            return k::local_tokens(o.tokens(2), o.as<std::int32_t>(0), o.as<std::int32_t>(1), n,
                                   context.tensor * o.own.dims[1], o.d(1)),
                   true;
        case plan::Kernel::largest_logit:
            return k::largest_logit(o.f(1), o.f(0), o.d(0), o.d(1), o.valid_classes(context)), true;
        case plan::Kernel::exp_logits:
            return k::exp_logits(o.f(3), o.f(4), o.tokens(5), o.f(0), o.f(1), o.f(2), o.d(0), o.d(1),
                                 o.valid_classes(context)),
                   true;
        case plan::Kernel::vocabulary_loss:
            return k::vocabulary_loss(o.f(1), o.f(2), o.f(3), o.tokens(4), o.f64(0), o.d(0), o.d(1), o.d(2)),
                   true;
        case plan::Kernel::choose_experts:
            return k::choose_experts(o.f(3), o.f(0), o.as<std::int32_t>(1), o.f(2), o.d(0), o.d(1), o.d(2)),
                   true;
        case plan::Kernel::choose_experts_backward:
            return k::choose_experts_backward(o.f(1), o.tokens(2), o.f(3), o.f(4),
                                              static_cast<float>(o.own.scalars[0]) * loss_scale, o.f(0),
                                              o.d(0), o.d(1), o.d(2)),
                   true;
        case plan::Kernel::route:
            return k::route(o.tokens(3), o.as<std::int32_t>(0), o.as<std::int32_t>(1), o.f(2), n, o.d(1),
                            o.d(2)),
                   true;
        case plan::Kernel::context_positions:
            return k::context_positions(o.as<std::int32_t>(0), o.d(0), context.cut), true;
        case plan::Kernel::attention_merge:
            return k::merge_attention(o.f(0), o.f(1), o.f(2), o.f(3),
                                      {o.d(0), o.d(1), o.d(3), o.d(2), 1, {}}),
                   true;
        case plan::Kernel::cat:
            return cat(o.op, o.data, true), true;
        case plan::Kernel::split:
            return cat(o.op, o.data, false), true;
        case plan::Kernel::chunk_cat:
            return chunk_cat(o.op, o.data, context, true), true;
        case plan::Kernel::chunk_split:
            return chunk_cat(o.op, o.data, context, false), true;
        case plan::Kernel::orthogonalize:
            return orthogonalize(o, context), true;
        case plan::Kernel::select_largest:
            return k::select_largest(o.f(2), n, static_cast<std::size_t>(o.own.dims[1]),
                                     o.as<std::int32_t>(0), o.f(1)),
                   true;
        case plan::Kernel::add_selected:
            return k::add_selected(o.tokens(1), o.f(2), static_cast<std::size_t>(o.own.dims[1]), o.d(2),
                                   static_cast<float>(o.own.scalars[0]), o.f(0), n),
                   true;
        case plan::Kernel::unscale:
            k::scale(o.f(0), static_cast<float>(1 / context.loss_scale), n);
            if (!k::all_finite(o.f(0), n)) *o.f(1) = 1;
            return true;
        case plan::Kernel::segment_squares:
            return segment_squares(o.op, o.data, context), true;
        case plan::Kernel::clip_factor:
            *o.f(0) = k::clip_factor(o.f64(2), n, o.own.scalars[0], o.f64(1));
            return true;
        case plan::Kernel::sgd:
        case plan::Kernel::adam:
        case plan::Kernel::adamw:
        case plan::Kernel::lars_norms:
        case plan::Kernel::lars:
        case plan::Kernel::lamb_update:
        case plan::Kernel::lamb:
        case plan::Kernel::novograd:
            return step_segments(o.op, o.data, context), true;
        case plan::Kernel::compress_signs:
        case plan::Kernel::average_signs:
        case plan::Kernel::expand_signs:
        case plan::Kernel::onebit_freeze:
        case plan::Kernel::onebit_momentum:
        case plan::Kernel::onebit_adam:
        case plan::Kernel::onebit_lamb_averages:
        case plan::Kernel::onebit_lamb:
            return run_onebit(o.op, o.data, context), true;
        case plan::Kernel::novograd_moments:
            return novograd_moments(o.op, o.data, context), true;
        default:
            return run_on_images(o);
    }
}

// Whether the kernel's first arg holds an infinity or a NaN.
bool output_is_finite(const plan::Op& op, const std::byte* output) {
    const plan::Kernel kernel = op.kernel().kernel;
    const bool one_double =
        kernel == plan::Kernel::mse_forward || kernel == plan::Kernel::cross_entropy_forward;
    if (one_double) return std::isfinite(*reinterpret_cast<const double*>(output));
    const plan::DType dtype = kernel == plan::Kernel::cast_to_fp32 ? plan::DType::fp32 : op.kernel().dtype;
    return with_type(dtype, [&]<class T>(T) {
        return k::all_finite(reinterpret_cast<const T*>(output),
                             static_cast<std::size_t>(op.args[0].bytes) / sizeof(T));
    });
}

}  // namespace

void run_kernel(const plan::Op& op, const std::vector<std::byte*>& data,
                const device::KernelContext& context) {
    const plan::KernelOp& own = op.kernel();
    const Operands operands{op, own, data, data.size() - (own.checks_output ? 1 : 0)};
    if (!run_untyped(operands, context)) {
        with_type(own.dtype, [&]<class T>(T) { run_typed<T>(operands, context); });
    }
    if (own.checks_output && !output_is_finite(op, data[0])) {
        std::int32_t none_yet = -1;  // another stream may report at the same time
        std::atomic_ref(*operands.as<std::int32_t>(operands.count))
            .compare_exchange_strong(none_yet, op.module);
    }
}

}  // namespace shardscope::trainer::executor
