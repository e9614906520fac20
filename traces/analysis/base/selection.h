// The part of a trace that an analysis is limited to: `--rank`, `--step A:B`, `--range A:B`.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace shardscope::traces::analysis {

// A rank index: the place of a rank in Trace::ranks. A rank number, which the job gave the rank, is a plain
// int.
struct RankPlace {
    int value = 0;

    constexpr explicit RankPlace(int index) : value(index) {}
    constexpr explicit RankPlace(std::size_t index) : value(static_cast<int>(index)) {}
    constexpr std::size_t at() const { return static_cast<std::size_t>(value); }
    constexpr auto operator<=>(const RankPlace&) const = default;
};

struct Selection {
    std::optional<int> rank;                            // the rank's number, not its index
    std::optional<std::int64_t> first_step, last_step;  // inclusive step numbers
    std::optional<std::int64_t> from_ns, to_ns;         // half-open time range

    bool has_step(std::int64_t n) const {
        return (!first_step || n >= *first_step) && (!last_step || n <= *last_step);
    }
};

}  // namespace shardscope::traces::analysis
