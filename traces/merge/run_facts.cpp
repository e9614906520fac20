#include "traces/merge/run_facts.h"

#include <algorithm>

#include <fmt/core.h>

namespace shardscope::traces::merge {

namespace {

bool is_of_a_part(const std::string& key) {
    return key.starts_with("part.") || key.starts_with("merge.") || key.starts_with("slice.");
}

const std::string* find(const RunFacts& facts, const std::string& key) {
    const auto it =
        std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == key; });
    return it != facts.end() ? &it->second : nullptr;
}

}  // namespace

bool was_finished_later(const RunFacts& facts) {
    return find(facts, "finalized") != nullptr;
}

RunFacts merge_run_facts(const std::vector<RunFacts>& parts) {
    if (parts.size() == 1) return parts.front();
    RunFacts merged;
    for (std::size_t p = 0; p < parts.size(); ++p) {
        for (const auto& fact : parts[p]) {
            const std::string& key = fact.first;
            const std::string& value = fact.second;
            const bool alike =
                !is_of_a_part(key) && std::all_of(parts.begin(), parts.end(), [&](const RunFacts& other) {
                    const std::string* theirs = find(other, key);
                    return theirs == nullptr || *theirs == value;
                });
            if (!alike) {
                merged.emplace_back(fmt::format("part.{}.{}", p + 1, key), value);
            } else if (find(merged, key) == nullptr) {
                merged.emplace_back(key, value);
            }
        }
    }
    return merged;
}

}  // namespace shardscope::traces::merge
