// What a rank's caching allocator did, as far as a trace contains it: the state before the first event, the
// requests and frees in their order, and the memory that it took from the device and returned. Internal to
// the library. Times in nanoseconds, sizes in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/memory/allocator_settings.h"
#include "traces/analysis/memory/caching_allocator.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct AllocatorEvent {
    enum class Kind : std::uint8_t {
        segment,  // recorded: the allocator took or returned `bytes`
        request_free,
        fail,
        allocate,
        free,
        empty_cache,
        end_step
    };
    Kind kind = Kind::allocate;
    std::int64_t time = 0;
    std::uint64_t address = 0;  // as recorded; names the block
    std::int64_t bytes = 0;     // requested; of a segment: negative if it was returned
    int stream = 0, pool = 0;
    std::int64_t limit = 0;  // of a failed request: the most that the allocator could have; 0 unknown
};

struct InitialSegment {
    AllocatorPlace place;
    std::vector<AllocatorPiece> pieces;
    bool expandable = false;
};

struct AllocatorHistory {
    std::vector<InitialSegment> initial;
    std::vector<AllocatorEvent> events;        // in order
    AllocatorSettings settings;                // as recorded
    bool has_segments = false;                 // the trace records what was taken from the device
    std::vector<SegmentChange> last_segments;  // at the end of the recording, by address
    std::int64_t reserved_peak = 0;            // recorded; 0 if segments are not
    std::int64_t limit = 0;                    // the most that the allocator could have; 0: never reached
    std::string limit_reason;                  // a sentence, if returned segments show the limit
    std::vector<std::string> assumptions;      // sentences
};

// `rows`: the rank's rows of Trace::memory on one device, in order.
AllocatorHistory allocator_history(const store::Trace& trace, store::RankIndex rank,
                                   const std::vector<std::uint32_t>& rows);

}  // namespace shardscope::traces::analysis
