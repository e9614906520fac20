// Waits and causes of exposure in words: "all_gather blocks.3", "rank 2 in all_gather blocks.3", "launch of
// Memcpy HtoD (CPU bound)". Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/analysis/communication/matching.h"
#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/analysis/waits/waits.h"

namespace shardscope::traces::analysis {

std::string_view title(WaitFor what);           // "Late rank"
std::string_view meaning(WaitFor what);         // one sentence
std::string_view title(ExposureCause cause);    // "late rank"
std::string_view meaning(ExposureCause cause);  // one sentence

// The trace must outlive it.
class WaitNames {
  public:
    explicit WaitNames(const store::Trace& trace);

    // "all_gather" of communication, "copy to device" of a copy, else the event's name.
    std::string kind_of(std::size_t event) const;
    // The same with its unit: "all_gather blocks.3"; a copy of a step's input: "copy to device of batch".
    std::string event(std::size_t event) const;
    std::string wait(const Wait& wait) const;
    // What waits: "rank 1: all_gather blocks.3", "the host in cudaEventSynchronize".
    std::string waiter(const Wait& wait) const;
    // What a cause refers to: "rank 2", "behind reduce_scatter blocks.4"; "" if nothing.
    std::string of_cause(const Exposure& exposure, ExposureCause cause) const;

  private:
    std::string unit_of(std::size_t event) const;
    std::string host_in(std::int32_t call) const;
    std::string rank(store::RankIndex rank) const;
    bool is_batch(std::size_t event) const;

    const store::Trace& trace_;
    UnitRanges units_;
    KernelOperations operations_;
};

// Both, for a trace that outlives them. One thread at a time may ask for names.
struct TraceWaits {
    explicit TraceWaits(const store::Trace& trace) : finder(trace), names(trace) {}
    WaitFinder finder;
    WaitNames names;
};

}  // namespace shardscope::traces::analysis
