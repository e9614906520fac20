// Self-attention with its projections, and Llama's rotary position embedding.
#pragma once

#include <optional>

#include "trainer/model/module.h"

namespace shardscope::trainer::model {

// The table of the rotary position embedding (Su et al., RoFormer: arXiv 2104.09864): cosine and sine of
// position * base^(-2 i / head width), [context, head width / 2] each, of graph.buffer_dtype. A model
// computes it at the start of its forward, and its blocks share it (Graph::shared).
class Rotary {
  public:
    Rotary(int context, int head_width, double base)
        : context_(context), head_width_(head_width), base_(base) {}

    plan::Tensor make(Graph& graph) const;

    // Rotates the first `turned` of the `heads` heads of each row of x [batch * context, heads * head width]
    // by their position and copies the others.
    plan::Tensor turn(Graph& graph, const std::string& path, const plan::Tensor& x, int turned,
                      int heads) const;

  private:
    std::int64_t context_, head_width_;
    double base_;
};

struct AttentionShape {
    int context = 0, heads = 0, kv_heads = 0, width = 0;
    bool bias = true;
    float projection_std = 0;  // of the weight of the projection after the attention
    double dropout = 0;        // after that projection
    bool fused = false;        // scores are never stored as a whole (model.attention)
    bool causal = true;        // else each position sees all of its sequence
    int tensor = 1;            // ranks of a tensor group, among which the heads are divided
    std::optional<Rotary> rotary;
};

// softmax(q k^T / sqrt(head width)) v for each head; if causal, each position sees itself and those before
// it, and the module's class is CausalSelfAttention, else SelfAttention. One Linear computes queries, keys
// and values, [batch * context, (heads + 2 kv heads) * head width]; if there are fewer heads of keys and
// values than of queries, each serves heads / kv heads query heads (grouped-query attention, Ainslie et al.:
// arXiv 2305.13245). Keeps the probabilities [batch, heads, context, context], or, fused, its output and one
// fp32 number per row, [batch, heads, context].
class SelfAttention final : public Module {
  public:
    SelfAttention(std::string attribute, const AttentionShape& shape);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;
    // Elements that a token has in a key/value cache.
    std::int64_t keys_of_token() const;

  private:
    void store_keys(Graph& graph, const plan::Tensor& qkv, std::int64_t batch) const;
    plan::Tensor attend_to_cache(Graph& graph, const plan::Tensor& qkv, std::int64_t batch);
    plan::Tensor attend(Graph& graph, const plan::Tensor& qkv, std::int64_t batch);
    plan::Tensor attend_fused(Graph& graph, const plan::Tensor& qkv, std::int64_t batch);

    // `heads`, `kv_heads` and `width` are those of one rank of a tensor group.
    AttentionShape shape_;
    std::int64_t outer_width_;  // of the whole
    int sharing_ = 1;           // ranks that share a head of keys and values
};

}  // namespace shardscope::trainer::model
