#include "trainer/checkpoint/hugging_face.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace shardscope::trainer::checkpoint {

namespace {

using Module = HuggingFace::Module;
using Extra = HuggingFace::Extra;

constexpr auto kGpt = std::to_array<Module>({
    {"token_embedding", {"transformer.wte"}},
    {"position_embedding", {"transformer.wpe"}},
    {"blocks.*.norm_1", {"transformer.h.*.ln_1"}},
    {"blocks.*.attention.qkv", {"transformer.h.*.attn.c_attn"}, true},
    {"blocks.*.attention.projection", {"transformer.h.*.attn.c_proj"}, true},
    {"blocks.*.norm_2", {"transformer.h.*.ln_2"}},
    {"blocks.*.feed_forward.expand", {"transformer.h.*.mlp.c_fc"}, true},
    {"blocks.*.feed_forward.projection", {"transformer.h.*.mlp.c_proj"}, true},
    {"norm", {"transformer.ln_f"}},
    {"head", {"lm_head"}},
});

constexpr auto kLlama = std::to_array<Module>({
    {"token_embedding", {"model.embed_tokens"}},
    {"blocks.*.norm_1", {"model.layers.*.input_layernorm"}},
    {"blocks.*.attention.qkv",
     {"model.layers.*.self_attn.q_proj", "model.layers.*.self_attn.k_proj",
      "model.layers.*.self_attn.v_proj"}},
    {"blocks.*.attention.projection", {"model.layers.*.self_attn.o_proj"}},
    {"blocks.*.norm_2", {"model.layers.*.post_attention_layernorm"}},
    {"blocks.*.feed_forward.w1", {"model.layers.*.mlp.gate_proj"}},
    {"blocks.*.feed_forward.w2", {"model.layers.*.mlp.down_proj"}},
    {"blocks.*.feed_forward.w3", {"model.layers.*.mlp.up_proj"}},
    {"norm", {"model.norm"}},
    {"head", {"lm_head"}},
});

constexpr auto kBert = std::to_array<Module>({
    {"token_embedding", {"bert.embeddings.word_embeddings"}},
    {"position_embedding", {"bert.embeddings.position_embeddings"}},
    {"embedding_norm", {"bert.embeddings.LayerNorm"}},
    {"layers.*.attention.qkv",
     {"bert.encoder.layer.*.attention.self.query", "bert.encoder.layer.*.attention.self.key",
      "bert.encoder.layer.*.attention.self.value"}},
    {"layers.*.attention.projection", {"bert.encoder.layer.*.attention.output.dense"}},
    {"layers.*.norm_1", {"bert.encoder.layer.*.attention.output.LayerNorm"}},
    {"layers.*.feed_forward.expand", {"bert.encoder.layer.*.intermediate.dense"}},
    {"layers.*.feed_forward.projection", {"bert.encoder.layer.*.output.dense"}},
    {"layers.*.norm_2", {"bert.encoder.layer.*.output.LayerNorm"}},
    {"transform", {"cls.predictions.transform.dense"}},
    {"norm", {"cls.predictions.transform.LayerNorm"}},
    {"head", {"cls.predictions.decoder"}},
});

// Our BERT adds nothing for the kind of a token, and its head has no bias.
constexpr auto kBertExtras = std::to_array<Extra>({
    {"bert.embeddings.token_type_embeddings.weight", "position_embedding.weight", 2},
    {"cls.predictions.bias", "token_embedding.weight"},
});
// What is for other tasks, and a second name of cls.predictions.bias.
constexpr auto kBertUnread = std::to_array<std::string_view>(
    {"bert.pooler.", "cls.seq_relationship.", "cls.predictions.decoder.bias"});

constexpr HuggingFace::Family kGptFamily{"GPT2LMHeadModel", "GPT2Model", "transformer.", true, kGpt, {}, {}};
constexpr HuggingFace::Family kLlamaFamily{"LlamaForCausalLM", "LlamaModel", "model.", false, kLlama, {}, {}};
constexpr HuggingFace::Family kBertFamily{"BertForMaskedLM", "BertModel", "bert.", true, kBert,
                                          kBertExtras,       kBertUnread};

// "blocks.12.norm_1" is "blocks.*.norm_1" and "12".
struct Numbered {
    std::string pattern, number;
};
Numbered without_number(std::string_view path) {
    Numbered result;
    while (!path.empty()) {
        const std::size_t dot = std::min(path.find('.'), path.size());
        const std::string_view part = path.substr(0, dot);
        const bool is_number =
            std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (is_number) result.number = part;
        result.pattern += is_number ? "*" : std::string(part);
        path.remove_prefix(std::min(dot + 1, path.size()));
        if (!path.empty()) result.pattern += ".";
    }
    return result;
}

}  // namespace

