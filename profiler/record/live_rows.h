// The latest of what a recording says of each rank, taken from its rows as they pass: for those who watch it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "traces/schema/rows.h"
#include "traces/status/run_status.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

class LiveRows {
  public:
    // `step_name`: the text before the number in the names of steps' ranges.
    explicit LiveRows(std::string step_name) : step_name_(std::move(step_name)) {}

    // `sink` has the text of the row's names.
    void take(const traces::schema::RankRow& row);
    void take(const traces::schema::CounterRow& row, const traces::store::EventSink& sink);
    void take(const traces::schema::RangeRow& row, const traces::store::EventSink& sink);
    void take(const traces::schema::NcclOperationRow& row);

    struct Rank {
        std::string host;
        std::int64_t pid = 0;
        std::optional<std::int64_t> steps_done, resident_bytes;
        std::optional<double> cores;
        std::int64_t counted_ns = 0;                                 // when these two were
        std::optional<traces::status::CollectiveStatus> collective;  // for_s is not set
        std::int64_t collective_ns = 0;                              // when it began, or ended
    };
    const std::map<int, Rank>& ranks() const { return ranks_; }
    std::optional<std::int64_t> steps_done() const {
        return steps_done_;
    }  // of all that have steps, the least

  private:
    // The number of the step whose range has that name; nullopt: it is no step's.
    std::optional<std::int64_t> step_of(traces::schema::StringId name, const traces::store::EventSink& sink);

    const std::string step_name_;
    std::map<int, Rank> ranks_;
    std::map<std::int64_t, int> rank_of_process_;  // by global_pid; -1: it has several
    std::unordered_map<std::uint64_t, int>
        groups_;  // NCCL's communicators, by the order in which they were seen
    std::map<std::int64_t, std::int64_t> steps_of_process_;
    std::optional<std::int64_t> steps_done_;
    std::unordered_map<std::uint32_t, std::int64_t> steps_by_name_;  // -1: not a step's
};

}  // namespace shardscope::profiler
