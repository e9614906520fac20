// What the values of a column may be if they are indexes: those from 0 up to a limit, and perhaps none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace shardscope::traces::store {

struct ColumnBound {
    // earlier: the index of an earlier row of the same column, or none.
    enum class Kind : std::uint8_t { any, index, index_or_none, earlier };
    Kind kind = Kind::any;
    std::size_t limit = 0;
    bool may_be_empty = false;  // although other columns of the same events have values

    static ColumnBound index(std::size_t limit) { return {.kind = Kind::index, .limit = limit}; }
    // None is -1 or, in an unsigned column, the largest number.
    static ColumnBound index_or_none(std::size_t limit) {
        return {.kind = Kind::index_or_none, .limit = limit};
    }

    // Whether they are; `first` is the row of the first value.
    template <typename T>
    bool holds(const T* values, std::size_t count, std::size_t first) const {
        if constexpr (std::is_enum_v<T>) {
            return holds(reinterpret_cast<const std::underlying_type_t<T>*>(values), count, first);
        } else if constexpr (std::is_integral_v<T>) {
            if (kind == Kind::any) return true;
            // As an unsigned number none is the largest, so that adding 1 makes it 0.
            using Unsigned = std::make_unsigned_t<T>;
            const Unsigned one = kind == Kind::index ? 0 : 1;
            const std::uint64_t step = kind == Kind::earlier ? 1 : 0;
            std::uint64_t most = kind == Kind::earlier ? first + 1 : limit + one;
            bool inside = true;
            for (std::size_t i = 0; i < count; ++i, most += step)
                inside &= static_cast<Unsigned>(static_cast<Unsigned>(values[i]) + one) < most;
            return inside;
        } else {
            return true;
        }
    }
};

}  // namespace shardscope::traces::store
