// Which device work belongs to a slice. Work belongs to the time of its launch (found by correlation id) or,
// if the trace has no launch for it, of its start. A slice of a time range also includes the work that runs
// in it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/merge/slice_windows.h"
#include "traces/schema/schema.h"

namespace shardscope::traces::merge {

struct Part;

// Numbers that are added in any order and looked up once all have been added.
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

// SQL for the start and the end of a row of the table in this part; empty if the rows have no times.
std::pair<std::string, std::string> times_of(Part& part, const schema::SchemaTable& table);

class LaunchedWork {
  public:
    explicit LaunchedWork(bool by_steps) : by_steps_(by_steps) {}

    // Reads the calls in the windows, then finds the work that ran in them but was launched outside.
    void find(Part& part, const SliceWindows& windows);

    // Whether work from `start` to `end`, of an owner with these windows, is in the slice.
    bool keeps(std::int64_t correlation, const SliceWindows::Windows& windows, std::int64_t start,
               std::int64_t end) const;

    bool has(std::int64_t correlation) const {
        return launched_.has(correlation) || beside_.has(correlation);
    }
    // Whether the work is kept although its call is outside the windows.
    bool is_beside(std::int64_t correlation) const { return beside_.has(correlation); }
    bool has_beside() const { return !beside_.empty(); }

  private:
    bool is_there(const SliceWindows::Windows& windows, std::int64_t start, std::int64_t end) const;

    bool by_steps_;
    NumberSet launched_;  // correlation ids of calls in the windows
    NumberSet beside_;    // of work that belongs to the slice although its call is outside the windows
};

}  // namespace shardscope::traces::merge
