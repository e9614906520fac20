#include "trainer/executor/cpu_segments.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/optimizer.h"
#include "trainer/kernels/random.h"
#include "trainer/kernels/reductions.h"

namespace shardscope::trainer::executor {
namespace {

float* floats(std::byte* data) {
    return reinterpret_cast<float*>(data);
}

// Of dims elements, elements per rank.
device::Held held_of(const plan::KernelOp& own, const device::KernelContext& context) {
    const std::int64_t begin = own.dims[1] > 0 ? context.place * own.dims[1] : 0;
    return {begin, begin + own.dims[0]};
}

// One optimizer kernel on elements [at, at + n) of the rank's buffers.
class Stepper {
  public:
    Stepper(const plan::KernelOp& op, const std::vector<std::byte*>& data,
            const device::KernelContext& context)
        : op_(op), data_(data), step_(context.updates + 1), lr_(context.lr) {}

    void run(const plan::Segment& segment, std::size_t index, std::size_t at, std::size_t n) const {
        namespace k = kernels;
        const auto& s = op_.scalars;
        const auto f = [&](std::size_t arg) { return floats(data_[arg]) + at; };
        const auto d = [&](std::size_t arg) { return reinterpret_cast<double*>(data_[arg]) + 2 * index; };
        const k::AdamOptions adam{lr_, s[0], s[1], s[2], s[3]};
        switch (op_.kernel) {
            case plan::Kernel::sgd:
                return k::sgd(f(0), f(1), data_.size() > 2 ? f(2) : nullptr, n, s[3] > 0 ? s[3] : lr_, s[0],
                              s[2] != 0, s[1]);
            case plan::Kernel::adam:
                return k::adam(f(0), f(1), f(2), f(3), n, adam, step_);
            case plan::Kernel::adamw:
                return k::adamw(f(0), f(1), f(2), f(3), n, adam, step_);
            case plan::Kernel::lars_norms:
                return squares(d(0), f(1), f(2), n);
            case plan::Kernel::lars: {
                // The buffer is there only with momentum; the norms are last.
                float* buffer = data_.size() > 3 ? f(2) : nullptr;
                const double* norms = d(data_.size() - 1);
                const float rate = segment.adapted ? k::lars_rate(norms[0], norms[1], s[2], s[1]) : 1.0F;
                return k::lars(f(0), f(1), buffer, n, lr_, s[0], s[3] != 0, s[1], rate);
            }
            case plan::Kernel::lamb_update:
                k::lamb_update(f(1), f(2), f(3), f(4), n, adam, step_);
                return squares(d(0), f(2), f(1), n);
            case plan::Kernel::lamb: {
                const double* norms = d(2);
                return k::lamb(f(0), f(1), n, lr_,
                               segment.adapted ? k::lamb_ratio(norms[0], norms[1]) : 1.0F);
            }
            case plan::Kernel::novograd:
                return k::novograd(f(0), f(1), f(2), floats(data_[3])[index], n, {lr_, s[0], 0, s[1], s[2]});
            default:
                throw std::logic_error("a Plan steps segments with a kernel that is not an optimizer's");
        }
    }

  private:
    static void squares(double* norms, const float* left, const float* right, std::size_t n) {
        norms[0] = kernels::sum_of_squares(left, n);
        norms[1] = kernels::sum_of_squares(right, n);
    }

