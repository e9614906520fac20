// powerSGD_hook of PyTorch: a gradient M of n rows and m columns becomes P Q' of rank R. With Q of the step
// before (at first: random), orthonormal: P = M Q, summed over the ranks and made orthonormal; Q = M' P,
// averaged; every rank has P Q', and keeps M - P Q' for the next step. Bytes of a bucket: 4 R (n + m) for
// each matrix, in two all-reduces, and before them one of what is not compressed: vectors, and matrices that
// would not become smaller than half, (n + m) R 2 >= n m. Source: Vogels, Karimireddy, Jaggi, "PowerSGD:
// Practical low-rank gradient compression for distributed optimization", arXiv 1905.13727, algorithms 1, 2.
//
// Q is stored as its transpose, whose rows are then the outputs of a Linear: all three products are those of
// a Linear layer without bias.
#include <algorithm>
#include <map>

#include "trainer/kernels/cost.h"
#include "trainer/kernels/random.h"
#include "trainer/sharding/comm_hook.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

constexpr std::int64_t kLeastRate = 2;  // min_compression_rate

// A matrix of a bucket, in elements.
struct Matrix {
    const model::Parameter* parameter = nullptr;
    std::int64_t at = 0;                   // in the bucket
    std::int64_t p = 0, q = 0, error = 0;  // in the buffers of all P, all Q and the errors
    std::int64_t rows() const { return parameter->rows; }
    std::int64_t columns() const { return parameter->width; }
    std::int64_t elements() const { return parameter->elements(); }
};

// What is kept of a bucket.
struct Kept {
    std::vector<Matrix> matrices;
    std::vector<plan::Arg> others;  // of the bucket's buffer
    std::int64_t all_p = 0, other_elements = 0;
    plan::Arg q;
    ErrorFeedback error;
};

plan::Arg part(const plan::Arg& of, std::int64_t first, std::int64_t elements) {
    return {of.buffer, of.offset + first * kFloat, elements * kFloat};
}

class PowerSgdHook final : public CommHook {
  public:
    explicit PowerSgdHook(const job::DdpSection& options)
        : rank_(static_cast<std::int64_t>(options.comm_hook.amount)),
          epsilon_(options.orthogonalization_epsilon) {}

    std::string_view name() const override { return "powerSGD_hook"; }

    void declare(Parallelism& owner, const HookBucket& bucket) override {
        Kept& kept = kept_[bucket.unit];
        std::int64_t at = 0, all_q = 0, errors = 0;
        for (const model::Parameter* parameter : bucket.parameters) {
            const std::int64_t n = parameter->rows, m = parameter->width;
            if ((n + m) * rank_ * kLeastRate < n * m) {
                kept.matrices.push_back({parameter, at, kept.all_p, all_q, errors});
                kept.all_p += n * rank_;
                all_q += m * rank_;
                errors += n * m;
            } else {
                kept.others.push_back(part(bucket.buffer, at, n * m));
                kept.other_elements += n * m;
            }
            at += n * m;
        }
        if (kept.matrices.empty()) return;
        const auto bytes = all_q * kFloat;
        kept.q = {owner.declare({"Q of PowerSGD", plan::MemoryCategory::communication,
                                 plan::MemorySpace::device, bytes, bucket.unit, 0}),
                  0, bytes};
        kept.error = ErrorFeedback(owner, bucket, errors);
    }

    void reduce(plan::PlanBuilder& builder, const HookBucket& bucket) override {
        Kept& kept = kept_.at(bucket.unit);
        if (kept.matrices.empty()) return hook_all_reduce(builder, bucket, bucket.buffer, bucket.ranks);
        begin(builder, bucket, kept);
        orthogonalize(builder, kept, kept.q, true);
        const plan::Tensor p = hook_tensor(builder, "P of PowerSGD", kept.all_p);
        for (const Matrix& matrix : kept.matrices) {
            product(builder, plan::Kernel::linear_forward, matrix,
                    {p_of(p, matrix), of_bucket(bucket, matrix), q_of(kept, matrix)});
        }
        reduce_others(builder, bucket, kept);
        hook_all_reduce(builder, bucket, p, 1);  // its columns are divided by their norms
        orthogonalize(builder, kept, p, false);
        for (const Matrix& matrix : kept.matrices) {
            product(builder, plan::Kernel::linear_backward_weight, matrix,
                    {q_of(kept, matrix), p_of(p, matrix), of_bucket(bucket, matrix)});
        }
        hook_all_reduce(builder, bucket, kept.q, bucket.ranks);
        for (const Matrix& matrix : kept.matrices) {
            product(builder, plan::Kernel::linear_backward_input, matrix,
                    {of_bucket(bucket, matrix), p_of(p, matrix), q_of(kept, matrix)});
            builder.kernel(plan::Kernel::subtract, "elementwise_subtract",
                           {error_of(kept, matrix), of_bucket(bucket, matrix)}, {matrix.elements()},
                           matrix.elements(), kHookStream);
        }
    }

