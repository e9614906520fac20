// The classes of a model's modules: candidates for wrapping into units and for checkpointing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/job/job.h"

namespace shardscope::trainer::planner {

// Facts about the modules of one class.
struct ClassFacts {
    int modules = 0;
    std::int64_t largest = 0, all = 0;  // parameters inside
    bool leaf = true;

    void count(std::int64_t elements, bool has_children);
};
using Classes = std::map<std::string, ClassFacts>;

// Wrap policies that suit a model: all in one, by each class that repeats and contains half of the parameters
// or more, and by the size of the largest such module.
std::vector<std::string> wraps_for(const Job& job);
std::vector<std::string> wraps_of(const Classes& classes, std::int64_t elements);
// The checkpointing candidates: nothing, and the class of the largest modules that repeat and have others
// inside.
std::vector<std::string> checkpointings_for(const Job& job);

}  // namespace shardscope::trainer::planner
