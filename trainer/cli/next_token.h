// Draws the next token from a model's logits.
#pragma once

#include <cstdint>
#include <span>

namespace shardscope::trainer::cli {

struct Sampling {
    double temperature = 0.8;  // > 0; below 1, likely tokens become likelier
    int top_k = 40;  // only the k likeliest are drawn from (Fan, Lewis, Dauphin: "Hierarchical neural
                     // story generation", ACL 2018)
};

// Draws from softmax(logits / temperature) over the top_k largest logits (among equal ones, the lowest
// tokens); `uniform` in [0, 1) is the random number. Returns an index into `logits`, which must not be empty;
// -1 if a logit is not finite.
std::int32_t next_token(std::span<const float> logits, const Sampling& sampling, double uniform);

}  // namespace shardscope::trainer::cli
