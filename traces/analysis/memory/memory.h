// Peak memory and the allocations at the peak. Definition: docs/definitions.md, "Memory".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct Fragmentation {
    std::int64_t held_bytes = 0;    // reserved, in segments
    std::int64_t segments = 0;      // number of address ranges
    std::int64_t free_bytes = 0;    // of the reserved bytes, those in no live block
    std::int64_t free_blocks = 0;   // number of contiguous free stretches
    std::int64_t largest_free = 0;  // the longest stretch: no larger allocation fits without a new segment
    // 100 (1 - largest / free): 0 if all free memory is one block, near 100 if it is in small pieces.
    double percent() const {
        return free_bytes > 0
                   ? 100.0 * (1.0 - static_cast<double>(largest_free) / static_cast<double>(free_bytes))
                   : 0.0;
    }
};

// The state at `time` on a rank whose live allocations are the rows `live` of
// Trace::memory. A block's size is rounded up to 512, as in PyTorch's caching allocator. Adjacent segments
// count as one if the allocator's segments can grow (`allocator.expandable_segments`). All 0 if the trace has
// no segments.
Fragmentation fragmentation_at(const store::Trace& trace, store::RankIndex rank, std::int64_t time,
                               const std::vector<std::uint32_t>& live);

using CategoryBytes = std::array<std::int64_t, schema::kMemoryCategories>;

struct MemoryHolder {  // a module, unit, buffer, annotation or stack and its bytes at the peak
    std::string name;
    std::int64_t bytes = 0;
    std::optional<std::int64_t> predicted = {};  // by the memory account, at its peak; none: not stored
    std::string stack = {};  // for a holder by stack: all frames of its largest one, one per line
};

struct MemoryFailure {  // an allocation that the device could not satisfy
    std::int64_t time_ns = 0;
    std::string text;  // a sentence: what was requested, what was live, what was free
};

struct SpacePeak {  // of a memory space other than the device's
    schema::MemorySpace space = schema::MemorySpace::host;
    std::int64_t peak_bytes = 0, peak_time_ns = 0;
};

// Communication memory that grew in every step. It may be a leak, or its frees may be missing from the trace:
// PyTorch does not record what the threads of Gloo and MPI free.
struct MemoryGrowth {
    std::int64_t steps = 0;
    std::int64_t first_bytes = 0, last_bytes = 0;  // live at the end of the first and of the last step
    std::string host_library;                      // "Gloo": host threads communicate; "": none do
};

struct MemoryPoint {  // of the curve: totals by category right after an allocation or free
    std::int64_t time = 0;
    std::int64_t total = 0;
    CategoryBytes bytes{};
};

struct RankMemory {
    int rank = 0;
    std::int64_t peak_bytes = 0, peak_time_ns = 0;
    CategoryBytes at_peak{};  // sums to peak_bytes exactly
    // Largest first; each list sums to peak_bytes exactly, and its predictions to predicted_peak_bytes. A
    // holder that is in the prediction but not in the peak has 0 bytes.
    std::vector<MemoryHolder> units, modules, buffers;
    // By the annotation (range) around the allocation and by the program's frame that requested it; sums as
    // above, without predictions. Empty if not recorded.
    std::vector<MemoryHolder> annotations, stacks;
    std::optional<Fragmentation> fragmentation;  // at the peak; none: the trace has no segments
    std::vector<MemoryFailure> failures;         // in the selected time
    std::vector<SpacePeak> other_spaces;         // the other spaces in the trace
    std::optional<MemoryGrowth> growth;          // in the selected steps
    int devices = 1;                  // number on which the rank allocated; the peak is the highest of theirs
    bool until_last_use = false;      // the bytes are active ones (see below)
    std::int64_t reserved_bytes = 0;  // maximum of the pool; 0 unknown
    std::int64_t predicted_peak_bytes = -1;  // the memory account's for the whole run; -1 none stored
    // The account's peak of the selected steps that the trace has; -1: not stored by step. It may be less
    // than the run's: the first step has no optimizer state until it ends.
    std::int64_t predicted_of_steps = -1;
    std::optional<std::int64_t>
        predicted_step;  // that reaches the run's peak; none: not stored, or the set-up reaches it
    CategoryBytes predicted_at_peak{};
    std::string predicted_where;
    bool prediction_applies = true;  // false: the prediction is of another peak than this one (see below)

