#include "trainer/model/models.h"

#include "trainer/job/job.h"
#include "trainer/job/masking.h"
#include "trainer/job/shapes.h"
#include "trainer/model/bert.h"
#include "trainer/model/gpt.h"
#include "trainer/model/llama.h"
#include "trainer/model/mlp.h"
#include "trainer/model/selection.h"

namespace shardscope::trainer::model {

namespace {

constexpr int kByteVocabulary = 256;
constexpr int kMaskTokens = 1;  // tokens of a bert in addition to those of the text

kernels::ActivationKind activation_of(const job::ModelSection& model) {
    if (model.activation != kernels::ActivationKind::none) return model.activation;
    return model.type == job::ModelType::mlp ? kernels::ActivationKind::relu : kernels::ActivationKind::gelu;
}

LlamaShape llama_shape(const job::Job& job) {
    const job::ModelSection& m = job.model;
    LlamaShape shape{.layers = m.layers,
                     .heads = m.heads,
                     .kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads,
                     .width = m.width,
                     .context = m.context,
                     .vocabulary = vocabulary(job),
                     .feed_forward = llama_feed_forward(m.width),
                     .dropout = m.dropout,
                     .tied = m.tied_embeddings,
                     .fused_attention = m.attention == job::AttentionKind::fused};
    if (const job::NamedShape* published = job::find_shape(m.name)) {
        if (published->width == m.width) shape.feed_forward = published->feed_forward;
        shape.rotary_base = published->rotary_base;
    }
    return shape;
}

BertShape bert_shape(const job::Job& job) {
    const job::ModelSection& m = job.model;
    BertShape shape{.layers = m.layers,
                    .heads = m.heads,
                    .width = m.width,
                    .feed_forward = 4 * m.width,
                    .context = m.context,
                    .vocabulary = vocabulary(job),
                    .dropout = m.dropout,
                    .tied = m.tied_embeddings,
                    .fused_attention = m.attention == job::AttentionKind::fused,
                    .activation = activation_of(m),
                    .fused_activation = m.fused_activation};
    const job::NamedShape* published = job::find_shape(m.name);
    if (published && published->width == m.width) shape.feed_forward = published->feed_forward;
    return shape;
}

std::unique_ptr<Module> make_shape(const job::Job& job) {
    const job::ModelSection& m = job.model;
    switch (m.type) {
        case job::ModelType::gpt:
            return std::make_unique<Gpt>(GptShape{.layers = m.layers,
                                                  .heads = m.heads,
                                                  .width = m.width,
                                                  .context = m.context,
                                                  .vocabulary = vocabulary(job),
                                                  .dropout = m.dropout,
                                                  .tied = m.tied_embeddings,
                                                  .fused_attention = m.attention == job::AttentionKind::fused,
                                                  .activation = activation_of(m),
                                                  .fused_activation = m.fused_activation});
        case job::ModelType::llama:
            return std::make_unique<Llama>(llama_shape(job));
        case job::ModelType::bert:
            return std::make_unique<Bert>(bert_shape(job));
        case job::ModelType::mlp:
            break;
    }
    return std::make_unique<Mlp>(m.layers, m.width, m.bias, activation_of(m), m.fused_activation);
}

}  // namespace

std::unique_ptr<Module> make_model(const job::Job& job) {
    std::unique_ptr<Module> model = make_shape(job);
    freeze(*model, job.train.freeze, where(job, "train.freeze"));
    checkpoint_modules(*model, job.memory.activation_checkpointing,
                       where(job, "memory.activation_checkpointing"));
    return model;
}

int vocabulary(const job::Job& job) {
    if (job.model.vocabulary > 0) return job.model.vocabulary;
    return kByteVocabulary + (job.model.type == job::ModelType::bert ? kMaskTokens : 0);
}

BatchShape batch_shape(const job::Job& job) {
    BatchShape shape;
    shape.samples = job.data.batch;
    if (job.model.type == job::ModelType::mlp) {
        shape.input_bytes = shape.target_bytes = shape.samples * job.model.width * size_of(shape.dtype);
    } else {
        shape.tokens = shape.samples * job.model.context;
        shape.dtype = plan::DType::int32;
        shape.input_bytes = shape.target_bytes = shape.tokens * size_of(shape.dtype);
    }
    return shape;
}

plan::Tensor loss(Graph& graph, const job::Job& job, const plan::Tensor& output, const plan::Tensor& target) {
    const plan::Tensor scores = to_dtype(graph, output, plan::DType::fp32);
    if (job.model.type == job::ModelType::mlp) return mse_loss(graph, scores, target);
    const bool masked = job.model.type == job::ModelType::bert;  // then only masked positions have a target
    return cross_entropy_loss(
        graph, scores, target,
        masked ? std::int64_t{job.data.batch} * job::masked_tokens(job.model.context) : 0);
}

}  // namespace shardscope::trainer::model
