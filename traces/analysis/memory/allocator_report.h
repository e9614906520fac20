// The caching allocator's reserved memory: as recorded, replayed from the recorded requests, and what other
// settings would have reserved. Rules, assumptions and limits: docs/allocator.md. Sizes in bytes, times in
// nanoseconds; none: unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/memory/device_account.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// What is reserved with one choice of settings, in the selected time.
struct ReservedRow {
    std::string settings;                         // "recorded", "replayed", "expandable_segments:True"
    std::string note = {};                        // why there is no result
    std::optional<std::int64_t> reserved = {};    // the most
    std::optional<std::int64_t> difference = {};  // to the replay with the recorded settings
    // When the most was reserved first:
    std::optional<std::int64_t> time = {}, allocated = {}, cached = {}, largest_free = {}, free_blocks = {},
                                segments = {};
    std::optional<double> fragmentation = {};  // 100 (1 - largest_free / cached)
    std::optional<std::int64_t> retries = {}, failed = {};
};
Fields<ReservedRow> reserved_fields();

// An allocation that failed in the recording, with one choice of settings.
struct FailedRequest {
    std::int64_t time = 0, bytes = 0;
    std::string settings = {};
    std::optional<bool> fits = {};
    std::optional<std::int64_t> left = {};  // after it; negative: what is missing
    std::optional<std::int64_t> reserved = {}, cached = {}, largest_free = {};  // before it
};
Fields<FailedRequest> failed_request_fields();

// The replay with the recorded settings next to the recorded segments.
struct SegmentCheck {
    std::int64_t recorded_peak = 0, replayed_peak = 0;          // in the whole trace
    std::int64_t recorded_segments = 0, replayed_segments = 0;  // at the end
    std::int64_t equal_segments = 0;                            // with the same address and size
    std::int64_t recorded_changes = 0, equal_changes = 0;  // taken and returned, until the first difference
    std::int64_t allocations = 0, at_recorded_address = 0;
    std::string difference;  // a sentence about the first one; empty: none

    bool is_equal() const { return difference.empty(); }
};

struct RankAllocator {
    int rank = 0;
    std::string settings;    // as recorded
    std::int64_t limit = 0;  // the most that the allocator could have; 0: never reached
    std::int64_t requests = 0;
    std::optional<SegmentCheck> check;  // none: the trace has no segments
    std::vector<ReservedRow> reserved;  // recorded, replayed, what-ifs
    std::vector<FailedRequest> failures;
    std::vector<DeviceAccount> account;
    std::vector<std::string> assumptions;  // sentences
};

struct AllocatorReport {
    std::vector<RankAllocator> ranks;
};

struct AllocatorChoices {
    std::vector<std::string> settings;  // what-ifs (parse_allocator_settings); empty: a common choice
    std::int64_t limit = 0;             // the most that the allocator may have; 0: as recorded
};

// Throws std::invalid_argument if a what-if cannot be parsed. Steps and ranges of the selection limit the
// time in which peaks and failures are searched; every replay begins with the trace.
AllocatorReport allocator_report(const store::Trace& trace, const Selection& selection = {},
                                 const AllocatorChoices& options = {});

}  // namespace shardscope::traces::analysis
