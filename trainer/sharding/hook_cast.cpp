// bf16_compress_hook and fp16_compress_hook: N gradients on n ranks become N numbers of 16 bits, are divided
// by n, summed, and converted back. Bytes: 2 N, half of fp32's.
#include "trainer/sharding/comm_hook.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

class CastHook final : public CommHook {
  public:
    explicit CastHook(plan::DType type) : type_(type) {}

    std::string_view name() const override {
        return type_ == plan::DType::bf16 ? "bf16_compress_hook" : "fp16_compress_hook";
    }

    // Divided before the sum, which may not fit into fp16.
    void reduce(plan::PlanBuilder& builder, const HookBucket& bucket) override {
        const std::int64_t n = bucket.buffer.bytes / kFloat;
        const plan::Tensor narrow = hook_tensor(builder, "compressed gradients", n, type_);
        builder.cast("aten::to", narrow, type_, bucket.buffer, plan::DType::fp32, n, kHookStream);
        plan::Op& division = builder.kernel(plan::Kernel::scale, "aten::div_", {narrow}, {n}, n, kHookStream);
        division.kernel().dtype = type_;
        division.kernel().scalars = {1.0 / bucket.ranks};
        hook_all_reduce(builder, bucket, narrow, 1, type_);
        builder.cast("aten::copy_", bucket.buffer, plan::DType::fp32, narrow, type_, n, kHookStream);
    }

  private:
    plan::DType type_;
};

}  // namespace

std::unique_ptr<CommHook> make_bf16_hook(const job::Job& /*job*/) {
    return std::make_unique<CastHook>(plan::DType::bf16);
}

std::unique_ptr<CommHook> make_fp16_hook(const job::Job& /*job*/) {
    return std::make_unique<CastHook>(plan::DType::fp16);
}

}  // namespace shardscope::trainer::sharding
