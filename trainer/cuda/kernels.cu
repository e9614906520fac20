// The dispatch; see kernels.h. The order of args and dims is in trainer/plan/kernels.def.
#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "trainer/cuda/activation.h"
#include "trainer/cuda/attention.h"
#include "trainer/cuda/cached_attention.h"
#include "trainer/cuda/compression.h"
#include "trainer/cuda/context_attention.h"
#include "trainer/cuda/copies.h"
#include "trainer/cuda/dropout.h"
#include "trainer/cuda/elementwise.h"
#include "trainer/cuda/embedding.h"
#include "trainer/cuda/experts.h"
#include "trainer/cuda/gemm.h"
#include "trainer/cuda/image_kernels.h"
#include "trainer/cuda/initialize.h"
#include "trainer/cuda/int8_linear.h"
#include "trainer/cuda/kernels.h"
#include "trainer/cuda/kv_head.h"
#include "trainer/cuda/loss.h"
#include "trainer/cuda/norms.h"
#include "trainer/cuda/optimizer.h"
#include "trainer/cuda/reductions.h"
#include "trainer/cuda/rotary.h"
#include "trainer/cuda/row_sums.h"
#include "trainer/cuda/types.h"
#include "trainer/cuda/vocabulary.h"

namespace shardscope::trainer::cuda {

namespace {

struct Operands : device::KernelOperands {
    const device::KernelContext& context;
    const DeviceContext& device;

    double scalar(std::size_t i) const { return own.scalars[i]; }
};

// --- kernels on a rank's part of a sequence of elements ----------------------------------------------------

void initialize(const Operands& o) {
    const std::int64_t key = o.own.dims[0], first = o.own.dims[1], elements = o.own.dims[2],
                       per_rank = o.own.dims[3];
    const device::Held held = per_rank > 0
                                  ? device::Held{o.context.place * per_rank, (o.context.place + 1) * per_rank}
                                  : device::Held{0, first + elements};
    const device::Held part = held.part(first, elements);
    const std::size_t n = part.count();
    if (n == 0) return;
    float* out = o.f(0) + (part.begin - held.begin);
    const auto a = static_cast<float>(o.scalar(0)), b = static_cast<float>(o.scalar(1));
    const auto fill = [&](std::size_t at, std::size_t count, std::uint64_t index) {
        const Sequence sequence{static_cast<std::uint64_t>(o.context.seed), static_cast<std::uint64_t>(key),
                                index};
        switch (o.own.kernel) {
            case plan::Kernel::init_normal:
                return fill_normal(o.device, out + at, count, sequence, a, b);
            case plan::Kernel::init_uniform:
                return fill_uniform(o.device, out + at, count, sequence, a, b);
            default:
                return fill_constant(o.device, out + at, count, a);
        }
    };
    for_pieces(o.own, part.begin - first, n, o.context, fill);
}

// Of dims elements, elements per rank.
device::Held held_of(const Operands& o) {
    const std::int64_t begin = o.own.dims[1] > 0 ? o.context.place * o.own.dims[1] : 0;
    return {begin, begin + o.own.dims[0]};
}

void segment_squares(const Operands& o) {
    const device::Held held = held_of(o);
    const std::span<const plan::Segment> segments = o.context.segments;
    check(cudaMemsetAsync(o.f64(0), 0, segments.size() * sizeof(double), o.device.stream),
          "cudaMemsetAsync of squares");
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const device::Held part = held.part(segments[i].first, segments[i].elements);
        if (part.count() == 0) continue;
        sum_of_squares(o.device, o.as<const float>(1) + (part.begin - held.begin), part.count(),
                       o.f64(0) + i);
    }
}

void step_segments(const Operands& o) {
    const device::Held held = held_of(o);
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < o.context.segments.size(); ++i) {
        const plan::Segment& segment = o.context.segments[i];
        const device::Held part = held.part(segment.first, segment.elements);
        if (!segment.trained || part.count() == 0) continue;
        ranges.push_back(
            {part.begin - held.begin, part.end - held.begin, static_cast<std::int32_t>(i), segment.adapted});
    }
    const std::size_t segments = o.context.segments.size();
    const double lr = o.context.lr;
    const AdamSettings adam_settings{lr,          o.scalar(0), o.scalar(1),
                                     o.scalar(2), o.scalar(3), o.context.updates + 1};
    const DeviceContext& device = o.device;
    switch (o.own.kernel) {
        case plan::Kernel::sgd:
            return sgd(device, ranges, o.f(0), o.f(1), o.count > 2 ? o.f(2) : nullptr,
                       o.scalar(3) > 0 ? o.scalar(3) : lr, o.scalar(0), o.scalar(2) != 0, o.scalar(1));
        case plan::Kernel::adam:
        case plan::Kernel::adamw:
            return adam(device, ranges, o.f(0), o.f(1), o.f(2), o.f(3), adam_settings,
                        o.own.kernel == plan::Kernel::adamw);
        case plan::Kernel::lars_norms:
            return squared_norms(device, ranges, o.f64(0), segments, o.f(1), o.f(2));
        case plan::Kernel::lars:  // the buffer exists only with momentum; the norms are last
            return lars(device, ranges, o.f(0), o.f(1), o.count > 3 ? o.f(2) : nullptr, o.f64(o.count - 1),
                        lr, o.scalar(0), o.scalar(3) != 0, o.scalar(1), o.scalar(2));
        case plan::Kernel::lamb_update:
            return lamb_update(device, ranges, o.f64(0), segments, o.f(1), o.f(2), o.f(3), o.f(4),
                               adam_settings);
        case plan::Kernel::novograd:
            return novograd(device, ranges, o.f(0), o.f(1), o.f(2), o.f(3),
                            {lr, o.scalar(0), 0, o.scalar(1), o.scalar(2)});
        default:
            return lamb(device, ranges, o.f(0), o.f(1), o.f64(2), lr);
    }
}

