#include "traces/store/sqlite/sql_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include <cxxabi.h>
#include <fmt/core.h>
#include <sqlite3.h>

#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

namespace {

// Longer ones are not C++ symbols, and their nesting should not be parsed.
constexpr std::size_t kLongestSymbol = 65536;

bool is_null(sqlite3_value* value) {
    return sqlite3_value_type(value) == SQLITE_NULL;
}

bool is_number(sqlite3_value* value) {
    const int type = sqlite3_value_numeric_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

void give(sqlite3_context* context, std::string_view text) {
    sqlite3_result_text64(context, text.data() != nullptr ? text.data() : "", text.size(), SQLITE_TRANSIENT,
                          SQLITE_UTF8);
}

void fail(sqlite3_context* context, const char* sentence) {
    sqlite3_result_error(context, sentence, -1);
}

// Catches every exception: none may pass through SQLite, which is C.
template <typename Work>
void guarded(sqlite3_context* context, Work work) {
    try {
        work();
    } catch (const std::bad_alloc&) {
        sqlite3_result_error_nomem(context);
    } catch (const std::exception& error) {
        fail(context, error.what());
    }
}

void demangle(sqlite3_context* context, int, sqlite3_value** values) {
    if (is_null(values[0])) return sqlite3_result_null(context);
    guarded(context, [&] {
        const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
        if (text == nullptr) throw std::bad_alloc();
        const std::string symbol(text, static_cast<std::size_t>(sqlite3_value_bytes(values[0])));
        // A text that is not a symbol may be the encoding of a type ("i" is int), which is not meant here.
        const bool may_be = symbol.starts_with("_Z") && symbol.size() <= kLongestSymbol &&
                            symbol.find('\0') == std::string::npos;
        int status = -1;
        const std::unique_ptr<char, decltype(&std::free)> name(
            may_be ? abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status) : nullptr, std::free);
        give(context, status == 0 && name ? std::string_view(name.get()) : std::string_view(symbol));
    });
}

void pretty(sqlite3_context* context, sqlite3_value* value, std::string (*as_text)(double)) {
    if (is_null(value)) return sqlite3_result_null(context);
    if (!is_number(value)) return fail(context, "pretty_time and pretty_bytes take a number");
    guarded(context, [&] { give(context, as_text(sqlite3_value_double(value))); });
}

void pretty_time_function(sqlite3_context* context, int, sqlite3_value** values) {
    pretty(context, values[0], pretty_time);
}

void pretty_bytes_function(sqlite3_context* context, int, sqlite3_value** values) {
    pretty(context, values[0], pretty_bytes);
}

void overlap(sqlite3_context* context, int, sqlite3_value** values) {
    bool whole = true;
    for (int i = 0; i < 4; ++i) {
        if (is_null(values[i])) return sqlite3_result_null(context);
        if (!is_number(values[i])) return fail(context, "overlap(start, end, a, b) takes four numbers");
        whole = whole && sqlite3_value_numeric_type(values[i]) == SQLITE_INTEGER;
    }
    if (!whole) {
        const double from = std::max(sqlite3_value_double(values[0]), sqlite3_value_double(values[2]));
        const double to = std::min(sqlite3_value_double(values[1]), sqlite3_value_double(values[3]));
        return sqlite3_result_double(context, std::max(0.0, to - from));
    }
    const std::int64_t from = std::max(sqlite3_value_int64(values[0]), sqlite3_value_int64(values[2]));
    const std::int64_t to = std::min(sqlite3_value_int64(values[1]), sqlite3_value_int64(values[3]));
    std::int64_t length = 0;
    if (to > from && __builtin_sub_overflow(to, from, &length))
        return fail(context, "overlap: the common part is longer than 2^63");
    sqlite3_result_int64(context, length);
}

// --- percentile ------------------------------------------------------------------------------------------

struct Sample {
    std::vector<double> values;
    double percent = -1;
};

// SQLite allocates zeroed bytes for each group, which hold the pointer to the sample.
constexpr int kPointer = sizeof(void*);
Sample** sample_of(sqlite3_context* context, bool make) {
    return static_cast<Sample**>(sqlite3_aggregate_context(context, make ? kPointer : 0));
}

void percentile_step(sqlite3_context* context, int, sqlite3_value** values) {
    if (!is_number(values[1])) return fail(context, "percentile(value, p): p must be a number from 0 to 100");
    const double percent = sqlite3_value_double(values[1]);
    if (!(percent >= 0 && percent <= 100))
        return fail(context, "percentile(value, p): p must be from 0 to 100");
    Sample** sample = sample_of(context, true);
    if (sample == nullptr) return sqlite3_result_error_nomem(context);
    guarded(context, [&] {
        if (*sample == nullptr) *sample = std::make_unique<Sample>().release();
        Sample& all = **sample;
        if (all.percent >= 0 && all.percent != percent)
            return fail(context, "percentile(value, p): p must be the same for all rows of a group");
        all.percent = percent;
        if (is_null(values[0])) return;
        if (!is_number(values[0])) return fail(context, "percentile(value, p): the value must be a number");
        all.values.push_back(sqlite3_value_double(values[0]));
    });
}

void percentile_final(sqlite3_context* context) {
    Sample** held = sample_of(context, false);
    if (held == nullptr || *held == nullptr) return sqlite3_result_null(context);
    const std::unique_ptr<Sample> sample(std::exchange(*held, nullptr));
    std::vector<double>& values = sample->values;
    if (values.empty()) return sqlite3_result_null(context);
    const double place = sample->percent / 100 * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(values.begin(), at, values.end());
    double result = *at;
    if (const double part = place - static_cast<double>(below); part > 0)
        result += part * (*std::min_element(at + 1, values.end()) - result);
    sqlite3_result_double(context, result);
}

}  // namespace

std::string pretty_time(double ns) {
    constexpr std::array<std::pair<double, const char*>, 3> kUnits = {
        {{1e9, "s"}, {1e6, "ms"}, {1e3, "\u00b5s"}}};
    for (const auto& [size, unit] : kUnits) {
        if (std::abs(ns) >= size) return fmt::format("{:.3f} {}", ns / size, unit);
    }
    return fmt::format("{} ns", ns);
}

std::string pretty_bytes(double bytes) {
    constexpr std::array<std::pair<double, const char*>, 4> kUnits = {
        {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}}};
    for (const auto& [size, unit] : kUnits) {
        if (std::abs(bytes) >= size) return fmt::format("{:.2f} {}", bytes / size, unit);
    }
    return fmt::format("{} B", bytes);
}

void add_sql_functions(Database& database) {
    // Innocuous: views of untrusted files may call them.
    constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    using Function = void (*)(sqlite3_context*, int, sqlite3_value**);
    struct Scalar {
        const char* name;
        int arguments;
        Function function;
    };
    constexpr std::array<Scalar, 4> kScalars = {{{"demangle", 1, demangle},
                                                 {"pretty_time", 1, pretty_time_function},
                                                 {"pretty_bytes", 1, pretty_bytes_function},
                                                 {"overlap", 4, overlap}}};
    const auto check = [&](int code) {
        if (code != SQLITE_OK) database.fail(code, "adding SQL functions");
    };
    for (const Scalar& scalar : kScalars) {
        check(sqlite3_create_function_v2(database.handle(), scalar.name, scalar.arguments, kFlags, nullptr,
                                         scalar.function, nullptr, nullptr, nullptr));
    }
    check(sqlite3_create_function_v2(database.handle(), "percentile", 2, kFlags, nullptr, nullptr,
                                     percentile_step, percentile_final, nullptr));
}

}  // namespace shardscope::traces::store
