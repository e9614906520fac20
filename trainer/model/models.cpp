#include "trainer/model/models.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "trainer/job/job.h"
#include "trainer/job/masking.h"
#include "trainer/job/shapes.h"
#include "trainer/kernels/cost.h"
#include "trainer/model/bert.h"
#include "trainer/model/gpt.h"
#include "trainer/model/llama.h"
#include "trainer/model/mlp.h"
#include "trainer/model/resnet.h"
#include "trainer/model/selection.h"
#include "trainer/model/tensor_parallel.h"
#include "trainer/model/vgg.h"
#include "trainer/model/vit.h"
#include "trainer/model/vocabulary_parallel.h"

namespace shardscope::trainer::model {

namespace {

constexpr int kByteVocabulary = 256;
constexpr int kMaskTokens = 1;  // tokens of a bert in addition to those of the text

kernels::ActivationKind activation_of(const job::ModelSection& model) {
    if (model.activation != kernels::ActivationKind::none) return model.activation;
    return model.type == job::ModelType::mlp ? kernels::ActivationKind::relu : kernels::ActivationKind::gelu;
}

ExpertsShape experts_of(const job::Job& job) {
    const job::ModelSection& model = job.model;
    return {model.experts, model.experts_per_token, model.capacity_factor, model.balance_loss,
            job.parallel.expert};
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
                     .fused_attention = m.attention == job::AttentionKind::fused,
                     .tensor = job.parallel.tensor,
                     .experts = experts_of(job)};
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
                    .fused_activation = m.fused_activation,
                    .tensor = job.parallel.tensor};
    const job::NamedShape* published = job::find_shape(m.name);
    if (published && published->width == m.width) shape.feed_forward = published->feed_forward;
    return shape;
}

ResNetShape resnet_shape(const job::Job& job) {
    return {.depth = job.model.layers,
            .width = job.model.width,
            .image = job.data.image,
            .classes = job.data.classes,
            .sync_batch_norm = job.parallel.sync_batch_norm};
}

VggShape vgg_shape(const job::Job& job) {
    constexpr int kPooled = 32;  // pixels of a side of which five pools leave one
    if (job.data.image < kPooled) {
        throw job::JobError(
            fmt::format("{}data.image: {} pixels are gone before the last pool of a {}; set it to "
                        "{} or more",
                        where(job, "data.image"), job.data.image, job.model.name, kPooled));
    }
    return {.depth = job.model.layers,
            .width = job.model.width,
            .image = job.data.image,
            .classes = job.data.classes,
            .dropout = job.model.dropout};
}

VitShape vit_shape(const job::Job& job) {
    const int patch = job::find_shape(job.model.name)->patch;
    if (job.data.image % patch != 0) {
        throw job::JobError(
            fmt::format("{}data.image: {} pixels are not whole patches of {}, which a {} has; set "
                        "it to a multiple of {}",
                        where(job, "data.image"), job.data.image, patch, job.model.name, patch));
    }
    return {.layers = job.model.layers,
            .heads = job.model.heads,
            .width = job.model.width,
            .patch = patch,
            .image = job.data.image,
            .classes = job.data.classes,
            .dropout = job.model.dropout,
            .fused_attention = job.model.attention == job::AttentionKind::fused,
            .activation = activation_of(job.model),
            .fused_activation = job.model.fused_activation};
}

// JobError if a batch norm would have one number per channel, whose variance is 0.
void check_statistics(const job::Job& job) {
    const std::int64_t side = resnet_shape(job).last_side();
    if (job.data.batch * side * side > 1) return;
    if (job.parallel.sync_batch_norm && job.data_ranks() > 1) return;
    throw job::JobError(fmt::format(
        "{}data.batch: the last batch norm of a {} has one pixel per image of {} pixels and one image per "
        "batch, of which there is no variance; set data.batch to 2 or more",
        where(job, "data.batch"), job.model.name, job.data.image));
}

// JobError unless the ranks of a tensor group can have equal parts.
void check_tensor(const job::Job& job) {
    const int tensor = job.parallel.tensor;
    if (tensor == 1) return;
    const job::ModelSection& m = job.model;
    std::vector<std::pair<std::string, std::int64_t>> divided;
    if (m.type == job::ModelType::mlp) {
        divided = {{"model.width", m.width}};
    } else {
        const int hidden = m.type == job::ModelType::llama  ? llama_shape(job).feed_forward
                           : m.type == job::ModelType::bert ? bert_shape(job).feed_forward
                                                            : 4 * m.width;
        divided = {{"model.heads", m.heads}};
        if (m.experts == 0) divided.emplace_back("features of the feed-forward part", hidden);
        if (job.parallel.sequence) {
            divided.emplace_back("tokens of a micro-batch",
                                 std::int64_t{job.data.batch} * (m.context / job.parallel.context));
        }
        // A norm counts the rows that pad a cut vocabulary.
        if (job::needs_norms(job.optimizer.type))
            divided.emplace_back(
                "entries of the vocabulary, which lars, lamb and novograd need without padding,",
                vocabulary(job));
    }
    // Ranks have whole heads of keys and values, or each head as many ranks.
    const LlamaShape llama = m.type == job::ModelType::llama ? llama_shape(job) : LlamaShape();
    const auto share_heads = [&](int ranks) {
        return llama.kv_heads % ranks == 0 || ranks % llama.kv_heads == 0;
    };
    if (llama.kv_heads > 0)
        divided.emplace_back("features of the kv heads", llama.kv_heads * (llama.width / llama.heads));
    const auto fits = [&](int ranks) {
        return job.run.ranks % (ranks * job.parallel.context * job.parallel.pipeline) == 0 &&
               share_heads(ranks) && std::all_of(divided.begin(), divided.end(), [&](const auto& part) {
                   return part.second % ranks == 0;
               });
    };
    if (fits(tensor)) return;
    int nearest = tensor;
    while (nearest > 1 && !fits(nearest)) --nearest;
    const auto refuse = [&](const std::string& what) {
        throw job::JobError(fmt::format("{}parallel.tensor: {}; the nearest number of ranks that works is {}",
                                        where(job, "parallel.tensor"), what, nearest));
    };
    if (!share_heads(tensor)) {
        refuse(fmt::format("{0} model.kv_heads cannot be divided among {1} ranks, nor {1} ranks among them",
                           llama.kv_heads, tensor));
    }
    for (const auto& [name, count] : divided) {
        if (count % tensor != 0)
            refuse(fmt::format("{} {} cannot be divided among {} ranks", count, name, tensor));
    }
}

