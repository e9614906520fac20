// What a kernel needs in addition to its operation of the Plan, on every device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/kernels/context_cut.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::device {

// Values that are not in the Plan because they differ by rank or step.
struct KernelContext {
    int data_rank = 0;  // the rank's place among the ranks that read different samples
    int data_ranks = 1;
    // The rank's place in its shard group and in its tensor group, and the ranks of the latter. For the
    // parameters of experts that a group divides: those of the expert groups (Group::expert_shard, expert).
    int place = 0, tensor = 0, tensors = 1;
    kernels::ContextCut cut;  // the tokens that the rank has of each sequence
    std::int64_t seed = 0;
    std::int64_t step = 0;                    // 0 the first
    std::int64_t micro_step = 0;              // step * micro-batches of a step + micro-batch
    double lr = 0;                            // of the step
    std::int64_t updates = 0;                 // of the parameters before this step, without skipped ones
    double loss_scale = 1;                    // the factor of the loss whose gradient is computed
    std::span<const plan::Segment> segments;  // of the Op, from its Plan
};

// Kernels count rows and columns in 32 bits. Throws std::length_error for a number beyond that.
inline int kernel_dim(std::int64_t dim) {
    if (dim < 0 || dim > std::numeric_limits<int>::max()) {
        throw std::length_error("model.context x data.batch is too large: a kernel has " +
                                std::to_string(dim) + " rows or columns, of at most " +
                                std::to_string(std::numeric_limits<int>::max()) +
                                "; make data.batch smaller and train.accumulation larger");
    }
    return static_cast<int>(dim);
}

inline constexpr float kNormEps = 1e-5F;  // as in torch.nn.LayerNorm and in Llama

// An Op's args and dims, as the types that kernels take.
struct KernelOperands {
    const plan::Op& op;
    const plan::KernelOp& own;
    const std::vector<std::byte*>& data;
    std::size_t count;  // of the kernel's own args

    template <class T>
    T* as(std::size_t arg) const {
        return reinterpret_cast<T*>(data[arg]);
    }
    float* f(std::size_t arg) const { return as<float>(arg); }
    double* f64(std::size_t arg) const { return as<double>(arg); }
    const std::int32_t* tokens(std::size_t arg) const { return as<const std::int32_t>(arg); }
    int d(std::size_t dim) const { return kernel_dim(own.dims[dim]); }
    int batch_rows() const { return kernel_dim(own.dims[0] * own.dims[1]); }  // of dims batch, context
    // The rows of a position embedding that the rank has, and the first of them; `dim`: own rows, 0 for all.
    int position_rows(std::size_t dim) const { return own.dims[dim] > 0 ? d(dim) : batch_rows(); }
    int first_row(std::size_t dim, const KernelContext& context) const {
        return kernel_dim(own.dims[dim] * context.tensor);
    }
    std::size_t n() const { return static_cast<std::size_t>(own.dims[0]); }
    // Of dims n, key, is part, sequence: calls drop(at, count, index) for runs of elements that are
    // neighbours in a step's dropout, where `index` is the first one's place there. The numbers are the same
    // on every rank that has the element, in the backward and in a recomputation, and different ones in every
    // other micro-batch.
    template <class Drop>
    void for_dropout(const KernelContext& context, const Drop& drop) const {
        const bool is_part = own.dims[2] != 0;
        const std::int64_t n = own.dims[0], sequence = own.dims[3];
        const std::int64_t first = is_part ? context.tensor * n : 0;
        const std::int64_t all = n * (is_part ? context.tensors : 1) * (sequence > 0 ? context.cut.ranks : 1);
        const std::int64_t before = (context.micro_step * context.data_ranks + context.data_rank) * all;
        const auto run = [&](std::int64_t at, std::int64_t elements, std::int64_t whole) {
            drop(at, static_cast<std::size_t>(elements), static_cast<std::uint64_t>(before + whole));
        };
        if (sequence == 0) return run(0, n, first);
        context.cut.for_runs(first, n, sequence, run);
    }
    // Of dims rows, classes, all: those of the rank's classes that are not padding.
    int valid_classes(const KernelContext& context) const {
        const std::int64_t left = own.dims[2] - context.tensor * own.dims[1];
        return kernel_dim(std::clamp<std::int64_t>(left, 0, own.dims[1]));
    }
};

// The elements of a sequence that the rank holds; a buffer's first element is `begin`.
struct Held {
    std::int64_t begin = 0, end = 0;

    // The part of [first, first + elements) that is held.
    Held part(std::int64_t first, std::int64_t elements) const {
        const std::int64_t from = std::max(begin, first);
        return {from, std::max(from, std::min(end, first + elements))};
    }
    std::size_t count() const { return static_cast<std::size_t>(end - begin); }
};

// For the init kernels: calls fill(at, count, index) for the runs of elements [first, first + n) of the
// rank's part of a parameter that are neighbours in the whole parameter, where `index` is the first one's
// place there.
template <class Fill>
void for_pieces(const plan::KernelOp& own, std::int64_t first, std::size_t n, const KernelContext& context,
                const Fill& fill) {
    const std::int64_t whole = own.dims[4], step = own.dims[5];
    if (step == 0) return fill(0, n, static_cast<std::uint64_t>(whole + first));
    const std::int64_t end = first + static_cast<std::int64_t>(n);
    for (std::int64_t e = first; e < end;) {
        const std::int64_t next = std::min(end, (e / step + 1) * step);
        const std::int64_t index = whole + (e / step * context.tensors + context.tensor) * step + e % step;
        fill(static_cast<std::size_t>(e - first), static_cast<std::size_t>(next - e),
             static_cast<std::uint64_t>(index));
        e = next;
    }
}

}  // namespace shardscope::trainer::device
