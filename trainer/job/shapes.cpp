#include "trainer/job/shapes.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/job/nearest.h"

namespace shardscope::trainer::job {

namespace {

// GPT-2: layers, width, context and vocabulary from Radford et al., "Language models are unsupervised
// multitask learners" (2019), table 2 and section 2.3; heads from the released configurations (n_head). Llama
// 8B and 70B: "The Llama 3 herd of models" (arXiv 2407.21783), table 3: layers, model dimension, FFN
// dimension, attention heads, key/value heads, and the base 500,000 of the rotary embedding; section 3.4.1: a
// context of 8,192 tokens in pre-training before it is lengthened. The vocabulary is the released one,
// 128,000 tokens and 256 reserved ones. Llama 1B: the released configuration of Llama 3.2 1B
// (num_hidden_layers, num_attention_heads, num_key_value_heads, hidden_size, intermediate_size,
// tie_word_embeddings). BERT: Devlin et al., "BERT: Pre-training of deep bidirectional transformers" (arXiv
// 1810.04805), section 3: layers, hidden size, heads, a feed-forward part of 4 times the hidden size, 512
// tokens; the vocabulary is that of the released uncased models. bert-2.5b: the shape that tutorials of
// sharded training use, 192 layers, hidden size 1,024, feed-forward part 4,096; the rest as bert-large.
// ResNet: He et al., "Deep residual learning for image recognition" (arXiv 1512.03385), table 1: 64 channels
// in the first stage. VGG: Simonyan, Zisserman, "Very deep convolutional networks for large-scale image
// recognition" (arXiv 1409.1556), table 1 and section 3.1 (dropout). ViT: Dosovitskiy et al., "An image is
// worth 16x16 words" (arXiv 2010.11929), table 1; names and patches as torchvision has them.
constexpr NamedShape kShapes[] = {
    {"gpt2", ModelType::gpt, 12, 12, 0, 768, 4 * 768, 1024, 50257, true, 0},
    {"gpt2-medium", ModelType::gpt, 24, 16, 0, 1024, 4 * 1024, 1024, 50257, true, 0},
    {"gpt2-large", ModelType::gpt, 36, 20, 0, 1280, 4 * 1280, 1024, 50257, true, 0},
    {"gpt2-xl", ModelType::gpt, 48, 25, 0, 1600, 4 * 1600, 1024, 50257, true, 0},
    {"llama-1b", ModelType::llama, 16, 32, 8, 2048, 8192, 8192, 128256, true, 500000},
    {"llama-8b", ModelType::llama, 32, 32, 8, 4096, 14336, 8192, 128256, false, 500000},
    {"llama-70b", ModelType::llama, 80, 64, 8, 8192, 28672, 8192, 128256, false, 500000},
    {"bert-base", ModelType::bert, 12, 12, 0, 768, 3072, 512, 30522, true, 0},
    {"bert-large", ModelType::bert, 24, 16, 0, 1024, 4096, 512, 30522, true, 0},
    {"bert-2.5b", ModelType::bert, 192, 16, 0, 1024, 4096, 512, 30522, true, 0},
    {"resnet18", ModelType::resnet, 18, 0, 0, 64, 0, 0, 0, false, 0},
    {"resnet34", ModelType::resnet, 34, 0, 0, 64, 0, 0, 0, false, 0},
    {"resnet50", ModelType::resnet, 50, 0, 0, 64, 0, 0, 0, false, 0},
    {"resnet101", ModelType::resnet, 101, 0, 0, 64, 0, 0, 0, false, 0},
    {"resnet152", ModelType::resnet, 152, 0, 0, 64, 0, 0, 0, false, 0},
    {"vgg11", ModelType::vgg, 11, 0, 0, 64, 0, 0, 0, false, 0, 0, 0.5},
    {"vgg13", ModelType::vgg, 13, 0, 0, 64, 0, 0, 0, false, 0, 0, 0.5},
    {"vgg16", ModelType::vgg, 16, 0, 0, 64, 0, 0, 0, false, 0, 0, 0.5},
    {"vgg19", ModelType::vgg, 19, 0, 0, 64, 0, 0, 0, false, 0, 0, 0.5},
    {"vit_b_16", ModelType::vit, 12, 12, 0, 768, 4 * 768, 0, 0, false, 0, 16},
    {"vit_b_32", ModelType::vit, 12, 12, 0, 768, 4 * 768, 0, 0, false, 0, 32},
    {"vit_l_16", ModelType::vit, 24, 16, 0, 1024, 4 * 1024, 0, 0, false, 0, 16},
    {"vit_l_32", ModelType::vit, 24, 16, 0, 1024, 4 * 1024, 0, 0, false, 0, 32},
};

}  // namespace

std::span<const NamedShape> named_shapes() {
    return kShapes;
}

const NamedShape* find_shape(std::string_view name) {
    const auto* found = std::find_if(std::begin(kShapes), std::end(kShapes),
                                     [&](const NamedShape& shape) { return shape.name == name; });
    return found == std::end(kShapes) ? nullptr : found;
}

std::string unknown_shape(std::string_view name) {
    std::vector<std::string_view> names;
    for (const NamedShape& shape : kShapes) names.push_back(shape.name);
    const std::string_view guess = nearest(name, names);
    return fmt::format("\"{}\" is not a published shape; {}the shapes are {}", name,
                       guess.empty() ? "" : fmt::format("did you mean {}? ", guess),
                       traces::schema::joined(names, ", "));
}

}  // namespace shardscope::trainer::job