void orthogonalize(const Operands& o) {
    const auto rank = static_cast<std::size_t>(o.own.dims[0]);
    for (const plan::Segment& segment : o.context.segments) {
        const std::size_t length = static_cast<std::size_t>(segment.elements) / rank;
        const bool by_rows = o.own.dims[1] != 0;
        orthogonalize(o.device, o.f(0) + segment.first, by_rows ? rank : length, by_rows ? length : rank,
                      by_rows, static_cast<float>(o.scalar(0)));
    }
}

// --- copies ------------------------------------------------------------------------------------------------

void cat_or_split(const Operands& o) {
    std::vector<Component> components;
    std::int64_t at = 0;
    for (std::size_t i = 1; i < o.count; ++i) {
        const std::int64_t bytes = o.op.args[i].bytes;
        components.push_back({o.data[i], bytes, bytes, at});
        at += bytes;
    }
    move_pieces(o.device, o.data[0], 1, at, components, o.own.kernel == plan::Kernel::cat);
}

void chunk_cat_or_split(const Operands& o) {
    const bool gather = o.own.kernel == plan::Kernel::chunk_cat;
    const plan::DType in_type = input_type(o.own, 1);
    const bool converts = in_type != o.own.dtype;
    const std::int64_t ranks = o.own.dims[0], part = o.op.args[0].bytes / ranks;
    if (o.context.segments.size() + 1 < o.count) {
        throw std::logic_error("a Plan cuts a buffer into pieces but has no segments for them");
    }
    // Components are counted in bytes, or in elements if they are converted.
    const std::int64_t size = converts ? 1 : size_of(o.own.dtype);
    std::vector<Component> components;
    for (std::size_t i = 1; i < o.count; ++i) {
        const plan::Segment& segment = o.context.segments[i - 1];
        const std::int64_t all = converts ? o.op.args[i].bytes / size_of(in_type) : o.op.args[i].bytes;
        components.push_back({o.data[i], all, segment.elements * size, segment.first * size});
    }
    if (!converts) return move_pieces(o.device, o.data[0], ranks, part, components, gather);
    const std::int64_t part_elements = part / size_of(o.own.dtype);
    const bool widens = o.own.dtype == plan::DType::fp32;
    const auto convert = [&]<class Narrow>(Narrow) {
        if (widens) return convert_pieces<Narrow>(o.device, o.f(0), ranks, part_elements, components);
        convert_pieces<float>(o.device, o.as<Narrow>(0), ranks, part_elements, components);
    };
    (widens ? in_type : o.own.dtype) == plan::DType::fp16 ? convert(Fp16{}) : convert(Bf16{});
}

