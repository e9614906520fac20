// A pipeline schedule as data: for each rank the list of its actions. p ranks hold v stages each ("chunks"),
// S = p v in all, and a step has m micro-batches. Everything else of this folder makes, checks, reads, lowers
// or times one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/pipeline/action.h"

namespace shardscope::trainer::pipeline {

// Which rank holds stage s.
enum class Placement : std::uint8_t {
    loop,  // s mod p
    v,     // v = 2: s for s < p, then 2p - 1 - s: the last stage is on the first rank
    own,   // of a file, neither of the two
};
std::string_view name(Placement placement);

struct Shape {
    int ranks = 1;          // p
    int micro_batches = 1;  // m
    int chunks = 1;         // v

    int stages() const { return ranks * chunks; }
    bool operator==(const Shape&) const = default;
};

// Stages of a rank, in the order of the model.
int stage_of(Placement placement, const Shape& shape, int rank, int chunk);

struct Schedule {
    int micro_batches = 0;
    std::vector<int> rank_of_stage;            // S
    std::vector<std::vector<Action>> actions;  // of each rank

    int ranks() const { return static_cast<int>(actions.size()); }
    int stages() const { return static_cast<int>(rank_of_stage.size()); }
    Placement placement() const;
    std::vector<int> stages_of(int rank) const;
    // The index of a stage's micro-batch in a table of all.
    std::size_t index(int stage, int micro_batch) const {
        return static_cast<std::size_t>(stage) * static_cast<std::size_t>(micro_batches) +
               static_cast<std::size_t>(micro_batch);
    }
    // Whether it has SEND and RECV; without them an output is there as soon as it is computed.
    bool has_transfers() const;

    bool operator==(const Schedule&) const = default;
};

// Something is wrong with a schedule, a file of one or what was requested. The message is one sentence.
class ScheduleError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Bounds that keep sums of times within 64 bits and mistakes within the memory.
inline constexpr int kMostRanks = 4096;
inline constexpr int kMostChunks = 64;
inline constexpr std::int64_t kMostForwards = 1'000'000;  // p v m

}  // namespace shardscope::trainer::pipeline
