// Parses numbers from decimal texts exactly: times never pass through a double.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/import/json/json_scan.h"

namespace shardscope::traces::importer {

// How the fraction of a microsecond is written: ".5" is 500 ns, but 5 ns in traces of libkineto from 18 March
// to 3 April 2024, which omitted leading zeros.
enum class Fraction { decimal, nanoseconds };

// Microseconds -> ns, to the nearest; empty if it is not a number or beyond 64 bits.
std::optional<std::int64_t> parse_us(std::string_view text, Fraction fraction);

// A whole number, also written as a string or with a fraction of zeros.
std::optional<std::int64_t> parse_integer(std::string_view text);
inline std::int64_t integer_or(JsonScalar value, std::int64_t otherwise) {
    if (value.kind != JsonKind::number && value.kind != JsonKind::string) return otherwise;
    return parse_integer(value.text).value_or(otherwise);
}
// The number if it is within int's range, else `otherwise`.
int int_or(JsonScalar value, int otherwise);

// An address: up to 2^64 - 1, also written as "0x7f...".
std::uint64_t address_of(JsonScalar value);

std::optional<double> parse_double(std::string_view text);

// An id that links events, in any notation: 0 for none, its value if it is in 1 .. 2^32 - 1, otherwise
// (negative, larger, a text) a number above 2^61 that stands for its text.
std::int64_t plain_id(JsonScalar value);

// The same, made distinct from the ids of other ranks.
constexpr std::int64_t rank_id(int rank, std::int64_t plain) {
    constexpr std::int64_t kSpan = std::int64_t{1} << 32;
    if (plain == 0) return 0;
    if (plain < kSpan) return static_cast<std::int64_t>(rank) * kSpan | plain;
    // Above all plain ids, since rank numbers end at 2^20.
    return plain ^ static_cast<std::int64_t>(rank) * 0x9E3779B1;
}

}  // namespace shardscope::traces::importer