// --- rows that exist -------------------------------------------------------------------------------------

int groups_at(const Operands& o, std::size_t arg) {
    return device::kernel_dim(o.op.args[arg].bytes / static_cast<std::int64_t>(sizeof(std::int32_t)));
}

// All, or those that the counts at `arg` add up to.
Existing existing(const Operands& o, std::size_t arg) {
    if (o.count <= arg) return {};
    return {o.tokens(arg), groups_at(o, arg), o.d(1)};
}

GroupedShape grouped_shape(const Operands& o) {
    return {o.d(0), o.d(1), o.d(2), o.d(3), o.d(4)};
}

// --- kernels by element type -------------------------------------------------------------------------------

// Calls use(X{}) with the type of an input that is T, fp32 or, where T is fp32, any.
template <class T, class Use>
void with_input_type(plan::DType dtype, const Use& use) {
    if constexpr (std::is_same_v<T, float>) {
        with_type(dtype, use);
    } else {
        if (dtype == plan::DType::fp32) return use(float{});
        use(T{});
    }
}

template <class T>
void turn(const Operands& o) {
    const RotaryShape shape{o.batch_rows() / o.d(1), o.d(1), o.d(2), o.d(3), o.d(4)};
    const bool backward = o.own.kernel == plan::Kernel::rotary_backward;
    with_input_type<T>(input_type(o.own, 5), [&]<class Table>(Table) {
        rotate(o.device, o.as<const T>(1), o.as<const Table>(2), o.as<T>(0), shape, backward);
    });
}

template <class T>
void drop(const Operands& o) {
    o.for_dropout(o.context, [&](std::int64_t at, std::size_t count, std::uint64_t index) {
        dropout(
            o.device, o.as<const T>(1) + at, o.as<T>(0) + at, count, static_cast<float>(o.scalar(0)),
            {static_cast<std::uint64_t>(o.context.seed), static_cast<std::uint64_t>(o.own.dims[1]), index});
    });
}

ContextSizes context_sizes(const Operands& o) {
    return {o.d(0), o.d(1), o.d(2), o.d(3), o.d(4), o.d(5), o.context.cut};
}

kernels::CacheShape cache_shape(const Operands& o) {
    return {o.d(0), o.d(1), o.d(3), o.d(2), o.d(4), o.d(5)};
}

kernels::KvParts kv_parts(const Operands& o) {
    return {o.d(0), o.d(1), o.d(2), o.d(3), o.d(4), o.context.tensor};
}

template <class T>
void columns(const Operands& o) {
    const auto copy = [&](const auto* x) {
        copy_columns(o.device, x, o.as<T>(0), o.d(0), o.d(1), o.d(2), o.d(3));
    };
    if (input_type(o.own, 4) == plan::DType::fp32) return copy(o.as<const float>(1));
    copy(o.as<const T>(1));
}

// The parameters' gradients come first, because dx may be dy.
template <class T>
void layer_norm_backward(const Operands& o) {
    const T *dy = o.as<const T>(3), *x = o.as<const T>(4);
    if (o.data[1]) {
        layer_norm_backward_parameters(o.device, dy, x, o.f(6), o.f(7), o.as<T>(1), o.as<T>(2), o.d(0),
                                       o.d(1));
    }
    if (o.data[0]) {
        layer_norm_backward_input(o.device, dy, x, o.as<const T>(5), o.f(6), o.f(7), o.as<T>(0), o.d(0),
                                  o.d(1));
    }
}

template <class T>
void rms_norm_backward(const Operands& o) {
    const T *dy = o.as<const T>(2), *x = o.as<const T>(3);
    if (o.data[1]) rms_norm_backward_parameters(o.device, dy, x, o.f(5), o.as<T>(1), o.d(0), o.d(1));
    if (o.data[0]) {
        rms_norm_backward_input(o.device, dy, x, o.as<const T>(4), o.f(5), o.as<T>(0), o.d(0), o.d(1));
    }
}

// Conversions between fp32 and a narrow type; false: the operation is not one.
template <class T>
bool launch_cast(const Operands& o) {
    if constexpr (!std::is_same_v<T, float>) {
        if (o.own.kernel == plan::Kernel::cast_from_fp32)
            return cast(o.device, o.as<const float>(1), o.as<T>(0), o.n()), true;
        if (o.own.kernel == plan::Kernel::cast_to_fp32)
            return cast(o.device, o.as<const T>(1), o.f(0), o.n()), true;
    }
    return false;
}

