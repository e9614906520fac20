// Numbers as the tables show them. Times in nanoseconds or microseconds, MB = 2^20 bytes. Internal to
// traces/report.
#pragma once

#include <cstdint>
#include <string>

#include "traces/report/text_table.h"

namespace shardscope::traces {

inline std::string us(double value) {
    return grouped(value, 1);
}
inline std::string mb(double bytes) {
    return grouped(bytes / (1 << 20), 2);
}
inline std::string mb(std::int64_t bytes) {
    return mb(static_cast<double>(bytes));
}
// A sum of bytes, or GB/s: 0 means "not known" (a barrier, a kernel without metadata).
inline std::string known_mb(double bytes) {
    return bytes > 0 ? mb(bytes) : "-";
}
inline std::string known_mb(std::int64_t bytes) {
    return known_mb(static_cast<double>(bytes));
}
inline std::string known_rate(double gbps, int decimals) {
    return gbps > 0 ? grouped(gbps, decimals) : "-";
}
inline std::string percent(double part, double whole) {
    return grouped(whole > 0 ? 100.0 * part / whole : 0.0, 2);
}
inline std::string percent(std::int64_t part, std::int64_t whole) {
    return percent(static_cast<double>(part), static_cast<double>(whole));
}
inline std::string milliseconds(std::int64_t ns) {
    return grouped(static_cast<double>(ns) * 1e-6, 3);
}
// "1 collective is", "21 collectives are".
inline std::string collectives_are(std::int64_t count) {
    return grouped(count) + (count == 1 ? " collective is" : " collectives are");
}

}  // namespace shardscope::traces
