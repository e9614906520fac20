// Which device work belongs to a slice of time. Work belongs where it was launched, by correlation id; what
// was launched nowhere in the trace belongs where it starts. A range of time has what runs in it, too.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/merge/slice_windows.h"
#include "traces/schema/schema.h"

namespace shardscope::traces {

struct Part;

// Numbers that are added in any order and looked up once all are there.
class NumberSet {
  public:
    void add(std::int64_t number) { numbers_.push_back(number); }
    void close();
    void remove(const NumberSet& others);
    bool has(std::int64_t number) const;
    bool empty() const { return numbers_.empty(); }

  private:
    std::vector<std::int64_t> numbers_;
};

// SQL of when a row of the table began and ended, as the part has it; empty: it has no times.
std::pair<std::string, std::string> times_of(Part& part, const SchemaTable& table);

class LaunchedWork {
  public:
    explicit LaunchedWork(bool by_steps) : by_steps_(by_steps) {}

    // Reads the calls in the windows, then which work that ran in them was launched elsewhere.
    void find(Part& part, const SliceWindows& windows);

    // Whether work from `start` to `end`, of an owner with these windows, is in the slice.
    bool keeps(std::int64_t correlation, const SliceWindows::Windows& windows, std::int64_t start,
               std::int64_t end) const;

    bool has(std::int64_t correlation) const {
        return launched_.has(correlation) || beside_.has(correlation);
    }
    // Of work that is kept though its call is not in the windows.
    bool is_beside(std::int64_t correlation) const { return beside_.has(correlation); }
    bool has_beside() const { return !beside_.empty(); }

  private:
    bool is_there(const SliceWindows::Windows& windows, std::int64_t start, std::int64_t end) const;

    bool by_steps_;
    NumberSet launched_;  // correlation ids of calls in the windows
    NumberSet beside_;    // of work in the windows that belongs to the slice, but its call is not there
};

}  // namespace shardscope::traces
