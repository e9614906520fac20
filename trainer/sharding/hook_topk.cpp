// Top-k with error feedback: of the N numbers of a bucket a rank sends the k = ceil(F N) largest ones, as
// places (int32) and values (fp32), and keeps the others for the next step. The ranks gather each other's and
// add them up. Bytes on n ranks: n k 4 twice, of which a rank sends (n - 1) / n. Sources: Aji, Heafield,
// "Sparse communication for distributed gradient descent", EMNLP 2017; error feedback: Stich, Cordonnier,
// Jaggi, "Sparsified SGD with memory", NeurIPS 2018. PyTorch has no such hook.
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <fmt/core.h>

#include "trainer/sharding/comm_hook.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

class TopkHook final : public CommHook {
  public:
    explicit TopkHook(const job::Job& job)
        : where_(where(job, "ddp.comm_hook")), share_(job.ddp.comm_hook.amount) {}

    std::string_view name() const override { return "topk_hook"; }

    void declare(Parallelism& owner, const HookBucket& bucket) override {
        const std::int64_t n = bucket.buffer.bytes / kFloat;
        if (n > std::numeric_limits<std::int32_t>::max()) {
            throw job::JobError(
                where_ +
                fmt::format("ddp.comm_hook: topk counts the elements of a bucket in 32 bits, and one has {}; "
                            "use powersgd or bf16",
                            n));
        }
        errors_[bucket.unit] = ErrorFeedback(owner, bucket, n);
    }

    void reduce(plan::PlanBuilder& builder, const HookBucket& bucket) override {
        const std::int64_t n = bucket.buffer.bytes / kFloat;
        const auto k = static_cast<std::int64_t>(std::ceil(share_ * static_cast<double>(n)));
        ErrorFeedback& error = errors_.at(bucket.unit);
        // The error takes the sum, and gives away what is sent.
        if (error.begin(builder)) {
            builder.memcpy(error.whole(), bucket.buffer, traces::schema::kCopyDeviceToDevice, kHookStream);
        } else {
            builder.kernel(plan::Kernel::accumulate, "elementwise_add", {error.whole(), bucket.buffer}, {n},
                           n, kHookStream);
        }
        const plan::Tensor places = hook_tensor(builder, "places", bucket.ranks * k, plan::DType::int32);
        const plan::Tensor values = hook_tensor(builder, "values", bucket.ranks * k);
        const plan::Arg own_places = own(places, k, bucket.group), own_values = own(values, k, bucket.group);
        builder.kernel(plan::Kernel::select_largest, "select_largest",
                       {own_places, own_values, error.whole()}, {n, k}, 2 * n, kHookStream);
        for (const auto& [whole, part] : {std::pair{&places, &own_places}, {&values, &own_values}}) {
            builder.collective(
                {.operation = plan::Operation::all_gather, .dtype = whole->dtype, .group = bucket.group},
                *whole, *part, whole->bytes(), kHookStream);
        }
        builder
            .kernel(plan::Kernel::add_selected, "add_selected", {bucket.buffer, places, values},
                    {n, k, bucket.ranks}, bucket.ranks * k, kHookStream)
            .kernel()
            .scalars = {1.0 / bucket.ranks};
    }

  private:
    // The part of a gathered buffer that is the rank's own.
    static plan::Arg own(const plan::Tensor& whole, std::int64_t k, plan::Group group) {
        const std::int64_t bytes = k * size_of(whole.dtype);
        return {whole.view.buffer, 0, bytes, bytes, group};
    }

    std::string where_;
    double share_;
    std::map<int, ErrorFeedback> errors_;  // by unit
};

}  // namespace

std::unique_ptr<CommHook> make_topk_hook(const job::Job& job) {
    return std::make_unique<TopkHook>(job);
}

}  // namespace shardscope::trainer::sharding