  private:
    static plan::Arg of_bucket(const HookBucket& bucket, const Matrix& matrix) {
        return part(bucket.buffer, matrix.at, matrix.elements());
    }
    static plan::Arg error_of(const Kept& kept, const Matrix& matrix) {
        return part(kept.error.whole(), matrix.error, matrix.elements());
    }
    plan::Arg p_of(const plan::Tensor& p, const Matrix& matrix) const {
        return part(p.view, matrix.p, matrix.rows() * rank_);
    }
    plan::Arg q_of(const Kept& kept, const Matrix& matrix) const {
        return part(kept.q, matrix.q, matrix.columns() * rank_);
    }

    // Adds the errors to the gradients, and lets them take the sums. At first: draws Q, the same one on all
    // ranks.
    void begin(plan::PlanBuilder& builder, const HookBucket& bucket, Kept& kept) const {
        const bool is_first = kept.error.begin(builder);
        if (is_first) builder.allocate(kept.q.buffer, kHookStream);
        for (const Matrix& matrix : kept.matrices) {
            const plan::Arg gradient = of_bucket(bucket, matrix), error = error_of(kept, matrix);
            if (is_first) {
                const auto key =
                    static_cast<std::int64_t>(kernels::stream_of(matrix.parameter->path + " (PowerSGD)"));
                builder
                    .kernel(plan::Kernel::init_normal, "aten::randn", {q_of(kept, matrix)},
                            {key, 0, matrix.columns() * rank_}, 0, kHookStream)
                    .kernel()
                    .scalars = {0, 1};
            } else {
                builder.kernel(plan::Kernel::accumulate, "elementwise_add", {gradient, error},
                               {matrix.elements()}, matrix.elements(), kHookStream);
            }
            builder.memcpy(error, gradient, traces::schema::kCopyDeviceToDevice, kHookStream);
        }
    }

    void reduce_others(plan::PlanBuilder& builder, const HookBucket& bucket, const Kept& kept) const {
        if (kept.others.empty()) return;
        const plan::Tensor flat =
            hook_tensor(builder, "gradients that are not compressed", kept.other_elements);
        std::vector<plan::Arg> args = {flat};
        args.insert(args.end(), kept.others.begin(), kept.others.end());
        builder.kernel(plan::Kernel::cat, "aten::cat", args, {}, 0, kHookStream);
        hook_all_reduce(builder, bucket, flat, bucket.ranks);
        builder.kernel(plan::Kernel::split, "aten::copy_", args, {}, 0, kHookStream);
    }

    // All P, whose columns become orthonormal, or all Q', whose rows do.
    void orthogonalize(plan::PlanBuilder& builder, const Kept& kept, const plan::Arg& all, bool rows) const {
        std::vector<plan::Segment> segments;
        std::int64_t flops = 0;
        for (const Matrix& matrix : kept.matrices) {
            const std::int64_t length = rows ? matrix.columns() : matrix.rows();
            segments.push_back({matrix.parameter->id, rows ? matrix.q : matrix.p, length * rank_});
            flops += kernels::orthogonalize_flops(length, rank_);
        }
        plan::Op& op = builder.kernel(plan::Kernel::orthogonalize, "orthogonalize", {all},
                                      {rank_, rows ? 1 : 0}, flops, kHookStream);
        op.kernel().segments = builder.add_segments(std::move(segments));
        op.kernel().scalars = {epsilon_};
    }

    void product(plan::PlanBuilder& builder, plan::Kernel kernel, const Matrix& matrix,
                 std::vector<plan::Arg> args) const {
        builder.kernel(kernel, "aten::bmm", std::move(args), {matrix.rows(), matrix.columns(), rank_},
                       kernels::matrix_product_cost(matrix.rows(), rank_, matrix.columns()).flops,
                       kHookStream);
    }

    std::int64_t rank_;
    double epsilon_;
    std::map<int, Kept> kept_;  // by unit
};

}  // namespace

std::unique_ptr<CommHook> make_powersgd_hook(const job::Job& job) {
    return std::make_unique<PowerSgdHook>(job.ddp);
}

}  // namespace shardscope::trainer::sharding
