// Checks of the model: its shape, its experts, its attention.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "trainer/job/checks.h"
#include "trainer/job/keys.h"
#include "trainer/job/shapes.h"

namespace shardscope::trainer::job {

std::string_view word_of(ModelType type) {
    return find_key("model", "type")->choices[static_cast<std::size_t>(type)];
}

// A published shape fills the keys of [model] that are not given.
void Checks::shape() {
    ModelSection& model = job_.model;
    if (model.name.empty()) return;
    const NamedShape* shape = find_shape(model.name);
    if (shape == nullptr) refuse("model.name", "model.name", unknown_shape(model.name));
    if (given("model.type") && model.type != shape->type) {
        refuse("model.name", "model.type",
               fmt::format("{} is a {}, but model.type differs; omit model.type", model.name,
                           word_of(shape->type)));
    }
    model.type = shape->type;
    if (!given("model.layers")) model.layers = shape->layers;
    if (!given("model.width")) model.width = shape->width;
    if (!given("model.dropout")) model.dropout = shape->dropout;
    if (!given("model.heads") && shape->heads > 0) model.heads = shape->heads;
    if (!has_tokens(shape->type)) return;
    if (!given("model.kv_heads")) model.kv_heads = shape->kv_heads;
    if (!given("model.context")) model.context = shape->context;
    if (!given("model.vocabulary")) model.vocabulary = shape->vocabulary;
    if (!given("model.tied_embeddings")) model.tied_embeddings = shape->tied;
}

// What only images have, and what a network for images does not have.
void Checks::images() const {
    if (!sees_images(job_.model.type)) {
        if (job_.reads_images()) {
            refuse("data.type", "model.type",
                   fmt::format("{} {} does not read images; set model.name to \"resnet50\", or omit the key",
                               job_.model.type == ModelType::mlp ? "an" : "a", word_of(job_.model.type)));
        }
        const DataSection data;
        const std::array<std::pair<const char*, bool>, 14> set = {
            {{"data.image", job_.data.image != data.image},
             {"data.classes", job_.data.classes != data.classes},
             {"data.resize", job_.data.resize != 0},
             {"data.crop", job_.data.crop != data.crop},
             {"data.padding", job_.data.padding != 0},
             {"data.flip", job_.data.flip},
             {"data.cache", job_.data.cache > 0},
             {"data.mean", job_.data.mean != data.mean},
             {"data.std", job_.data.deviation != data.deviation},
             {"data.validation_path", !job_.data.validation_path.empty()},
             {"data.test_path", !job_.data.test_path.empty()},
             {"train.label_smoothing", job_.train.label_smoothing > 0},
             {"parallel.sync_batch_norm", job_.parallel.sync_batch_norm},
             {"ddp.broadcast_buffers", !job_.ddp.broadcast_buffers}}};
        for (const auto& [key, wanted] : set)
            if (wanted) refuse(key, key, "only networks for images have it; omit the key");
        return;
    }
    const ModelSection &model = job_.model, defaults;
    const bool resnet = model.type == ModelType::resnet, vit = model.type == ModelType::vit;
    const std::string word = fmt::format("a {}", word_of(model.type));
    if (model.name.empty()) {
        refuse("model.type", "model.type",
               fmt::format("{} is one of the published shapes; set model.name to {}", word,
                           resnet ? "\"resnet50\", or to 18, 34, 101 or 152"
                           : vit  ? "\"vit_b_16\", or to b_32, l_16 or l_32"
                                  : "\"vgg16\", or to 11, 13 or 19"));
    }
    if (!job_.reads_images()) {
        refuse("data.type", "model.name",
               fmt::format("{} trains on \"images\"; set data.type to \"images\"", word));
    }
    const std::array<std::pair<const char*, bool>, 11> set = {
        {{"model.layers", !vit && model.layers != find_shape(model.name)->layers},
         {"model.bias", model.bias != defaults.bias},
         {"model.heads", !vit && model.heads != defaults.heads},
         {"model.kv_heads", model.kv_heads != defaults.kv_heads},
         {"model.context", model.context != defaults.context},
         {"model.vocabulary", model.vocabulary != defaults.vocabulary},
         {"model.dropout", resnet && model.dropout > 0},
         {"model.tied_embeddings", model.tied_embeddings},
         {"model.activation", !vit && model.activation != defaults.activation},
         {"model.fused_activation", !vit && model.fused_activation},
         {"model.attention", !vit && model.attention != defaults.attention}}};
    for (const auto& [key, wanted] : set)
        if (wanted) refuse(key, key, word + " has none to choose; omit the key");
    for (const auto& [key, ranks] : {std::pair{"parallel.tensor", job_.parallel.tensor},
                                     std::pair{"parallel.context", job_.parallel.context},
                                     std::pair{"parallel.pipeline", job_.parallel.pipeline}}) {
        if (ranks > 1)
            refuse(key, "model.name", word + " is not divided among ranks this way; set the key to 1");
    }
    for (const auto& [key, value] : {std::pair{"precision.param", job_.precision.param},
                                     std::pair{"precision.reduce", job_.precision.reduce},
                                     std::pair{"precision.buffer", job_.precision.buffer}}) {
        if (value != Precision::fp32)
            refuse(key, "model.name", "convolutions compute in fp32; set the key to \"fp32\"");
    }
    if (!resnet && job_.parallel.sync_batch_norm) {
        refuse("parallel.sync_batch_norm", "model.name", word + " has no batch norms; omit the key");
    }
    if (!resnet && !job_.ddp.broadcast_buffers) {
        refuse("ddp.broadcast_buffers", "model.name", word + " has no buffers; omit the key");
    }
    if (!job_.ddp.broadcast_buffers && job_.parallel.mode != ParallelMode::ddp) {
        refuse("ddp.broadcast_buffers", "parallel.mode",
               "only ddp broadcasts buffers; set parallel.mode to \"ddp\", or omit the key");
    }
    if (job_.parallel.sync_batch_norm && job_.parallel.mode == ParallelMode::none) {
        refuse("parallel.sync_batch_norm", "parallel.mode",
               "one rank has all images; set parallel.mode to \"ddp\" or \"fsdp\", or omit the key");
    }
    preparation();
}

// How images become samples.
void Checks::preparation() const {
    const DataSection &data = job_.data, defaults;
    if (data.path.empty()) {
        const std::array<std::pair<const char*, bool>, 9> set = {
            {{"data.resize", data.resize != 0},
             {"data.crop", data.crop != defaults.crop},
             {"data.padding", data.padding != 0},
             {"data.flip", data.flip},
             {"data.cache", data.cache > 0},
             {"data.mean", data.mean != defaults.mean},
             {"data.std", data.deviation != defaults.deviation},
             {"data.validation_path", !data.validation_path.empty()},
             {"data.test_path", !data.test_path.empty()}}};
        for (const auto& [key, wanted] : set) {
            if (wanted)
                refuse(key, key, "generated images are ready for the model; set data.path, or omit the key");
        }
    }
    if (data.validation > 0 && !data.validation_path.empty()) {
        refuse("data.validation", "data.validation_path",
               "the images of data.validation_path are validated on; omit one of the two keys");
    }
    if (data.test > 0 && !data.test_path.empty()) {
        refuse("data.test", "data.test_path",
               "the images of data.test_path are tested on; omit one of the two keys");
    }
    if (data.padding > 0 && data.crop != ImageCrop::random) {
        refuse(
            "data.padding", "data.crop",
            "only a random place of an image needs a border; set data.crop to \"random\", or omit the key");
    }
    if (data.resize > 0 && data.crop == ImageCrop::resized && !job_.validates() && !job_.tests()) {
        refuse("data.resize", "data.crop",
               "a crop that is \"resized\" is made of the whole image, and nothing is validated or tested, "
               "whose "
               "images it would resize; omit the key");
    }
    if (data.resize > 0 && data.resize < data.image) {
        refuse(
            "data.resize", "data.image",
            fmt::format("an image with a side of {} pixels has no part of {}; set it to {} or more, or omit "
                        "the key",
                        data.resize, data.image, data.image));
    }
}

void Checks::model() const {
    const ModelSection& model = job_.model;
    if (sees_images(model.type) && model.type != ModelType::vit) return;
    if (model.fused_activation && model.activation == kernels::ActivationKind::squared_relu) {
        refuse("model.fused_activation", "model.activation",
               "cuBLASLt computes relu and gelu in a matmul, not squared_relu; omit one of the two keys");
    }
    if (model.type == ModelType::mlp) {
        const std::array<std::pair<const char*, bool>, 4> set = {
            {{"model.dropout", model.dropout > 0},
             {"model.tied_embeddings", model.tied_embeddings},
             {"model.vocabulary", model.vocabulary != 0},
             {"model.kv_heads", model.kv_heads != 0}}};
        for (const auto& [key, wanted] : set) {
            if (wanted) refuse(key, "model.type", "an mlp has none; omit the key or set model.type");
        }
        return;
    }
    if (model.width % model.heads != 0) {
        refuse("model.heads", "model.width",
               fmt::format("{} heads do not divide model.width {}; choose a width that is a multiple of the "
                           "heads",
                           model.heads, model.width));
    }
    if (model.type == ModelType::vit) return;
    const bool masks = model.type == ModelType::bert;
    if (model.vocabulary != 0 && model.vocabulary < (masks ? 257 : 256)) {
        refuse("model.vocabulary", "model.type",
               fmt::format("{} is less than the 256 bytes{}; use 0 for bytes or a number above {}",
                           model.vocabulary, masks ? " and the mask" : "", masks ? 257 : 256));
    }
    if (model.type != ModelType::llama) {
        if (given("model.kv_heads") && model.kv_heads != 0 && model.kv_heads != model.heads) {
            refuse("model.kv_heads", "model.type",
                   fmt::format("a {} has as many heads of keys and values as of queries; set model.type to "
                               "\"llama\"",
                               word_of(model.type)));
        }
        return;
    }
    if (model.activation != kernels::ActivationKind::none) {
        refuse("model.activation", "model.type",
               "a llama's activation is the SiLU of its SwiGLU; omit the key or set model.type");
    }
    if (model.fused_activation) {
        refuse(
            "model.fused_activation", "model.type",
            "a llama's activation multiplies the results of two matmuls, so no single matmul can compute it;"
            " omit the key");
    }
    if (model.kv_heads != 0 && model.heads % model.kv_heads != 0) {
        refuse("model.kv_heads", "model.heads",
               fmt::format("{} heads of keys and values do not divide model.heads {}; choose a divisor",
                           model.kv_heads, model.heads));
    }
    if (model.width / model.heads % 2 != 0) {
        refuse("model.width", "model.heads",
               fmt::format("a head of {} features cannot be rotated in pairs; choose width / heads even",
                           model.width / model.heads));
    }
}

void Checks::experts() const {
    const ModelSection& model = job_.model;
    if (model.experts == 0) {
        const ModelSection defaults;
        const std::array<std::pair<const char*, bool>, 3> set = {
            {{"model.experts_per_token", model.experts_per_token != defaults.experts_per_token},
             {"model.capacity_factor", model.capacity_factor > 0},
             {"model.balance_loss", model.balance_loss > 0}}};
        for (const auto& [key, wanted] : set) {
            if (wanted)
                refuse(key, "model.experts", "there are no experts; set model.experts, or omit the key");
        }
        return;
    }
    if (model.type != ModelType::gpt && model.type != ModelType::llama) {
        refuse("model.experts", "model.type",
               fmt::format("{} {} has none; set model.type to \"gpt\" or \"llama\", or omit the key",
                           model.type == ModelType::mlp ? "an" : "a", word_of(model.type)));
    }
    if (model.experts_per_token > model.experts) {
        refuse("model.experts_per_token", "model.experts",
               fmt::format("a token cannot use {} of {} experts; the nearest number that works is {}",
                           model.experts_per_token, model.experts, model.experts));
    }
    if (model.fused_activation) {
        refuse("model.fused_activation", "model.experts",
               "the matmuls of experts compute no activation; omit the key");
    }
}

// Called when the strategy has its final name.
void Checks::expert_groups() const {
    const ParallelSection& parallel = job_.parallel;
    const int ranks = parallel.expert, experts = job_.model.experts;
    if (ranks == 1) return;
    if (experts == 0) {
        refuse("parallel.expert", "model.experts",
               "there are no experts; set model.experts, or omit the key");
    }
    const bool shards = job_.parallel.mode == ParallelMode::fsdp && job_.fsdp.shard_group > 0;
    // Between the ranks that share a copy there may be others, if the context axis is outside the data axes.
    const auto axis = [&](MeshAxis wanted) {
        return std::find(parallel.order.begin(), parallel.order.end(), wanted);
    };
    const bool apart = shards && axis(MeshAxis::cp) < axis(MeshAxis::dp);
    const int divided = (shards ? job_.fsdp.shard_group : job_.data_ranks()) * (apart ? 1 : parallel.context);
    int nearest = ranks;
    while (experts % nearest != 0 || divided % nearest != 0) --nearest;
    const auto wrong = [&](const std::string& other, const std::string& what) {
        refuse("parallel.expert", other,
               fmt::format("{}; the nearest number of ranks that works is {}", what, nearest));
    };
    if (experts % ranks != 0) {
        wrong("model.experts", fmt::format("{} experts cannot be divided among {} ranks", experts, ranks));
    }
    if (divided % ranks != 0) {
        wrong(shards ? "fsdp.shard_group" : "run.ranks",
              fmt::format("{} ranks {} cannot be cut into groups of {}", divided,
                          shards ? "of a shard group" : "that have other tokens", ranks));
    }
    if (job_.parallel.mode == ParallelMode::ddp && job_.ddp.shard_optimizer) {
        refuse("parallel.expert", "ddp.shard_optimizer",
               "a sharded optimizer keeps all parameters in one buffer, of which experts would be on fewer "
               "ranks; "
               "set ddp.shard_optimizer to false, or parallel.mode to \"fsdp\"");
    }
}

// Resolves "auto". Heads with more features than the fused kernels hold in a GPU's registers need "plain".
void Checks::attention() {
    ModelSection& model = job_.model;
    if (!has_attention(model.type)) {
        if (model.attention != AttentionKind::automatic) {
            refuse("model.attention", "model.type", "an mlp has none; omit the key or set model.type");
        }
        return;
    }
    const int head_width = model.width / model.heads;
    // Partial results are merged by the sums that fused attention keeps. A context group's attention has
    // kernels of its own, without the limits below.
    if (job_.parallel.context > 1) {
        if (model.attention == AttentionKind::plain)
            refuse(
                "model.attention", "parallel.context",
                "the ranks of a context group merge what fused attention keeps; set it to \"fused\", or omit "
                "the key");
        model.attention = AttentionKind::fused;
        return;
    }
    if (model.attention == AttentionKind::automatic && job_.run.device != DeviceKind::sim)
        model.attention = automatic_attention(model, job_.run.device == DeviceKind::cuda);
    const bool bidirectional = model.type == ModelType::bert || model.type == ModelType::vit;
    if (model.attention == AttentionKind::fused && bidirectional && job_.run.device == DeviceKind::cuda) {
        refuse("model.attention", "model.type",
               fmt::format("on a GPU \"fused\" is causal, and a {} is bidirectional; set it to \"plain\"",
                           word_of(model.type)));
    }
    if (model.attention == AttentionKind::fused && head_width > kMostFusedHeadWidth) {
        refuse(
            "model.attention", "model.heads",
            fmt::format(
                "\"fused\" supports heads of up to {} features, not {}; set it to \"plain\" or choose more "
                "heads",
                kMostFusedHeadWidth, head_width));
    }
}

AttentionKind automatic_attention(const ModelSection& model, bool on_gpu) {
    if (!has_attention(model.type)) return AttentionKind::automatic;
    const bool fused = on_gpu && has_tokens(model.type) && model.type != ModelType::bert &&
                       model.width / model.heads <= kMostFusedHeadWidth;
    return fused ? AttentionKind::fused : AttentionKind::plain;
}

}  // namespace shardscope::trainer::job
