// Draws the next token from a model's logits.
#pragma once

#include <cstdint>
#include <span>

namespace shardscope::trainer {

struct Sampling {
    double temperature = 0.8;  // > 0; below 1 the likely become likelier
    int top_k = 40;  // only the k likeliest are drawn from (Fan, Lewis, Dauphin: "Hierarchical neural
                     // story generation", ACL 2018)
};

// Draws from softmax(logits / temperature) over the top_k largest logits (of equal ones the first tokens);
// `uniform` in [0, 1) decides. The result is an index into `logits`, which is not empty. -1: a logit is not
// finite.
std::int32_t next_token(std::span<const float> logits, const Sampling& sampling, double uniform);

}  // namespace shardscope::trainer