std::optional<HuggingFace> HuggingFace::of(job::ModelType type) {
    switch (type) {
        case job::ModelType::gpt:
            return HuggingFace(kGptFamily);
        case job::ModelType::llama:
            return HuggingFace(kLlamaFamily);
        case job::ModelType::bert:
            return HuggingFace(kBertFamily);
        case job::ModelType::mlp:
        case job::ModelType::resnet:
        case job::ModelType::vgg:
        case job::ModelType::vit:
            break;
    }
    return std::nullopt;
}

std::optional<HuggingFace> HuggingFace::in_file(job::ModelType type,
                                                const std::set<std::string_view>& tensors) {
    std::optional<HuggingFace> family = of(type);
    if (!family) return std::nullopt;
    for (const bool bare : {false, true}) {
        family->bare_ = bare;
        const std::string table = family->named(family->family_->modules.front().theirs[0]) + ".weight";
        if (tensors.contains(table)) return family;
    }
    return std::nullopt;
}

std::string HuggingFace::named(std::string_view theirs) const {
    const bool shorter = bare_ && theirs.starts_with(family_->prefix);
    return std::string(shorter ? theirs.substr(family_->prefix.size()) : theirs);
}

std::vector<TensorForm> HuggingFace::forms(const ParameterShape& shape) const {
    const std::size_t dot = std::min(shape.path.rfind('.'), shape.path.size());
    const Numbered module = without_number(std::string_view(shape.path).substr(0, dot));
    const auto found = std::find_if(family_->modules.begin(), family_->modules.end(),
                                    [&](const Module& each) { return each.ours == module.pattern; });
    if (found == family_->modules.end()) return {};
    const auto name_of = [&](std::string_view theirs) {
        std::string name = named(theirs);
        if (const std::size_t star = name.find('*'); star != name.npos) name.replace(star, 1, module.number);
        return name + shape.path.substr(dot);
    };
    const bool matrix = shape.width > 1;
    if (found->theirs[1].empty()) {
        if (found->transposed && matrix)
            return {transposed_form(name_of(found->theirs[0]), {shape.width, shape.rows})};
        return {plain_form(name_of(found->theirs[0]), shape.dims())};
    }
    // Queries, then keys and values, which may be of fewer heads; an attention's input is as wide as its
    // queries. A bias is of a BERT, which has as many of each.
    const std::int64_t queries = matrix ? shape.width : shape.rows / 3, keys = (shape.rows - queries) / 2;
    std::vector<TensorForm> forms;
    std::int64_t first = 0;
    for (const auto& [theirs, rows] :
         {std::pair{found->theirs[0], queries}, std::pair{found->theirs[1], keys},
          std::pair{found->theirs[2], keys}}) {
        std::vector<std::int64_t> dims = {rows};
        if (matrix) dims.push_back(shape.width);
        forms.push_back(plain_form(name_of(theirs), std::move(dims), first));
        first += rows * shape.width;
    }
    return forms;
}

std::vector<TensorForm> HuggingFace::extras(const std::vector<ParameterShape>& parameters) const {
    std::vector<TensorForm> forms;
    for (const Extra& extra : family_->extras) {
        const auto like = std::find_if(parameters.begin(), parameters.end(),
                                       [&](const ParameterShape& shape) { return shape.path == extra.like; });
        if (like == parameters.end()) continue;
        forms.push_back(plain_form(std::string(extra.name), extra.rows > 0
                                                                ? std::vector{extra.rows, like->width}
                                                                : std::vector{like->rows}));
    }
    return forms;
}

bool HuggingFace::is_extra(std::string_view name) const {
    return std::any_of(family_->extras.begin(), family_->extras.end(),
                       [&](const Extra& extra) { return named(extra.name) == name; }) ||
           std::any_of(family_->unread.begin(), family_->unread.end(),
                       [&](std::string_view prefix) { return name.starts_with(named(prefix)); });
}

std::string HuggingFace::head() const {
    const auto head = std::find_if(family_->modules.begin(), family_->modules.end(),
                                   [](const Module& module) { return module.ours == "head"; });
    return named(head->theirs[0]) + ".weight";
}

bool HuggingFace::is_of_head(std::string_view name) const {
    return std::any_of(family_->modules.begin(), family_->modules.end(), [&](const Module& module) {
        return !module.theirs[0].starts_with(family_->prefix) &&
               name.starts_with(std::string(module.theirs[0]) + ".");
    });
}

std::string modern_name(std::string_view name) {
    for (const auto& [old, now] :
         {std::pair<std::string_view, std::string_view>{"LayerNorm.gamma", "LayerNorm.weight"},
          std::pair<std::string_view, std::string_view>{"LayerNorm.beta", "LayerNorm.bias"}}) {
        if (name.ends_with(old))
            return std::string(name.substr(0, name.size() - old.size())) + std::string(now);
    }
    return std::string(name);
}

}  // namespace shardscope::trainer::checkpoint
