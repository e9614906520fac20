// What tests of module trees compare.
#pragma once

#include <string>
#include <vector>

#include "traces/analysis/modules/modules.h"

namespace shardscope::traces {

inline std::vector<std::string> names(const std::vector<analysis::ModuleNode>& nodes) {
    std::vector<std::string> all;
    all.reserve(nodes.size());
    for (const analysis::ModuleNode& n : nodes) all.push_back(n.name);
    return all;
}

// us in results, ns in tests.
constexpr double us(double ns) {
    return ns * 1e-3;
}

}  // namespace shardscope::traces