template <class T>
void launch_typed(const Operands& o) {
    const DeviceContext& device = o.device;
    const auto t = [&](std::size_t arg) { return o.as<T>(arg); };
    const auto in = [&](std::size_t arg) { return o.as<const T>(arg); };
    const auto d = [&](std::size_t dim) { return o.d(dim); };
    const std::size_t n = o.n();
    switch (o.own.kernel) {
#define ACTIVATION(name, ...)                                                                            \
    case plan::Kernel::name##_forward:                                                                   \
        return activation_forward(kernels::ActivationKind::name, in(1), t(0), n, existing(o, 2),         \
                                  device.stream);                                                        \
    case plan::Kernel::name##_backward:                                                                  \
        return activation_backward(kernels::ActivationKind::name, in(1), in(2), t(0), n, existing(o, 3), \
                                   device.stream);
#include "trainer/kernels/activations.def"
#undef ACTIVATION
        case plan::Kernel::silu_mul_forward:
            return silu_mul_forward(device, in(1), in(2), t(0), n, existing(o, 3));
        case plan::Kernel::silu_mul_backward:
            return silu_mul_backward(device, in(2), in(3), in(4), t(0), t(1), n, existing(o, 5));
        case plan::Kernel::dropout_forward:
        case plan::Kernel::dropout_backward:
            return drop<T>(o);
        case plan::Kernel::add:
            return add(device, in(1), in(2), t(0), n);
        case plan::Kernel::accumulate:
            return with_input_type<T>(input_type(o.own, 1),
                                      [&]<class X>(X) { accumulate(device, o.as<const X>(1), t(0), n); });
        case plan::Kernel::subtract:
            return subtract(device, in(1), t(0), n);
        case plan::Kernel::scale:
            return scale(device, t(0), static_cast<float>(o.scalar(0)), n);
        case plan::Kernel::scale_by:
            return scale_by(device, t(0), o.f(1), n);
        case plan::Kernel::sum_of_squares:
            return sum_of_squares(device, in(1), n, o.f64(0));
        case plan::Kernel::linear_backward_bias:
            return row_sums(device, in(1), t(0), d(0), d(1));
        case plan::Kernel::layer_norm_forward:
            return layer_norm_forward(device, in(3), in(4), in(5), t(0), o.f(1), o.f(2), d(0), d(1),
                                      device::kNormEps);
        case plan::Kernel::layer_norm_backward:
            return layer_norm_backward<T>(o);
        case plan::Kernel::rms_norm_forward:
            return rms_norm_forward(device, in(2), in(3), t(0), o.f(1), d(0), d(1), device::kNormEps);
        case plan::Kernel::rms_norm_backward:
            return rms_norm_backward<T>(o);
        case plan::Kernel::rotary_table:
            return rotary_table(device, t(0), d(0), d(1), o.scalar(0), o.count > 1 ? o.tokens(1) : nullptr);
        case plan::Kernel::rotary_forward:
        case plan::Kernel::rotary_backward:
            return turn<T>(o);
        case plan::Kernel::store_keys:
            return store_keys(device, in(1), o.tokens(2), t(0), cache_shape(o));
        case plan::Kernel::cached_attention_forward:
            return cached_attention_forward(device, in(1), in(2), o.tokens(3), t(0), cache_shape(o));
        case plan::Kernel::context_attention_forward:
            return context_attention_forward(device, in(2), in(3), o.f(0), o.f(1), context_sizes(o));
        case plan::Kernel::context_attention_backward:
            return context_attention_backward(device, in(3), in(4), in(5), in(6), o.f(7), o.f(0), o.f(1),
                                              o.f(2), context_sizes(o));
        case plan::Kernel::copy_columns:
            return columns<T>(o);
        case plan::Kernel::take_kv_head:
            return take_kv_head(device, in(1), t(0), kv_parts(o));
        case plan::Kernel::spread_kv_head:
            return spread_kv_head(device, in(1), t(0), kv_parts(o));
        case plan::Kernel::embedding_forward:
            return embedding_forward(device, o.tokens(1), in(2), t(0), d(0), d(1));
        case plan::Kernel::embedding_backward:
            return embedding_backward(device, in(1), o.tokens(2), t(0), d(0), d(2), d(1));
        case plan::Kernel::zero_rows:
            return zero_rows(device, t(0), o.tokens(1), d(0), d(1), d(2));
        case plan::Kernel::position_forward:
            return position_forward(device, in(1), in(2), t(0), o.position_rows(3), d(1), d(2),
                                    o.first_row(3, o.context));
        case plan::Kernel::position_backward:
            return position_backward(device, in(1), t(0), o.position_rows(4), d(1), d(3), d(2),
                                     o.first_row(4, o.context));
        case plan::Kernel::scatter_rows:
            return scatter_rows(device, in(2), in(3), o.f(4), o.tokens(5), t(0), o.f(1), d(0), d(1), d(2));
        case plan::Kernel::gather_rows:
            return gather_rows(device, in(1), o.f(2), o.tokens(3), t(0), d(0), d(1), d(2));
        case plan::Kernel::grouped_linear_forward:
            return grouped_linear_forward(device, in(1), in(2), t(0), o.tokens(3), grouped_shape(o));
        case plan::Kernel::grouped_linear_backward_input:
            return grouped_linear_backward_input(device, in(1), in(2), t(0), o.tokens(3), grouped_shape(o));
        case plan::Kernel::grouped_linear_backward_weight:
            return grouped_linear_backward_weight(device, in(1), in(2), t(0), o.tokens(3), grouped_shape(o));
        default:
            if (!launch_cast<T>(o))
                throw std::logic_error("a Plan names a kernel that the cuda device does not have");
    }
}

