// What a benchmark of collectives records beside its events: facts of the run (SHARD_RUN), which calibration
// reads. Times by size are "8:0.31 16:0.32", in microseconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/schema/rows.h"
#include "trainer/executor/collective_bench.h"

namespace shardscope::trainer::calibrate {

inline constexpr std::string_view kBenchFacts = "bench.";  // what their keys begin with

// The fact with the times of a collective by size: "bench.all_gather_us".
std::string bench_fact(traces::schema::Operation operation);
// Messages from rank 0 to rank 1 as a Plan sends them: half a round trip, and each of many one way.
inline constexpr std::string_view kMessageLatencyFact = "bench.message_latency_us",
                                  kMessageFact = "bench.message_us",
                                  kWireLatencyFact = "bench.wire_latency_us";
// With --pairs: the smallest and the largest size ("8 4194304"); half a round trip of the one, and the time
// of each of many messages of the other one way, from the rank of the row to that of the column
// ("0 1.8;1.9 0"), as a Plan sends them; and the spreads of both over the rounds, of the
// median pair (MessageRate).
inline constexpr std::string_view kPairBytesFact = "bench.pair_bytes",
                                  kPairLatencyFact = "bench.pair_latency_us", kPairFact = "bench.pair_us",
                                  kPairLatencySpreadFact = "bench.pair_latency_spread",
                                  kPairSpreadFact = "bench.pair_spread";

std::vector<traces::schema::RunInfoRow> bench_facts(const executor::CollectiveBench& bench, int ranks,
                                                    bool pairs);

}  // namespace shardscope::trainer::calibrate
