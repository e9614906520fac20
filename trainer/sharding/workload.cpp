#include "trainer/sharding/workload.h"

#include <utility>

#include "trainer/model/models.h"
#include "trainer/sharding/wrap.h"

namespace shardscope::trainer::sharding {

namespace {

class JobWorkload final : public Workload {
  public:
    std::unique_ptr<model::Module> model(const job::Job& job) override { return model::make_model(job); }
    Batch load_batch(plan::PlanBuilder& builder, const job::Job& job, const BatchParts& parts) override;
    plan::Tensor loss(model::Graph& graph, const job::Job& job, const plan::Tensor& output,
                      const plan::Tensor& target) override {
        return model::loss(graph, job, output, target);
    }
};

// The next batch of samples: made on the host, copied to the device.
Workload::Batch JobWorkload::load_batch(plan::PlanBuilder& builder, const job::Job& job,
                                        const BatchParts& parts) {
    const model::BatchShape shape = model::batch_shape(job);
    const std::int64_t input = shape.input_bytes / size_of(shape.dtype);
    const std::int64_t target = shape.target_bytes / size_of(shape.target_dtype);
    const auto on_host = [&](const char* name, std::int64_t elements, plan::DType dtype) {
        return builder.new_tensor(name, plan::MemoryCategory::activations, elements, dtype,
                                  plan::Stream::host, plan::MemorySpace::pinned);
    };
    const plan::Tensor host_input = on_host("input (host)", input, shape.dtype);
    const plan::Tensor host_target = on_host("target (host)", target, shape.target_dtype);
    {
        const plan::PlanBuilder::Range range(
            builder, job.data.workers > 0 ? "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
                                          : "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
        builder.host_call(plan::HostCall::next_batch, "next_batch", {host_input, host_target});
    }
    const plan::PlanBuilder::Range range(builder, "aten::to");
    Batch batch;
    const auto on_device = [&](const char* name, std::int64_t elements, plan::DType dtype) {
        return builder.new_tensor(name, plan::MemoryCategory::activations, elements, dtype);
    };
    if (parts.input) batch.input = on_device("input", input, shape.dtype);
    if (parts.target) batch.target = on_device("target", target, shape.target_dtype);
    if (parts.input) builder.memcpy(batch.input, host_input, traces::schema::kCopyHostToDevice);
    if (parts.target) builder.memcpy(batch.target, host_target, traces::schema::kCopyHostToDevice);
    return batch;
}

}  // namespace

std::unique_ptr<model::Module> Workload::wrap(std::unique_ptr<model::Module> model, const job::Job& job) {
    return apply_wrap(std::move(model), job);
}

std::unique_ptr<Workload> workload_of_job() {
    return std::make_unique<JobWorkload>();
}

}  // namespace shardscope::trainer::sharding
