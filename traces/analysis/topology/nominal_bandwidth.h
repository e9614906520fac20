// The bandwidths of a cluster's links, as a run states them.
#pragma once

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// Facts of the run: bytes per second of one device in one direction, within a host and between hosts.
inline constexpr const char* kIntraBandwidth = "sim.intra_bandwidth";
inline constexpr const char* kInterBandwidth = "sim.inter_bandwidth";

// Bytes per second; 0: the run does not state it.
double nominal_bandwidth(const store::Trace& trace, bool between_hosts);

}  // namespace shardscope::traces::analysis
