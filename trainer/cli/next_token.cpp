#include "trainer/cli/next_token.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace shardscope::trainer::cli {

std::int32_t next_token(std::span<const float> logits, const Sampling& sampling, double uniform) {
    if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); }))
        return -1;
    std::vector<std::int32_t> tokens(logits.size());
    std::iota(tokens.begin(), tokens.end(), 0);
    const std::size_t kept = std::min(tokens.size(), static_cast<std::size_t>(std::max(1, sampling.top_k)));
    const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
    const auto likelier = [&](std::int32_t a, std::int32_t b) {
        return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
    };
    std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(kept), tokens.end(),
                      likelier);
    tokens.resize(kept);
    std::vector<double> ends;  // upper ends of the tokens' shares of [0, sum)
    double sum = 0;
    for (const std::int32_t token : tokens) {
        sum += std::exp((double{logit(token)} - logit(tokens.front())) / sampling.temperature);
        ends.push_back(sum);
    }
    const auto drawn = std::upper_bound(ends.begin(), ends.end(), uniform * sum) - ends.begin();
    return tokens[std::min(static_cast<std::size_t>(drawn), kept - 1)];
}

}  // namespace shardscope::trainer::cli
