// What shardscope-train gives the processes that it starts itself (run.processes), so that they find each
// other: their Places, as environment variables.
//
//   const Listener listener = Listener::on_loopback();     // the port is theirs before any process starts
//   place.listen_fd = rank == 0 ? listener.descriptor() : -1;
//   ... fork, listener.keep_on_exec() in rank 0's child, exec with environment_for(place) ...
//   close the listener once rank 0 has started
#pragma once

#include <string>
#include <vector>

#include "trainer/world/place.h"

namespace shardscope::trainer::world {

inline constexpr const char* kRankVariable = "SHARDSCOPE_RANK";
inline constexpr const char* kRanksVariable = "SHARDSCOPE_RANKS";
inline constexpr const char* kMasterVariable = "SHARDSCOPE_MASTER";
inline constexpr const char* kPortVariable = "SHARDSCOPE_PORT";
inline constexpr const char* kTokenVariable =
    "SHARDSCOPE_JOB_TOKEN";  // other launchers' jobs may have it, too
inline constexpr const char* kListenVariable = "SHARDSCOPE_LISTEN_FD";  // rank 0's alone

// "SHARDSCOPE_RANK=2", ...: place_from_environment() rebuilds the place from these.
std::vector<std::string> environment_for(const Place& place);

// 128 bits from the system's source of random numbers, in hexadecimal digits.
std::string random_token();

}  // namespace shardscope::trainer::world