std::unique_ptr<Module> make_shape(const job::Job& job) {
    const job::ModelSection& m = job.model;
    check_tensor(job);
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
                                                  .fused_activation = m.fused_activation,
                                                  .tensor = job.parallel.tensor,
                                                  .experts = experts_of(job)});
        case job::ModelType::llama:
            return std::make_unique<Llama>(llama_shape(job));
        case job::ModelType::bert:
            return std::make_unique<Bert>(bert_shape(job));
        case job::ModelType::resnet:
            check_statistics(job);
            return std::make_unique<ResNet>(resnet_shape(job));
        case job::ModelType::vgg:
            return std::make_unique<Vgg>(vgg_shape(job));
        case job::ModelType::vit:
            return std::make_unique<Vit>(vit_shape(job));
        case job::ModelType::mlp:
            break;
    }
    return std::make_unique<Mlp>(m.layers, m.width, m.bias, activation_of(m), m.fused_activation,
                                 job.parallel.tensor);
}

}  // namespace

std::unique_ptr<Module> make_model(const job::Job& job) {
    std::unique_ptr<Module> model = make_shape(job);
    if (job.parallel.sequence) mark_partial_gradients(*model);
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
    } else if (job.reads_images()) {
        const std::int64_t pixels = std::int64_t{job.data.image} * job.data.image * job::kImageChannels;
        shape.target_dtype = plan::DType::int32;
        shape.input_bytes = shape.samples * pixels * size_of(shape.dtype);
        shape.target_bytes = shape.samples * size_of(shape.target_dtype);
    } else {
        shape.tokens = shape.samples * job.model.context;
        shape.dtype = shape.target_dtype = plan::DType::int32;
        shape.input_bytes = shape.target_bytes = shape.tokens / job.parallel.context * size_of(shape.dtype);
    }
    return shape;
}

std::int64_t elements_between_layers(const job::Job& job) {
    const BatchShape shape = batch_shape(job);
    const std::int64_t rows = shape.tokens == 0 ? shape.samples : shape.tokens / job.parallel.context;
    return rows * job.model.width / (job.parallel.sequence ? job.parallel.tensor : 1);
}

plan::Tensor loss(Graph& graph, const job::Job& job, const plan::Tensor& output, const plan::Tensor& target) {
    const plan::Tensor scores = to_dtype(graph, output, plan::DType::fp32);
    if (job.model.type == job::ModelType::mlp) return mse_loss(graph, scores, target);
    if (job.reads_images()) return cross_entropy_loss(graph, scores, target, 0, job.train.label_smoothing);
    const bool masked = job.model.type == job::ModelType::bert;  // then only masked positions have a target
    // The mean over the tokens of all ranks of a context group, each of which adds its own.
    const int of_sample = masked                     ? job::masked_tokens(job.model.context)
                          : job.parallel.context > 1 ? job.model.context
                                                     : 0;
    const std::int64_t counted = std::int64_t{job.data.batch} * of_sample;
    return job.parallel.tensor > 1 ? vocabulary_parallel_loss(graph, scores, target, vocabulary(job), counted)
                                   : cross_entropy_loss(graph, scores, target, counted);
}

plan::Tensor accuracy(Graph& graph, const job::Job& job, const plan::Tensor& output,
                      const plan::Tensor& target) {
    if (!job.reads_images()) return {};
    const plan::Tensor logits = to_dtype(graph, output, plan::DType::fp32);
    const std::int64_t rows = target.elements(), classes = logits.elements() / rows;
    plan::Tensor share =
        graph.builder.new_tensor("accuracy", plan::MemoryCategory::other, 1, plan::DType::fp64);
    const plan::PlanBuilder::Range range(graph.builder, "aten::argmax");
    graph.kernel(plan::Kernel::top_one, "top_one", {share, logits, target}, {rows, classes},
                 kernels::top_one_flops(rows, classes));
    return share;
}

}  // namespace shardscope::trainer::model
