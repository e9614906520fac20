// Parses the values of options. Each function throws std::invalid_argument with a sentence without a full
// stop, which names what was given and what is expected.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::profiler {

// "500M", "2G", "1.5GiB", "4096": bytes. K, M, G and T are powers of 1024.
std::int64_t parse_bytes(const std::string& text);

// "3:5", "7:" (from 7 on), ":5" (up to 5), "4": steps, both included.
std::pair<std::int64_t, std::int64_t> parse_steps(const std::string& text);

// "0,8-11": ranks, both included. At most kMostRankRanges of them.
inline constexpr std::size_t kMostRankRanges = 32;
std::vector<std::pair<std::int32_t, std::int32_t>> parse_ranks(const std::string& text);

// "USR2", "SIGUSR2" or "12": one of the signals meant for such uses: USR1, USR2, RTMIN and RTMIN+n.
int parse_signal(const std::string& text);

}  // namespace shardscope::profiler
