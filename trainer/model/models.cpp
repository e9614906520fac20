#include "trainer/model/models.h"

#include "trainer/job/job.h"
#include "trainer/model/gpt.h"
#include "trainer/model/mlp.h"

namespace shardscope::trainer {

std::unique_ptr<Module> make_model(const Job& job) {
    const ModelSection& m = job.model;
    if (m.type == ModelType::mlp) return std::make_unique<Mlp>(m.layers, m.width, m.bias);
    return std::make_unique<Gpt>(GptShape{m.layers, m.heads, m.width, m.context});
}

BatchShape batch_shape(const Job& job) {
    BatchShape shape;
    shape.samples = job.data.batch;
    if (job.model.type == ModelType::mlp) {
        shape.input_bytes = shape.target_bytes =
            shape.samples * job.model.width * std::int64_t{sizeof(float)};
    } else {
        shape.tokens = shape.samples * job.model.context;
        shape.input_bytes = shape.target_bytes = shape.tokens * std::int64_t{sizeof(std::int32_t)};
    }
    return shape;
}

Tensor loss(Graph& graph, const Job& job, const Tensor& output, const Tensor& target) {
    if (job.model.type == ModelType::mlp) return mse_loss(graph, output, target);
    return cross_entropy_loss(graph, output, target);
}

}  // namespace shardscope::trainer
