// The metrics that training reports, and how the ranks' values of one become the job's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shardscope::traces::schema {

enum class Reduction : std::uint8_t {
    same,     // every rank has this value
    mean,     // of the ranks'
    sum,      // of the ranks'
    largest,  // of the ranks'
};
// "mean over ranks"; empty: every rank has the value.
std::string_view words_of(Reduction reduction);

struct MetricKind {
    std::string_view name, meaning;
    Reduction over_ranks = Reduction::mean;
};
// Those of shardscope-train. Others have names of their program's.
std::span<const MetricKind> metric_kinds();

// That of a kind; of another metric a sum for "*_per_second", the largest for "*_bytes", else the mean.
Reduction reduction_of(std::string_view metric);

// The reduced value of `values`, of which there is one at least.
double reduced(Reduction reduction, std::span<const double> values);

}  // namespace shardscope::traces::schema
