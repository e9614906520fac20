// Finds the FSDP units of hooks whose names do not contain them: FSDP1's hooks, by the order in which they
// run. Internal to the library. See unit_ranges.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "traces/analysis/fsdp/unit_names.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

inline constexpr store::UnitIndex kUnnamed;
// Limit on units that are entered and not left; more cannot be a nesting of modules.
inline constexpr std::size_t kMostOpenUnits = 1024;

// A range whose name concerns units.
struct MarkedRange {
    std::size_t range = 0;  // index into Trace::ranges
    UnitMark kind = UnitMark::none;
    store::UnitIndex unit;  // in the names
    bool again = false;     // a forward within autograd: recomputation
};

// The names of units in order of first occurrence.
class UnitTable {
  public:
    explicit UnitTable(std::vector<std::string>& names) : names_(names) {
        for (std::size_t u = 0; u < names.size(); ++u) index_.emplace(names[u], u);
    }
    store::UnitIndex operator[](const std::string& name) {
        const auto [it, is_new] = index_.emplace(name, names_.size());
        if (is_new) names_.push_back(name);
        return it->second;
    }

  private:
    std::vector<std::string>& names_;
    std::unordered_map<std::string, store::UnitIndex> index_;
};

// Assigns units to hooks without a name, for one rank at a time, in time order. A pass is a forward with its
// backward.
class HookOrder {
  public:
    HookOrder(const store::Trace& trace, UnitTable& units, bool second_generation);

    void add(MarkedRange& mark);  // `mark` must stay in place until the pass has ended
    void finish();                // ends the last pass

  private:
    struct Open {
        store::UnitIndex unit;
        std::int64_t end;  // end of a scope; the largest number if a later mark ends it
    };
    using Order = std::vector<store::UnitIndex>;
    using Next = std::unordered_map<store::UnitIndex, store::UnitIndex>;

    static Next next_of(const Order& order);
    void enter(MarkedRange& mark);
    void close_before(std::int64_t time);
    void leave(store::UnitIndex unit);
    // Assigns the units of `order` to the hooks, both in order. With fewer hooks than units, units that only
    // enclose others get none; with more, the outermost gets one for each of its outputs (`outer_first`).
    void give(std::vector<MarkedRange*>& hooks, Order order, bool outer_first) const;

    const store::Trace& trace_;
    UnitTable& units_;
    std::string pattern_;
    std::vector<Open> open_;
    Order started_, ended_;  // each unit once
    std::unordered_set<store::UnitIndex> has_started_, has_ended_, enclosing_;
    std::vector<MarkedRange*> before_, after_, again_;
    // Each prefetch with the hook in which it was requested.
    std::vector<std::pair<MarkedRange*, const MarkedRange*>> prefetches_;
    const MarkedRange* hook_ = nullptr;
    bool backward_ = false;
};

}  // namespace shardscope::traces::analysis