    const plan::KernelOp& op_;
    const std::vector<std::byte*>& data_;
    std::int64_t step_;  // the first is 1
    double lr_;
};

}  // namespace

void initialize(const plan::Op& op, const std::vector<std::byte*>& data,
                const device::KernelContext& context) {
    const plan::KernelOp& own = op.kernel();
    const std::int64_t key = own.dims[0], first = own.dims[1], elements = own.dims[2], per_rank = own.dims[3];
    const device::Held held = per_rank > 0
                                  ? device::Held{context.place * per_rank, (context.place + 1) * per_rank}
                                  : device::Held{0, first + elements};
    const device::Held part = held.part(first, elements);
    const std::size_t n = part.count();
    if (n == 0) return;
    float* out = floats(data[0]) + (part.begin - held.begin);
    const auto seed = static_cast<std::uint64_t>(context.seed);
    const auto stream = static_cast<std::uint64_t>(key);
    const auto a = static_cast<float>(own.scalars[0]);
    const auto b = static_cast<float>(own.scalars[1]);
    for_pieces(own, part.begin - first, n, context,
               [&](std::size_t at, std::size_t count, std::uint64_t index) {
                   switch (own.kernel) {
                       case plan::Kernel::init_normal:
                           return kernels::fill_normal(out + at, count, seed, stream, index, a, b);
                       case plan::Kernel::init_uniform:
                           return kernels::fill_uniform(out + at, count, seed, stream, index, a, b);
                       default:
                           std::fill_n(out + at, count, a);
                   }
               });
}

void segment_squares(const plan::Op& op, const std::vector<std::byte*>& data,
                     const device::KernelContext& context) {
    const device::Held held = held_of(op.kernel(), context);
    auto* sums = reinterpret_cast<double*>(data[0]);
    for (std::size_t i = 0; i < context.segments.size(); ++i) {
        const device::Held part = held.part(context.segments[i].first, context.segments[i].elements);
        sums[i] = kernels::sum_of_squares(floats(data[1]) + (part.begin - held.begin), part.count());
    }
}

void step_segments(const plan::Op& op, const std::vector<std::byte*>& data,
                   const device::KernelContext& context) {
    const plan::KernelOp& own = op.kernel();
    const device::Held held = held_of(own, context);
    if (own.kernel == plan::Kernel::lars_norms || own.kernel == plan::Kernel::lamb_update) {
        std::fill_n(reinterpret_cast<double*>(data[0]), 2 * context.segments.size(), 0.0);
    }
    const Stepper stepper(own, data, context);
    for (std::size_t i = 0; i < context.segments.size(); ++i) {
        const plan::Segment& segment = context.segments[i];
        const device::Held part = held.part(segment.first, segment.elements);
        if (!segment.trained || part.count() == 0) continue;
        stepper.run(segment, i, static_cast<std::size_t>(part.begin - held.begin), part.count());
    }
}

void novograd_moments(const plan::Op& op, const std::vector<std::byte*>& data,
                      const device::KernelContext& context) {
    const plan::KernelOp& own = op.kernel();
    const auto* norms = reinterpret_cast<const double*>(data[1]);
    for (std::int64_t i = 0; i < own.dims[0]; ++i) {
        float& moment = floats(data[0])[i];
        moment = kernels::novograd_moment(moment, norms[2 * i + 1], own.scalars[0], context.updates + 1);
    }
}

void cat(const plan::Op& op, const std::vector<std::byte*>& data, bool gather) {
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

namespace {

// Converts elements from one float type to the other, or copies bytes as they are.
void copy_as(plan::DType to_type, std::byte* to, plan::DType from_type, const std::byte* from,
             std::int64_t elements) {
    const auto n = static_cast<std::size_t>(elements);
    if (to_type == from_type) {
        std::memcpy(to, from, n * static_cast<std::size_t>(size_of(to_type)));
        return;
    }
    const auto convert = [&]<class Narrow>(Narrow) {
        if (to_type == plan::DType::fp32) {
            kernels::cast(reinterpret_cast<const Narrow*>(from), reinterpret_cast<float*>(to), n);
        } else {
            kernels::cast(reinterpret_cast<const float*>(from), reinterpret_cast<Narrow*>(to), n);
        }
    };
    if (to_type == plan::DType::fp16 || from_type == plan::DType::fp16) return convert(kernels::Fp16{});
    convert(kernels::Bf16{});
}

}  // namespace

void chunk_cat(const plan::Op& op, const std::vector<std::byte*>& data, const device::KernelContext& context,
               bool gather) {
    const plan::DType type = op.kernel().dtype, in_type = input_type(op.kernel(), 1);
    const std::int64_t ranks = op.kernel().dims[0], size = size_of(type), in_size = size_of(in_type);
    const std::int64_t part = op.args[0].bytes / ranks;
    if (context.segments.size() + 1 < data.size()) {
        throw std::logic_error("a Plan cuts a buffer into pieces but has no segments for them");
    }
    for (std::size_t i = 1; i < data.size(); ++i) {
        const plan::Segment& segment = context.segments[i - 1];
        const std::int64_t piece = segment.elements, elements = op.args[i].bytes / in_size;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
            // A buffer that is not a multiple of its pieces ends inside one of them.
            const std::int64_t here = std::clamp<std::int64_t>(elements - rank * piece, 0, piece);
            std::byte* in_part = data[0] + rank * part + segment.first * size;
            std::byte* in_piece = data[i] + std::min(rank * piece, elements) * in_size;
            if (gather) {
                copy_as(type, in_part, in_type, in_piece, here);
                std::memset(in_part + here * size, 0, static_cast<std::size_t>((piece - here) * size));
            } else {
                copy_as(type, in_piece, type, in_part, here);
            }
        }
    }
}

}  // namespace shardscope::trainer::executor