    bool is_empty() const { return units.empty() && peak_bytes == 0 && predicted_peak_bytes < 0; }
    // Whether predicted and measured parts are comparable.
    bool is_predicted() const { return predicted_peak_bytes >= 0 && prediction_applies; }
};

// The difference as the tables show it: 100 (measured - predicted) / predicted; 0 without a prediction.
inline double difference_percent(std::int64_t measured, std::int64_t predicted) {
    return predicted != 0 ? 100.0 * (static_cast<double>(measured) - static_cast<double>(predicted)) /
                                static_cast<double>(predicted)
                          : 0.0;
}

// The lists of holders, and their names in JSON without the plural's s.
struct HolderList {
    std::string_view by;
    std::vector<MemoryHolder> RankMemory::*holders;
};
inline constexpr std::array<HolderList, 5> kHolderLists = {{{"unit", &RankMemory::units},
                                                            {"module", &RankMemory::modules},
                                                            {"buffer", &RankMemory::buffers},
                                                            {"annotation", &RankMemory::annotations},
                                                            {"stack", &RankMemory::stacks}}};

// A part of a peak and its prediction, as tables show them.
struct MemoryPart {
    std::string name;
    std::int64_t bytes = 0, peak = 0;
    std::optional<std::int64_t> predicted = {};  // none: not stored, or of another peak
};
Fields<MemoryPart> memory_part_fields();
// The categories; without predictions if these do not apply.
std::vector<MemoryPart> category_parts(const RankMemory& rank);
// The `most` largest holders; if more than one is left, these make up a row "… 5 more".
std::vector<MemoryPart> holder_parts(const std::vector<MemoryHolder>& holders, std::int64_t peak,
                                     std::size_t most);
// The holders that have bytes at the peak.
std::vector<MemoryHolder> holders_at_peak(const std::vector<MemoryHolder>& holders);
// The sum of all parts, predicted if any of them is.
MemoryPart sum_of(const std::vector<MemoryPart>& parts, std::string name);

struct MemoryReport {
    std::vector<RankMemory> ranks;
    schema::MemorySpace space = schema::MemorySpace::device;
};

// Allocated memory of one device; for a rank with several, the one with the highest peak. For PyTorch memory
// snapshots active memory, which counts until the last stream has used it (memory_facts.h); there the latest
// of several equal peaks counts, since a snapshot is replayed backwards from its end; elsewhere the earliest.
//
// With steps or a range selected, the peak is that of the time from the first selected step's host start to
// the last one's host end, within the range, and starts with what was live before. Otherwise it is that of
// the whole trace after set-up: leading events of the set-up phase are ignored.
//
// The prediction is for the whole run. It applies to selected steps only if one of them is predicted to reach
// that peak, and never to a time range; otherwise the holders have no prediction.
//
// For a space other than the device's the report omits what is known only for the device: prediction,
// reserved bytes, fragmentation, failures and other spaces.
MemoryReport memory_report(const store::Trace& trace, const Selection& selection = {},
                           schema::MemorySpace space = schema::MemorySpace::device);

// The space that a trace uses: the device's or, if it has no allocations on a device, the host's (CPU jobs).
schema::MemorySpace space_in_use(const store::Trace& trace);

// The curve of one rank in one space.
std::vector<MemoryPoint> memory_curve(const store::Trace& trace, store::RankIndex rank,
                                      schema::MemorySpace space = schema::MemorySpace::device);

}  // namespace shardscope::traces::analysis
