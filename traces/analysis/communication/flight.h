// Evaluates PyTorch's NCCL flight recorders: for each process group, the collective at which its ranks
// diverged, which rank never reached it and which ranks waited there. Times in nanoseconds, sizes in bytes.
//
// The collectives of a group are distinguished by their sequence number, which each rank counts for itself; a
// rank's ring buffer holds the latest. The group *stopped* at the smallest number that some rank never
// reached or did not complete. A rank has reached a number if it recorded it or a larger one (then the number
// has been overwritten in the ring), or if its process group's status says so. Groups are distinguished by
// name and members.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// One rank's record of a collective, a send or a receive.
struct FlightPlace {
    int rank = 0;
    std::int64_t sequence = -1;  // -1: the rank has no record here
    std::string group;           // name of the group
    schema::Operation operation = schema::Operation::other;
    std::string name;  // "nccl:_all_gather_base"
    schema::FlightState state = schema::FlightState::scheduled;
    std::string sizes, data_type;
    std::int64_t input_bytes = -1, output_bytes = -1;  // -1 unknown
    std::int64_t created_ns = 0, timeout_ms = -1;
    std::string stack;  // frames, innermost first, one per line
};

// Where a group stopped.
struct FlightStop {
    std::int64_t sequence = -1;
    schema::Operation operation = schema::Operation::other;  // as recorded by the ranks that reached it
    std::string name;
    std::vector<FlightPlace> missing;    // ranks that never reached it, with the latest record of each
    std::vector<FlightPlace> waiting;    // ranks that reached it and did not complete it
    std::vector<FlightPlace> completed;  // ranks that completed it
};

// Ranks that recorded different things under the same sequence number.
struct FlightMismatch {
    struct Variant {
        std::string text;  // "all_reduce", "[[4, 8]] -> [[4, 8]]", "Float"
        std::vector<int> ranks;
    };
    std::int64_t sequence = -1;
    std::string what;  // "operation", "size", "type" or "count" (number of parts of a coalesced collective)
    std::vector<Variant> variants;
    std::vector<FlightPlace> places;  // the first rank of each variant
};

struct FlightGroup {
    std::string name, description;
    std::vector<int> ranks;                                // with a dump in the trace
    std::vector<int> without_dump;                         // members without a dump
    std::int64_t first_sequence = -1, last_sequence = -1;  // recorded by any rank; -1: no collective
    std::int64_t completed_everywhere = -1;                // the last number that all these ranks completed
    bool stopped = false;
    FlightStop stop;                         // valid if `stopped`
    std::vector<FlightMismatch> mismatches;  // the first kMostMismatches
    std::int64_t mismatch_count = 0;
    std::vector<FlightPlace> pending;  // sends and receives that did not complete
    // By index into stop.missing: the group (index into FlightReport::groups) at whose stop that rank waits,
    // which kept it from reaching this one; -1: it waits nowhere, and the others wait for it.
    std::vector<int> held_up_in;
};

inline constexpr std::size_t kMostMismatches = 20;

struct FlightReport {
    std::vector<FlightGroup> groups;  // stopped groups first; then by name
    std::vector<int> ranks;           // with a dump
    // What happened, as sentences; the first names the rank that stopped, if one did.
    std::vector<std::string> verdict;
};

// Covers the selected rank's groups and the records created in the selected range; ignores selected steps.
FlightReport flight_report(const store::Trace& trace, const Selection& selection = {});

// Whether there is anything to report.
bool has_flight_records(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
