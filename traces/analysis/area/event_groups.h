// What an event belongs to, as a number: its name, kind, module, FSDP unit or rank. Definitions:
// docs/definitions.md, "Area". Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/store/columns/event_columns.h"

namespace shardscope::traces::analysis {

enum class GroupBy : std::uint8_t { name, kind, module, unit, rank };

class EventGroups {
  public:
    EventGroups(const store::Trace& trace, GroupBy by);  // the trace must outlive it

    std::size_t size() const { return size_; }
    // Below size(); -1: it has no name, module, unit or rank.
    int of(store::EventRef event) const;
    std::string name(int group) const;  // "" for -1

  private:
    void find_modules();
    int around(std::int32_t range, std::int64_t time) const;

    const store::Trace& trace_;
    GroupBy by_;
    std::size_t size_ = 0;
    std::vector<std::string> names_;  // of modules
    std::vector<int> module_around_;  // by host range
    UnitRanges units_;
};

}  // namespace shardscope::traces::analysis
