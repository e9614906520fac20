// The part of a trace that an analysis is limited to: `--rank`, `--step A:B`, `--range A:B`.
#pragma once

#include <cstdint>
#include <optional>

namespace shardscope::traces::analysis {

struct Selection {
    std::optional<int> rank;                            // its number
    std::optional<std::int64_t> first_step, last_step;  // inclusive step numbers
    std::optional<std::int64_t> from_ns, to_ns;         // half-open time range

    bool has_step(std::int64_t n) const {
        return (!first_step || n >= *first_step) && (!last_step || n <= *last_step);
    }
};

}  // namespace shardscope::traces::analysis
