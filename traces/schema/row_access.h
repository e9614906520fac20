// How a column's value is read from a row's struct when the row is written, and stored in it when it is
// loaded. The member's type decides how: an integer, an enum, a text, a string's id, or a std::optional,
// which is NULL if it is empty. A NULL leaves the member at its default.
//
//   SchemaColumn{"bytes", kIntNN, "bytes", "Bytes copied.", from<&MemcpyRow::bytes>},
//   SchemaColumn{"graphNodeId", kInt, "id", "...", rarely(unless_negative<&MemcpyRow::graph_node>)},
//   SchemaColumn{"gridX", kIntNN, "blocks", "...", element<&KernelRow::grid, 0>},
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "traces/schema/rows.h"
#include "traces/schema/schema.h"

struct sqlite3_context;
struct sqlite3_value;

namespace shardscope::traces::schema {

// The value of one column of one row, on its way into SQLite. A cell that nobody sets is NULL.
class SqlValue {
  public:
    explicit SqlValue(sqlite3_context* context) : context_(context) {}
    void integer(std::int64_t value) const;
    void real(double value) const;
    void text(std::string_view value) const;  // must live as long as the row
    void blob(std::string_view value) const;  // likewise

  private:
    sqlite3_context* context_;
};

// Maps the string ids of a file to those of a sink.
class LoadedStrings {
  public:
    virtual ~LoadedStrings() = default;
    virtual StringId string(std::int64_t id) const = 0;
};

// The value of one column of one row, as it comes out of SQLite.
class LoadedCell {
  public:
    LoadedCell(sqlite3_value* value, const LoadedStrings& strings) : value_(value), strings_(strings) {}
    bool is_null() const;
    std::int64_t integer() const;
    double real() const;
    std::string_view text() const;  // valid until the next row
    StringId string() const { return strings_.string(integer()); }

