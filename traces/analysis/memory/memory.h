// Peak memory and what lived at the peak. Definition: docs/definitions.md, "Memory".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/memory/fragmentation.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

using CategoryBytes = std::array<std::int64_t, kMemoryCategories>;

struct MemoryHolder {  // a module, unit, buffer, annotation or stack and what it held at the peak
    std::string name;
    std::int64_t bytes = 0;
    std::optional<std::int64_t> predicted = {};  // by the memory account, at its peak; none: not stored
    std::string stack = {};  // of a holder by stack: all frames of its largest one, one a line
};

struct MemoryFailure {  // an allocation that the device could not give
    std::int64_t time_ns = 0;
    std::string text;  // a sentence: what was asked for, what lived, what was free
};

struct SpacePeak {  // of a space beside the device's
    MemorySpace space = MemorySpace::host;
    std::int64_t peak_bytes = 0, peak_time_ns = 0;
};

// Communication memory that grew in every step. It may be a leak, or its frees are not in the trace: PyTorch
// does not record what the threads of Gloo and MPI free.
struct MemoryGrowth {
    std::int64_t steps = 0;
    std::int64_t first_bytes = 0, last_bytes = 0;  // that lived at the end of the first and of the last step
    std::string host_library;                      // "Gloo": host threads communicate; "": they do not
};

struct MemoryPoint {  // the curve: totals by category right after an allocation or free
    std::int64_t time = 0;
    std::int64_t total = 0;
    CategoryBytes bytes{};
};

struct RankMemory {
    int rank = 0;
    std::int64_t peak_bytes = 0, peak_time_ns = 0;
    CategoryBytes at_peak{};  // sums to peak_bytes exactly
    // Largest first; each sums to peak_bytes exactly, and its predictions to predicted_peak_bytes. What the
    // prediction holds and the peak does not is there with 0 bytes.
    std::vector<MemoryHolder> units, modules, buffers;
    // By the annotation (range) around the allocation and by the frame of the program that asked for it; as
    // above, without predictions. Empty where the trace tells none.
    std::vector<MemoryHolder> annotations, stacks;
    std::optional<Fragmentation> fragmentation;  // at the peak; none: the trace tells no segments
    std::vector<MemoryFailure> failures;         // in the selected time
    std::vector<SpacePeak> other_spaces;         // that the trace tells of
    std::optional<MemoryGrowth> growth;          // in the selected steps
    int devices = 1;                  // on which the rank allocated; the peak is of the one that holds most
    bool until_last_use = false;      // the bytes are active ones (see below)
    std::int64_t reserved_bytes = 0;  // what the pool held at most; 0 unknown
    std::int64_t predicted_peak_bytes = -1;  // the memory account's of the whole run; -1 none stored
    // The account's peak of the selected steps that the trace has; -1: none stored by step. It may be less
    // than the run's: the first step has no optimizer state before it ends.
    std::int64_t predicted_of_steps = -1;
    std::optional<std::int64_t>
        predicted_step;  // which reaches the run's; none: not stored, or the set-up does
    CategoryBytes predicted_at_peak{};
    std::string predicted_where;
    bool prediction_applies = true;  // false: the peak looked for is not the predicted one (see below)
};

// The difference as the tables show it: 100 (measured - predicted) / predicted; 0 where nothing is predicted.
inline double difference_percent(std::int64_t measured, std::int64_t predicted) {
    return predicted != 0 ? 100.0 * (static_cast<double>(measured) - static_cast<double>(predicted)) /
                                static_cast<double>(predicted)
                          : 0.0;
}

struct MemoryReport {
    std::vector<RankMemory> ranks;
    MemorySpace space = MemorySpace::device;
};

// Allocated memory of one device; of a rank with several the one whose peak is highest. Of memory snapshots
// of PyTorch active memory: until the last stream has used it (memory_facts.h). There the latest of several
// equal peaks counts, since a snapshot is replayed from its end backwards; elsewhere the earliest.
//
// With steps or a range selected the peak is that of the time from the first
// selected step's host start to the last one's host end, within the range; what was live before counts as it
// was. Otherwise it is that of the whole trace after set-up: events of the set-up phase that lead are not
// looked at.
//
// The prediction is of the whole run. It applies to a selection of steps only where one of them is predicted
// to reach that peak, and never to a range of time; otherwise the holders carry none.
//
// Of another space than the device's the same is told but for what is known of the device's alone:
// prediction, reserved bytes, fragmentation, failures and other spaces.
MemoryReport memory_report(const Trace& trace, const Selection& selection = {},
                           MemorySpace space = MemorySpace::device);

// The space that a trace tells of: the device's, or where nothing was allocated on a device the host's (a job
// on processors).
MemorySpace space_in_use(const Trace& trace);

// The curve of one rank (index into Trace::ranks) in one space.
std::vector<MemoryPoint> memory_curve(const Trace& trace, int rank_index,
                                      MemorySpace space = MemorySpace::device);

}  // namespace shardscope::traces
