#include "traces/store/columns/nvtx_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace shardscope::traces::store {

namespace {

constexpr std::array<std::string_view, 4> kKeys = {"seq", "op_id", "sizes", "input_op_ids"};

bool is_upper(char c) {
    return std::isupper(static_cast<unsigned char>(c)) != 0;
}
bool is_lower(char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool all_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// The place of the next ", key = " from `from` on, and the key.
std::pair<std::size_t, std::string_view> next_key(std::string_view text, std::size_t from) {
    for (std::size_t at = text.find(", ", from); at != text.npos; at = text.find(", ", at + 2)) {
        for (const std::string_view key : kKeys) {
            const std::string_view rest = text.substr(at + 2);
            if (rest.starts_with(key) && rest.substr(key.size()).starts_with(" = ")) return {at, key};
        }
    }
    return {text.npos, {}};
}

// Numbers and lists of them are valid JSON, except for the pairs of input_op_ids.
bool is_json(std::string_view value) {
    return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
        return is_digit(c) || c == '[' || c == ']' || c == ',' || c == ' ' || c == '-';
    });
}

// A path in a model: "layers.0", "model.decoder.mlp"; but not a function of a class, which FSDP's own ranges
// name: "FullyShardedDataParallel._pre_forward".
bool is_module_path(std::string_view text) {
    if (text.find('.') == text.npos || text.starts_with("torch.")) return false;
    bool last = false, after_class = false;
    while (!last) {
        const auto dot = text.find('.');
        last = dot == text.npos;
        const std::string_view word = text.substr(0, dot);
        if (last && after_class && !all_digits(word)) return false;
        after_class = !word.empty() && is_upper(word[0]);
        if (word.empty() || !std::all_of(word.begin(), word.end(), is_word)) return false;
        if (is_digit(word[0]) && !all_digits(word)) return false;  // a version: "2a.1"
        if (!last) text.remove_prefix(dot + 1);
    }
    return true;
}

// PyTorch's classes with a single capital: other such words are phases of a program ("Forward").
constexpr std::array<std::string_view, 18> kOneCapital = {
    "Linear",  "Bilinear", "Embedding", "Dropout", "Sequential", "Softmax",  "Sigmoid", "Tanh", "Identity",
    "Flatten", "Conv",     "Attention", "Encoder", "Decoder",    "Upsample", "Fold",    "Mlp",  "Block"};

// "Conv2d", "LlamaDecoderLayer", "Linear_3".
bool is_module_class(std::string_view text) {
    if (const auto mark = text.rfind('_'); mark != text.npos && all_digits(text.substr(mark + 1)))
        text = text.substr(0, mark);
    if (text.empty() || !is_upper(text[0]) || !std::all_of(text.begin(), text.end(), is_word)) return false;
    if (std::find(kOneCapital.begin(), kOneCapital.end(), text) != kOneCapital.end()) return true;
    if (text.find('_') != text.npos || std::none_of(text.begin(), text.end(), is_lower)) return false;
    // Autograd's nodes are "AddmmBackward0".
    const std::string_view node = text.substr(0, text.find_last_not_of("0123456789") + 1);
    if (text.starts_with("Profiler") || text.ends_with("Step") || node.ends_with("Backward")) return false;
    const auto capitals = std::count_if(text.begin(), text.end(), is_upper);
    const bool numbered =
        text.find("1d") != text.npos || text.find("2d") != text.npos || text.find("3d") != text.npos;
    return capitals >= 2 || numbered;
}

}  // namespace

NvtxName read_nvtx_name(std::string_view text) {
    NvtxName result{.name = text};
    auto [at, key] = next_key(text, 0);
    if (at != text.npos) {
        result.name = text.substr(0, at);
        result.is_operator = true;
        while (at != text.npos) {
            const std::size_t from = at + 2 + key.size() + 3;
            const auto [next, next_one] = next_key(text, from);
            const std::string_view value = text.substr(from, next == text.npos ? text.npos : next - from);
            if (is_json(value)) {
                result.detail += result.detail.empty() ? "{" : ",";
                result.detail.append("\"").append(key).append("\":").append(value);
            }
            at = next;
            key = next_one;
        }
        if (!result.detail.empty()) result.detail += "}";
        return result;
    }
    result.is_operator = text.starts_with("aten::") || text.starts_with("c10d::") ||
                         text.starts_with("autograd::engine::evaluate_function: ");
    result.is_module = !result.is_operator && (is_module_path(text) || is_module_class(text));
    return result;
}

}  // namespace shardscope::traces::store
