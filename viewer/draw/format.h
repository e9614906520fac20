// Numbers as people read them: thousands apart, a unit on each. Pure text, no drawing; any thread.
// MB = 2^20 bytes everywhere, as PyTorch's tools print it. Only Latin-1 characters: every font has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::viewer {

// 52133082 -> "52,133,082".
std::string format_count(std::int64_t value);

// 1234567.891 with 1 decimal -> "1,234,567.9"; never "-0.0".
std::string format_decimal(double value, int decimals);

// A column of one unit: bytes in MB (2^20), "43,218.21 MB" with unit or "43,218.21" without.
std::string format_mb(std::int64_t bytes, bool with_unit = true);

// In the unit that suits: "812 B", "3.2 KB", "108.1 MB", "42.2 GB" (powers of 1024).
std::string format_size(std::int64_t bytes);

// In the unit that suits, four digits: "812 ns", "3.21 µs", "12.35 ms", "1.204 s".
std::string format_duration(double ns);

// Four digits and a power of a thousand: 175221817344 -> "175.2 B"; k, M, B (10^9), T. Where room is short.
std::string format_short(double value);

// "89.04 %", two decimals.
std::string format_percent(double percent);

// Change against a base: "+5.2 %", "-59.3 %", "0.0 %"; "new" where the base is zero and the value is not.
std::string format_change(double value, double base);

// The same text shortened to `limit` bytes with "..." in the middle: both ends of a path tell most. No
// character is cut in two.
std::string shorten_middle(const std::string& text, std::size_t limit);

// How many bytes the first and the last character of a text have; 1 for a byte that is no UTF-8, 0 for none.
std::size_t first_character(std::string_view text);
std::size_t last_character(std::string_view text);

// "unsharded_parameters" -> "unsharded parameters".
std::string spaced(std::string_view name);

}  // namespace shardscope::viewer