  private:
    sqlite3_value* value_;
    const LoadedStrings& strings_;
};

namespace access {

// The row struct of a pointer to member, or of a function object that takes a row.
template <typename T>
struct Owner : Owner<decltype(&T::operator())> {};
template <typename Member, typename Row>
struct Owner<Member Row::*> {
    using type = Row;
};
template <typename Result, typename Function, typename Row>
struct Owner<Result (Function::*)(const Row&) const> {
    using type = Row;
};
template <auto Get>
[[gnu::always_inline]] inline const auto& row_of(const void* row) {
    return *static_cast<const typename Owner<decltype(Get)>::type*>(row);
}

// Whether `HasValue` holds for some of an array of rows of the struct that `Get` belongs to.
template <auto Get, typename HasValue>
bool any(const void* rows, std::size_t count) {
    const auto* first = static_cast<const typename Owner<decltype(Get)>::type*>(rows);
    return std::any_of(first, first + count, HasValue());
}

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;

// Whether unless_zero() stores the value as NULL.
template <typename T>
bool is_zero(const T& value) {
    if constexpr (std::is_enum_v<T> || std::is_arithmetic_v<T>) {
        return value == T{};
    } else {
        return value.empty();
    }
}

template <typename T>
[[gnu::always_inline]] inline void put(SqlValue cell, const T& value) {
    if constexpr (is_optional<T>) {
        if (value) put(cell, *value);
    } else if constexpr (std::is_floating_point_v<T>) {
        cell.real(value);
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
        cell.integer(static_cast<std::int64_t>(value));
    } else {
        cell.text(value);
    }
}

template <typename T>
void take(const LoadedCell& cell, T& member) {
    if (cell.is_null()) return;
    if constexpr (is_optional<T>) {
        take(cell, member.emplace());
    } else if constexpr (std::is_same_v<T, StringId>) {
        member = cell.string();
    } else if constexpr (std::is_same_v<T, bool>) {
        member = cell.integer() != 0;
    } else if constexpr (std::is_enum_v<T>) {
        // A value out of range (of a damaged or a newer file) is treated as NULL.
        if (cell.integer() >= 0 && cell.integer() < size_of(T{})) member = static_cast<T>(cell.integer());
    } else if constexpr (std::is_integral_v<T> && sizeof(T) < sizeof(std::int64_t)) {
        constexpr std::int64_t kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
        const std::int64_t value = cell.integer();
        member = static_cast<T>(value < kLeast ? kLeast : value > kMost ? kMost : value);
    } else if constexpr (std::is_integral_v<T>) {
        member = static_cast<T>(cell.integer());
    } else if constexpr (std::is_floating_point_v<T>) {
        member = static_cast<T>(cell.real());
    } else {
        member = cell.text();
    }
}

// Stores a loaded value in its member; a value that a function computes has no setter.
template <auto Get>
void set_member(const LoadedCell& cell, void* row) {
    take(cell, static_cast<typename Owner<decltype(Get)>::type*>(row)->*Get);
}
template <auto Get>
constexpr auto setter() {
    using Set = void (*)(const LoadedCell&, void*);
    if constexpr (std::is_member_object_pointer_v<decltype(Get)>) {
        return Set(set_member<Get>);
    } else {
        return Set(nullptr);
    }
}

// What counts as NULL. (Named types: clang 14 gives different lambdas the same name as template arguments.)
struct EmptyOptional {
    template <typename T>
    bool operator()(const T& value) const {
        if constexpr (is_optional<T>) {
            return !value.has_value();
        } else {
            return false;
        }
    }
};
struct Negative {
    template <typename T>
    bool operator()(const T& value) const {
        return value < 0;
    }
};
struct Zero {
    template <typename T>
    bool operator()(const T& value) const {
        return is_zero(value);
    }
};

template <auto Get, typename IsNone>
struct Value {
    static void get(SqlValue cell, const void* row) {
        const auto& value = std::invoke(Get, row_of<Get>(row));
        if (!IsNone()(value)) put(cell, value);
    }
    bool operator()(const typename Owner<decltype(Get)>::type& row) const {
        return !IsNone()(std::invoke(Get, row));
    }
    static constexpr ColumnAccess access() {
        return {.get = get, .set = setter<Get>(), .any = any<Get, Value>};
    }
};

}  // namespace access

// `Get`: a member, or a function of the row.
template <auto Get>
inline constexpr ColumnAccess from = access::Value<Get, access::EmptyOptional>::access();
// NULL if it is negative, which stands for "none" or "unknown".
template <auto Get>
inline constexpr ColumnAccess unless_negative = access::Value<Get, access::Negative>::access();
// NULL if it is 0 or empty.
template <auto Get>
inline constexpr ColumnAccess unless_zero = access::Value<Get, access::Zero>::access();

// The element at `I` of a member that is an array.
template <auto Array, std::size_t I>
struct Element {
    using Row = typename access::Owner<decltype(Array)>::type;
    static void get(SqlValue cell, const void* row) {
        access::put(cell, std::invoke(Array, access::row_of<Array>(row))[I]);
    }
    static void set(const LoadedCell& cell, void* row) {
        access::take(cell, std::invoke(Array, *static_cast<Row*>(row))[I]);
    }
};
template <auto Array, std::size_t I>
inline constexpr ColumnAccess element = {.get = Element<Array, I>::get, .set = Element<Array, I>::set};

// NULL except in rows for which `Holds` is true.
template <typename Holds, auto Member>
struct ValueIf {
    static void get(SqlValue cell, const void* row) {
        const auto& its = access::row_of<Member>(row);
        if (Holds()(its)) access::put(cell, std::invoke(Member, its));
    }
};
template <typename Holds, auto Member>
inline constexpr ColumnAccess from_if = {.get = ValueIf<Holds, Member>::get, .set = access::setter<Member>()};

// NULL in most rows; omitted from the INSERT if it is NULL in all rows that are written together.
constexpr ColumnAccess rarely(ColumnAccess access) {
    access.rare = true;
    return access;
}

// SQL of a value that is the same in every row.
constexpr ColumnAccess always(std::string_view sql) {
    return {.constant = sql};
}

// A column that several tables share, with the access of one of them.
constexpr SchemaColumn with(SchemaColumn column, ColumnAccess access) {
    column.access = access;
    return column;
}

}  // namespace shardscope::traces::schema
