// Bus bandwidth over size: what collectives and messages of each size reached, one curve for each operation,
// axis of the mesh, number of ranks, and place (within a host or between hosts). From any trace: of a
// benchmark or of training. Definition: docs/definitions.md, "Distributed".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/communication/hosts.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// Collectives of one size, each counted once; low and high are the quartiles. A curve with more than
// kMostSizes sizes is divided into bins of a quarter of an octave; `bytes` is then the median of a bin's
// sizes.
struct BandwidthPoint {
    std::int64_t bytes = 0;  // of the full buffer
    std::int64_t count = 0;
    double low_us = 0, median_us = 0, high_us = 0;  // of the transfers
    double algbw_gbps = 0;                          // the median
    double low_gbps = 0, busbw_gbps = 0, high_gbps = 0;
};
inline constexpr std::size_t kMostSizes = 64;

// The bus bandwidth that something allows: more is possible only while data stay in caches. Unknown if gbps
// is 0.
struct BandwidthBound {
    double gbps = 0;
    std::string of;  // "memory of one host": what sets it
};

struct BandwidthCurve {
    schema::Operation operation = schema::Operation::other;  // a send and its receive: send
    std::string axis;                                        // "" unknown
    int ranks = 0;                                           // of a communicator; of a message 2
    HostTraffic::Where where = HostTraffic::Where::unknown;
    std::int64_t count = 0, bytes = 0;  // sums over the points
    BandwidthBound bound;
    std::vector<BandwidthPoint> points;  // by size, rising
};

// What messages from one rank to another reached.
struct PairBandwidth {
    MessageEnds ends;
    std::int64_t count = 0;
    std::int64_t smallest_bytes = 0, largest_bytes = 0;
    double latency_us = 0;   // median transfer of the messages of the smallest size
    double busbw_gbps = 0;   // the highest median over sizes
    std::int64_t bytes = 0;  // the size that reached it
    HostTraffic::Where where = HostTraffic::Where::unknown;
};

struct BusBandwidthReport {
    std::vector<BandwidthCurve> curves;  // by operation, axis, ranks, place
    std::vector<PairBandwidth> pairs;    // by source, then destination
    std::int64_t left_out = 0;           // collectives whose bytes, ranks or time are unknown
};

// Collectives with at least one part in the selected steps and time; with a rank selected, those that it
// takes part in.
BusBandwidthReport bus_bandwidth(const store::Trace& trace, const Selection& selection = {});

// A point with its curve, for tables.
struct BandwidthRow {
    const BandwidthCurve* curve = nullptr;
    BandwidthPoint point;
};
std::vector<BandwidthRow> bandwidth_rows(const BusBandwidthReport& report);
Fields<BandwidthRow> bandwidth_fields();
Fields<PairBandwidth> pair_bandwidth_fields();

// "all_gather, data, 8 ranks, within a host".
std::string curve_name(const BandwidthCurve& curve);
// "8 B", "64 KiB", "1.5 MiB".
std::string size_text(std::int64_t bytes);

// The facts of a run (SHARD_RUN) that a benchmark of collectives records: bytes per second, read and written,
// of one rank's copies in memory, while all ranks of the host copy and while it copies alone.
inline constexpr std::string_view kCopyRateFact = "bench.copy_bytes_per_second",
                                  kAloneCopyRateFact = "bench.copy_alone_bytes_per_second";

// Bytes that a rank must read from and write to memory for its part in a collective of `bytes`, each byte of
// each buffer once; 0: there is no such bound.
double memory_bytes_moved(schema::Operation operation, double bytes, int ranks);

}  // namespace shardscope::traces::analysis
