// Numbers formatted for reading: thousands separated, each with a unit. Pure text, no drawing; any thread.
// Only Latin-1 characters: every font has them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace shardscope::viewer::draw {

// 52133082 -> "52,133,082".
std::string format_count(std::int64_t value);

// 1234567.891 with 1 decimal -> "1,234,567.9"; never "-0.0".
std::string format_decimal(double value, int decimals);

// For a column with one unit: bytes in MiB, "43,218.21 MiB" with unit or "43,218.21" without.
std::string format_mb(std::int64_t bytes, bool with_unit = true);

// In a suitable unit: "812 B", "3.2 KiB", "108.1 MiB", "42.2 GiB" (powers of 1024).
std::string format_size(std::int64_t bytes);

// In a suitable unit, four digits: "812 ns", "3.21 µs", "12.35 ms", "1.204 s".
std::string format_duration(double ns);

// Four digits and a power of a thousand: 175221817344 -> "175.2 B"; k, M, B (10^9), T. For narrow places.
std::string format_short(double value);

// "89.04 %", two decimals.
std::string format_percent(double percent);

// In the unit of a counter's name (traces/lanes/counter_words.h): "312 W", "98.50 %", "12.0 GiB" of "bytes",
// "12.34 GB/s" (powers of 1000) of "bytes/s"; of no unit, the number alone.
std::string format_amount(double value, std::string_view unit);

// Change against a base: "+5.2 %", "-59.3 %", "0.0 %"; "new" where the base is zero and the value is not.
std::string format_change(double value, double base);

// The text shortened to `limit` bytes with "..." in the middle: the ends of a path identify it best. No
// character is cut in two.
std::string shorten_middle(const std::string& text, std::size_t limit);

// The length in bytes of a text's first and last character; 1 for a byte that is not UTF-8, 0 for an empty
// text.
std::size_t first_character(std::string_view text);
std::size_t last_character(std::string_view text);
// Whether the byte at `at` is not the first of its character.
bool inside_character(std::string_view text, std::size_t at);

// The text with line breaks instead of blanks, as many words in a line as fit. A number stays with the word
// behind it: "34.1 %".
std::string lines_of(std::string_view text, const std::function<bool(std::string_view)>& fits);

// "unsharded_parameters" -> "unsharded parameters".
std::string spaced(std::string_view name);

}  // namespace shardscope::viewer::draw
