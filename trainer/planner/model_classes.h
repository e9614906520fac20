// The classes of a model's modules: candidates for wrapping into units and for checkpointing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/job/job.h"

namespace shardscope::trainer::planner {

// Facts about the modules of one class.
struct ClassFacts {
    int modules = 0;
    std::int64_t largest = 0, all = 0;  // parameters in the largest module, and in all
    bool leaf = true;

    void count(std::int64_t elements, bool has_children);
};
using Classes = std::map<std::string, ClassFacts>;

// Wrap policies that suit a model: the root alone, each class that repeats and contains at least half of the
// parameters, and the size of the largest such module.
std::vector<std::string> wraps_for(const job::Job& job);
std::vector<std::string> wraps_of(const Classes& classes, std::int64_t elements);
// What a loop around fully_shard may do instead of wrapping each module of the largest class that repeats.
struct Loop {
    std::string wrap;       // by that class
    std::string every;      // fsdp.wrap: every second one; empty if there are fewer than four
    std::string keep_last;  // fsdp.unit: the last one is kept until the backward, which needs it first
};
std::optional<Loop> loop_for(const job::Job& job);
// The checkpointing candidates: none, and each such class whose modules contain others.
std::vector<std::string> checkpointings_for(const job::Job& job);

}  // namespace shardscope::trainer::planner
