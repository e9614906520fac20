// Which FSDP unit a hook belongs to whose name does not tell: FSDP1's hooks, by the order in which they run.
// Inside the room only. See unit_ranges.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "traces/analysis/fsdp/unit_names.h"

namespace shardscope::traces {

struct Trace;

inline constexpr std::int32_t kUnnamed = -1;
// Units that are entered and not left; more is no nesting of modules.
inline constexpr std::size_t kMostOpenUnits = 1024;

// A range that says something about units.
struct MarkedRange {
    std::size_t range = 0;  // index into Trace::ranges
    UnitMark kind = UnitMark::none;
    std::int32_t unit = kUnnamed;  // index into the names
    bool again = false;            // a forward within autograd: recomputation
};

// The names of units in the order in which they are met.
class UnitTable {
  public:
    explicit UnitTable(std::vector<std::string>& names) : names_(names) {
        for (std::size_t u = 0; u < names.size(); ++u) index_.emplace(names[u], static_cast<std::int32_t>(u));
    }
    std::int32_t operator[](const std::string& name) {
        const auto [it, is_new] = index_.emplace(name, static_cast<std::int32_t>(names_.size()));
        if (is_new) names_.push_back(name);
        return it->second;
    }

  private:
    std::vector<std::string>& names_;
    std::unordered_map<std::string, std::int32_t> index_;
};

// Gives hooks without a name their unit; one rank at a time, in the order of time. A pass is a forward with
// its backward.
class HookOrder {
  public:
    HookOrder(const Trace& trace, UnitTable& units, bool second_generation);

    void add(MarkedRange& mark);  // stays where it is until the pass has ended
    void finish();                // the last pass has ended

  private:
    struct Open {
        std::int32_t unit;
        std::int64_t end;  // of a scope; the largest number where a later mark ends it
    };
    using Order = std::vector<std::int32_t>;
    using Next = std::unordered_map<std::int32_t, std::int32_t>;

    static Next next_of(const Order& order);
    void enter(MarkedRange& mark);
    void close_before(std::int64_t time);
    void leave(std::int32_t unit);
    // The hooks in their order to the units in theirs. Too few hooks: units that only enclose others have
    // none. Too many: the outermost unit has one for each of its outputs (`outer_first`).
    void give(std::vector<MarkedRange*>& hooks, Order order, bool outer_first) const;

    const Trace& trace_;
    UnitTable& units_;
    std::string pattern_;
    std::vector<Open> open_;
    Order started_, ended_;  // each unit once
    std::unordered_set<std::int32_t> has_started_, has_ended_, enclosing_;
    std::vector<MarkedRange*> before_, after_, again_;
    // With the hook in which they were asked for.
    std::vector<std::pair<MarkedRange*, const MarkedRange*>> prefetches_;
    const MarkedRange* hook_ = nullptr;
    bool backward_ = false;
};

}  // namespace shardscope::traces
