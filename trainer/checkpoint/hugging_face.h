// The names and forms that the parameters of a GPT, a Llama and a BERT have in Hugging Face's transformers:
// GPT2LMHeadModel, LlamaForCausalLM, BertForMaskedLM. Source: the state dicts of these classes (transformers
// 5.24).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/run_layout.h"
#include "trainer/checkpoint/tensor_form.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::checkpoint {

class HuggingFace {
  public:
    // A module of ours and those that transformers has for it; * is a number. Three hold the rows of queries,
    // keys and values. A transposed matrix is [in, out]: GPT-2's Conv1D.
    struct Module {
        std::string_view ours, theirs[3];
        bool transposed = false;
    };
    // A tensor that transformers has and our model lacks; zeros have no effect there. It has these rows, as
    // wide as our parameter `like`; 0: it is a vector with an element for each row of that.
    struct Extra {
        std::string_view name, like;
        std::int64_t rows = 0;
    };
    struct Family {
        std::string_view name, bare_name;  // of the class, and of that without a head
        std::string_view prefix;           // of what the latter has
        bool tied = false;                 // unless the class is told otherwise, its head is its embedding
        std::span<const Module> modules;
        std::span<const Extra> extras;
        std::span<const std::string_view> unread;  // prefixes of what else a file may have
    };

    // Empty: transformers has no class for this type.
    static std::optional<HuggingFace> of(job::ModelType type);
    // Of a file with these tensors; empty: its names are not transformers'.
    static std::optional<HuggingFace> in_file(job::ModelType type, const std::set<std::string_view>& tensors);

    // The tensors of a parameter, in the order of its elements; none: the class has no such parameter.
    std::vector<TensorForm> forms(const ParameterShape& shape) const;
    // The tensors of zeros that a file for the class needs beside the model's.
    std::vector<TensorForm> extras(const std::vector<ParameterShape>& parameters) const;
    // Whether the class has the tensor and our model not; a file may have it.
    bool is_extra(std::string_view name) const;

    std::string head() const;  // the weight that a tied head lacks
    // Whether a file without the head's weight is of a model whose head is tied. The class without a head
    // writes none either.
    bool is_tied_without_head() const { return !bare_ || family_->tied; }
    // Whether the tensor is one that the class without a head lacks.
    bool is_of_head(std::string_view name) const;
    std::string_view class_name() const { return family_->name; }
    std::string_view bare_class_name() const { return family_->bare_name; }

  private:
    explicit HuggingFace(const Family& family) : family_(&family) {}

    std::string named(std::string_view theirs) const;

    const Family* family_;
    bool bare_ = false;  // names lack the family's prefix
};

// LayerNorm.gamma is LayerNorm.weight, as in the first BERTs.
std::string modern_name(std::string_view name);

}  // namespace shardscope::trainer::checkpoint
