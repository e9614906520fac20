// Numbers for people, with grouped thousands: the common rounding of the tables, the viewer and the pages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::traces::store {

// 1234567 -> "1,234,567".
std::string grouped(std::int64_t value);

// To `decimals` places, half away from zero by the number's decimal digits: 1234.56 -> "1,234.6", 1.25 ->
// "1.3", 8.45 (which is less in binary) -> "8.5"; never "-0.0". Not a number: "-".
std::string grouped(double value, int decimals);

// "1 kernel", "2,000 kernels".
std::string counted(std::int64_t count, std::string_view one, std::string_view many);

}  // namespace shardscope::traces::store
