// What PyTorch's NCCL flight recorders say: for each process group, at which collective its ranks parted,
// which rank never came and who waited there. Times in nanoseconds, sizes in bytes.
//
// Collectives of a group are told apart by their sequence number, which each rank counts for itself; a rank's
// ring buffer holds the latest. The group *stopped* at the smallest number that some rank never reached or
// did not complete. A rank has reached a number if it recorded it, or a larger one (then the number is gone
// from the ring), or if its process group's status says so. Groups are told apart by name and members.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

// One rank's record of a collective, a send or a receive.
struct FlightPlace {
    int rank = 0;
    std::int64_t sequence = -1;  // -1: the rank has no record here
    std::string group;           // its name
    Operation operation = Operation::other;
    std::string name;  // "nccl:_all_gather_base"
    FlightState state = FlightState::scheduled;
    std::string sizes, data_type;
    std::int64_t input_bytes = -1, output_bytes = -1;  // -1 unknown
    std::int64_t created_ns = 0, timeout_ms = -1;
    std::string stack;  // frames, innermost first, one a line
};

// Where a group stopped.
struct FlightStop {
    std::int64_t sequence = -1;
    Operation operation = Operation::other;  // as the ranks that came recorded it
    std::string name;
    std::vector<FlightPlace> missing;    // ranks that never reached it: the last thing each did in any group
    std::vector<FlightPlace> waiting;    // reached it, not completed
    std::vector<FlightPlace> completed;  // completed it
};

// Ranks that recorded different things under one number.
struct FlightMismatch {
    struct Variant {
        std::string text;  // "all_reduce", "[[4, 8]] -> [[4, 8]]", "Float"
        std::vector<int> ranks;
    };
    std::int64_t sequence = -1;
    std::string what;  // "operation", "size", "type" or "count" (of a coalesced collective's parts)
    std::vector<Variant> variants;
    std::vector<FlightPlace> places;  // the first rank of each variant
};

struct FlightGroup {
    std::string name, description;
    std::vector<int> ranks;                                // that have a dump here
    std::vector<int> without_dump;                         // members that have none
    std::int64_t first_sequence = -1, last_sequence = -1;  // recorded by any rank; -1: no collective
    std::int64_t completed_everywhere = -1;                // the last number that all these ranks completed
    bool stopped = false;
    FlightStop stop;                         // where `stopped`
    std::vector<FlightMismatch> mismatches;  // the first kMostMismatches
    std::int64_t mismatch_count = 0;
    std::vector<FlightPlace> pending;  // sends and receives that did not complete
    // Of stop.missing, by index: the group (index into FlightReport::groups) at whose stop that rank waits,
    // so that it could not come here; -1: it waits nowhere, and is why the others wait.
    std::vector<int> held_up_in;
};

inline constexpr std::size_t kMostMismatches = 20;

struct FlightReport {
    std::vector<FlightGroup> groups;  // those that stopped first; then by name
    std::vector<int> ranks;           // that have a dump
    // What happened, as sentences for people; the first names the rank that stopped, where one did.
    std::vector<std::string> verdict;
};

// Looks at the selected rank's groups and at the records created in the selected range; steps mean nothing
// here.
FlightReport flight_report(const Trace& trace, const Selection& selection = {});

// Whether there is anything to report.
bool has_flight_records(const Trace& trace);

}  // namespace shardscope::traces