// Launches kernels whose element types are fixed or chosen elsewhere; false if the op is not one of them.
bool launch_untyped(const Operands& o) {
    const DeviceContext& device = o.device;
    const std::size_t n = o.n();
    const auto loss_scale = static_cast<float>(o.context.loss_scale);
    switch (o.own.kernel) {
        case plan::Kernel::none:
            return true;
        case plan::Kernel::init_normal:
        case plan::Kernel::init_uniform:
        case plan::Kernel::init_constant:
            return initialize(o), true;
        case plan::Kernel::linear_forward:
        case plan::Kernel::linear_relu_forward:
        case plan::Kernel::linear_gelu_forward:
        case plan::Kernel::linear_backward_input:
        case plan::Kernel::linear_backward_weight:
            return device.gemm.launch(o.op, o.data, device.stream), true;
        case plan::Kernel::int8_linear_forward:
            return int8_linear_forward(device, o.f(1), o.as<const std::int8_t>(2), o.f(3),
                                       o.count > 4 ? o.f(4) : nullptr, o.f(0), o.d(0), o.d(1), o.d(2)),
                   true;
        case plan::Kernel::attention_forward:
        case plan::Kernel::attention_backward:
        case plan::Kernel::fused_attention_forward:
        case plan::Kernel::fused_attention_backward:
            return launch_attention(o.op, o.data, device.stream), true;
        case plan::Kernel::mse_forward:
            return mse_forward(device, o.f(1), o.f(2), o.f64(0), n), true;
        case plan::Kernel::mse_backward:
            return mse_backward(device, o.f(1), o.f(2), o.f(0), n, loss_scale), true;
        case plan::Kernel::cross_entropy_forward:
            return cross_entropy_forward(device, o.f(2), o.tokens(3), o.f(1), o.f64(0), o.d(0), o.d(1),
                                         o.d(2), o.scalar(0)),
                   true;
        case plan::Kernel::cross_entropy_backward:
            return cross_entropy_backward(device, o.f(1), o.tokens(2), o.f(0), o.d(0), o.d(1), o.d(2),
                                          o.scalar(0), loss_scale),
                   true;
        case plan::Kernel::top_one:
            return top_one(device, o.f(1), o.tokens(2), o.f64(0), o.d(0), o.d(1)), true;
        case plan::Kernel::local_tokens:
            return local_tokens(device, o.tokens(2), o.as<std::int32_t>(0), o.as<std::int32_t>(1), n,
                                o.context.tensor * o.own.dims[1], o.d(1)),
                   true;
        case plan::Kernel::largest_logit:
            return largest_logit(device, o.f(1), o.f(0), o.d(0), o.d(1), o.valid_classes(o.context)), true;
        case plan::Kernel::exp_logits:
            return exp_logits(device, o.f(3), o.f(4), o.tokens(5), o.f(0), o.f(1), o.f(2), o.d(0), o.d(1),
                              o.valid_classes(o.context)),
                   true;
        case plan::Kernel::vocabulary_loss:
            return vocabulary_loss(device, o.f(1), o.f(2), o.f(3), o.tokens(4), o.f64(0), o.d(0), o.d(1),
                                   o.d(2)),
                   true;
        case plan::Kernel::choose_experts:
            return choose_experts(device, o.f(3), o.f(0), o.as<std::int32_t>(1), o.f(2), o.d(0), o.d(1),
                                  o.d(2)),
                   true;
        case plan::Kernel::choose_experts_backward:
            return choose_experts_backward(device, o.f(1), o.tokens(2), o.f(3), o.f(4),
                                           static_cast<float>(o.scalar(0)) * loss_scale, o.f(0), o.d(0),
                                           o.d(1), o.d(2)),
                   true;
        case plan::Kernel::route:
            return route(device, o.tokens(3), o.as<std::int32_t>(0), o.as<std::int32_t>(1), o.f(2), o.d(0),
                         o.d(1), o.d(2)),
                   true;
        case plan::Kernel::context_positions:
            return context_positions(device, o.as<std::int32_t>(0), o.d(0), o.context.cut), true;
        case plan::Kernel::attention_merge:
            return merge_attention(device, o.f(0), o.f(1), o.f(2), o.f(3),
                                   {o.d(0), o.d(1), o.d(2), o.d(3), 1, 0, {}}),
                   true;
        case plan::Kernel::cat:
        case plan::Kernel::split:
            return cat_or_split(o), true;
        case plan::Kernel::chunk_cat:
        case plan::Kernel::chunk_split:
            return chunk_cat_or_split(o), true;
        case plan::Kernel::orthogonalize:
            return orthogonalize(o), true;
        case plan::Kernel::unscale:
            return unscale(device, o.f(0), n, static_cast<float>(1 / o.context.loss_scale), o.f(1)), true;
        case plan::Kernel::segment_squares:
            return segment_squares(o), true;
        case plan::Kernel::clip_factor:
            return clip_factor(device, o.f64(2), n, o.scalar(0), o.f64(1), o.f(0)), true;
        case plan::Kernel::sgd:
        case plan::Kernel::adam:
        case plan::Kernel::adamw:
        case plan::Kernel::lars_norms:
        case plan::Kernel::lars:
        case plan::Kernel::lamb_update:
        case plan::Kernel::lamb:
        case plan::Kernel::novograd:
            return step_segments(o), true;
        case plan::Kernel::novograd_moments:
            return novograd_moments(device, o.f(0), o.f64(1), n, o.scalar(0), o.context.updates + 1), true;
        default:
            return false;
    }
}

