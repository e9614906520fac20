#include "trainer/data/own_tokens.h"

#include <cstddef>
#include <cstring>
#include <vector>

namespace shardscope::trainer::data {

void OwnTokens::fill(std::int64_t first_sample, int count, void* input, void* target) const {
    if (cut_.ranks == 1) return whole_.fill(first_sample, count, input, target);
    std::vector<std::byte> inputs(static_cast<std::size_t>(whole_.input_bytes() * count));
    std::vector<std::byte> targets(static_cast<std::size_t>(whole_.target_bytes() * count));
    whole_.fill(first_sample, count, inputs.data(), targets.data());
    const auto take = [&](const std::vector<std::byte>& from, void* to) {
        const auto own = static_cast<std::int64_t>(from.size()) / cut_.ranks;
        cut_.for_runs(0, own, own / count, [&](std::int64_t at, std::int64_t bytes, std::int64_t whole) {
            std::memcpy(static_cast<std::byte*>(to) + at, from.data() + whole,
                        static_cast<std::size_t>(bytes));
        });
    };
    take(inputs, input);
    take(targets, target);
}

}  // namespace shardscope::trainer::data
