// What is typed into the search for events: a text that names contain, and filters, for example
// "relu kind:kernel rank:3 dur>10us unit:blocks.3 module:Linear". Pure; any thread. Nanoseconds.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::viewer::timeline {

struct FindQuery {
    std::string text;                         // contained in the name or the bar's label, ignoring case
    std::vector<std::string> kinds;           // an event has one of these; empty: any
    std::vector<std::string> units, modules;  // likewise: a part of the name of its unit, its module
    std::vector<int> ranks;                   // numbers; empty: all
    // Durations between these, both inclusive.
    std::int64_t shortest = 0, longest = std::numeric_limits<std::int64_t>::max();
    std::string wrong;  // one sentence about a filter that cannot be read; else empty

    bool has_filters() const {
        return !kinds.empty() || !units.empty() || !modules.empty() || !ranks.empty() || shortest > 0 ||
               longest != std::numeric_limits<std::int64_t>::max();
    }
};

// Filters are "kind:", "rank:" (a number, or numbers with commas), "unit:", "module:" and "dur" with <, <=, >
// or
// >= and a time with its unit. Text in double quotes is not read for filters.
FindQuery parse_find(std::string_view text);

// The text so that parse_find() takes it for a name, whatever is in it.
std::string quoted(std::string_view name);

}  // namespace shardscope::viewer::timeline