// Sets the flag if the kernel's first arg holds a value that is not finite.
void check_output(const Operands& o) {
    const plan::Kernel kernel = o.own.kernel;
    const std::int32_t module = o.op.module;
    auto* flag = o.as<std::int32_t>(o.count);
    if (kernel == plan::Kernel::mse_forward || kernel == plan::Kernel::cross_entropy_forward) {
        return flag_not_finite(o.device, o.f64(0), module, flag);
    }
    const auto bytes = static_cast<std::size_t>(o.op.args[0].bytes);
    with_type(kernel == plan::Kernel::cast_to_fp32 ? plan::DType::fp32 : o.own.dtype, [&]<class T>(T) {
        flag_not_finite(o.device, o.as<const T>(0), bytes / sizeof(T), module, flag);
    });
}

}  // namespace

void launch_kernel(const plan::Op& op, const std::vector<std::byte*>& data,
                   const device::KernelContext& context, const DeviceContext& device) {
    const plan::KernelOp& own = op.kernel();
    const Operands operands{{op, own, data, data.size() - (own.checks_output ? 1 : 0)}, context, device};
    if (!launch_untyped(operands) && !launch_image_kernel(operands, device)) {
        with_type(own.dtype, [&]<class T>(T) { launch_typed<T>(operands); });
    }
    if (own.checks_output) check_output(operands);
}

}  // namespace shardscope::trainer::cuda
