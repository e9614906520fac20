// The places of a rank, a stream and a unit in the vectors of a trace, each a type of its own. The number
// that a source gave to the same thing (Rank::number, DeviceStream::id, UnitRow::id) is a plain integer, so
// that neither passes for the other.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace shardscope::traces::schema {
struct UnitRow;
}

namespace shardscope::traces::store {

struct Rank;
struct DeviceStream;

// An index into the vector of all `Of`; made from a plain integer only explicitly.
template <typename Of>
struct IndexOf {
    int value = -1;  // negative: none, or unknown

    constexpr IndexOf() = default;
    constexpr explicit IndexOf(std::integral auto index) : value(static_cast<int>(index)) {}
    // As 16-bit columns store it: the largest number for none.
    constexpr explicit IndexOf(std::uint16_t column) : value(column == 0xFFFF ? -1 : column) {}
    constexpr std::uint16_t column() const { return static_cast<std::uint16_t>(value); }

    constexpr bool known() const { return value >= 0; }
    constexpr std::size_t at() const { return static_cast<std::size_t>(value); }
    // The unknown one is the last in an order.
    constexpr auto operator<=>(const IndexOf& other) const {
        return static_cast<unsigned>(value) <=> static_cast<unsigned>(other.value);
    }
    constexpr bool operator==(const IndexOf&) const = default;
};

using RankIndex = IndexOf<Rank>;            // Trace::ranks
using StreamIndex = IndexOf<DeviceStream>;  // Trace::streams
// Trace::units or, if the trace has none, the names of units that an analysis found in its ranges.
using UnitIndex = IndexOf<schema::UnitRow>;

}  // namespace shardscope::traces::store

template <typename Of>
struct std::hash<shardscope::traces::store::IndexOf<Of>> {
    std::size_t operator()(shardscope::traces::store::IndexOf<Of> index) const noexcept { return index.at(); }
};
