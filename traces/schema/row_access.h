// How a column takes its value from a row's struct when it is written, and stores it there when it is loaded.
// The member's type determines how: an integer, an enum, a text, an id of a string, or a std::optional,
// which is NULL where it is empty. A NULL that is loaded leaves the member's initial value.
//
//   SchemaColumn{"bytes", kIntNN, "bytes", "Copied.", from<&MemcpyRow::bytes>},
//   SchemaColumn{"graphNodeId", kInt, "id", "...", rarely(unless_negative<&MemcpyRow::graph_node>)},
//   SchemaColumn{"gridX", kIntNN, "blocks", "...", from<[](const KernelRow& row) { return row.grid[0]; }>},
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

namespace shardscope::traces {

// The value of one column of one row, on its way into SQLite. A cell that is not set is NULL.
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

// The value of one column of one row, as read from SQLite.
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

// The struct to which a member, or the argument of a function, belongs.
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

// Whether `Has` is true for at least one row of an array, whose struct is that of `Get`.
template <auto Get, auto Has>
bool any(const void* rows, std::size_t count) {
    const auto* first = static_cast<const typename Owner<decltype(Get)>::type*>(rows);
    return std::any_of(first, first + count, Has);
}

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;

// Whether there is no value in the sense of unless_zero().
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
        // A damaged value, or one from a newer file, is treated as absent.
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

// A function that sets the member; null for a value that is made from several.
template <auto Get>
constexpr auto setter() {
    using Set = void (*)(const LoadedCell&, void*);
    if constexpr (std::is_member_object_pointer_v<decltype(Get)>) {
        return Set([](const LoadedCell& cell, void* row) {
            take(cell, static_cast<typename Owner<decltype(Get)>::type*>(row)->*Get);
        });
    } else {
        return Set(nullptr);
    }
}

// Writes NULL where `IsNone` is true for the value.
template <auto Get, auto IsNone>
constexpr ColumnAccess unless() {
    return {.get =
                [](SqlValue cell, const void* row) {
                    const auto& value = std::invoke(Get, row_of<Get>(row));
                    if (!IsNone(value)) put(cell, value);
                },
            .set = setter<Get>(),
            .any = any<Get, [](const auto& row) { return !IsNone(std::invoke(Get, row)); }>};
}

}  // namespace access

// `Get`: a member, or a function of the row.
template <auto Get>
inline constexpr ColumnAccess from = access::unless<Get, [](const auto& value) {
    if constexpr (access::is_optional<std::remove_cvref_t<decltype(value)>>) {
        return !value.has_value();
    } else {
        return false;
    }
}>();
// NULL where the value is negative, which means "none" or "unknown".
template <auto Get>
inline constexpr ColumnAccess unless_negative =
    access::unless<Get, [](const auto& value) { return value < 0; }>();
// NULL where the value is 0 or empty.
template <auto Get>
inline constexpr ColumnAccess unless_zero =
    access::unless<Get, [](const auto& value) { return access::is_zero(value); }>();

// The element at `I` of a member that is an array.
template <auto Array, std::size_t I>
inline constexpr ColumnAccess element = {
    .get = [](SqlValue cell,
              const void* row) { access::put(cell, std::invoke(Array, access::row_of<Array>(row))[I]); },
    .set =
        [](const LoadedCell& cell, void* row) {
            using Row = typename access::Owner<decltype(Array)>::type;
            access::take(cell, std::invoke(Array, *static_cast<Row*>(row))[I]);
        }};

// The same for a column that has a value only in rows for which `Holds` is true.
template <auto Holds, auto Member>
inline constexpr ColumnAccess from_if = {.get =
                                             [](SqlValue cell, const void* row) {
                                                 const auto& its = access::row_of<Member>(row);
                                                 if (Holds(its)) access::put(cell, std::invoke(Member, its));
                                             },
                                         .set = access::setter<Member>()};

// NULL in most rows; the column is omitted from the statement if it is NULL in all rows of a batch.
constexpr ColumnAccess rarely(ColumnAccess access) {
    access.rare = true;
    return access;
}

// SQL for a value that is the same in every row.
constexpr ColumnAccess always(std::string_view sql) {
    return {.constant = sql};
}

// A column that several tables have, with the access that one of them needs.
constexpr SchemaColumn with(SchemaColumn column, ColumnAccess access) {
    column.access = access;
    return column;
}

}  // namespace shardscope::traces
