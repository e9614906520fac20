#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "traces/schema/rows.h"

namespace shardscope::traces::schema {

// The numbers 0 to size - 1 in the order of `less(context, i, j)`, equal ones in their original order;
// empty if they are already in order.
std::vector<std::uint32_t> stable_order(std::size_t size,
                                        bool (*less)(const void*, std::uint32_t, std::uint32_t),
                                        const void* context);

// Sorts rows by `less` and keeps the order of equal ones. std::stable_sort is compiled again for every type
// of row and moves whole rows repeatedly: this sort of row numbers is compiled once, and moves each row
// twice. (In inner loops over small rows std::stable_sort is faster.)
template <class Rows, class Less>
void sort_rows(Rows& rows, const Less& less) {
    const auto first = std::begin(rows);
    using Iterator = decltype(first);
    struct Context {
        Iterator first;
        const Less* less;
    };
    const Context context = {first, &less};
    const std::vector<std::uint32_t> order = stable_order(
        rows.size(),
        [](const void* given, std::uint32_t a, std::uint32_t b) {
            const Context& c = *static_cast<const Context*>(given);
            return static_cast<bool>((*c.less)(c.first[a], c.first[b]));
        },
        &context);
    if (order.empty()) return;
    std::vector<typename std::iterator_traits<std::remove_const_t<Iterator>>::value_type> sorted;
    sorted.reserve(rows.size());
    for (const std::uint32_t row : order) sorted.push_back(std::move(first[row]));
    std::move(sorted.begin(), sorted.end(), first);
}

// Sorts rows by their order(). Of a kind whose rows several ranks report alike (kKeepFirst), the first of
// those with one order() is kept, as in a database.
template <class Row>
void put_in_order(std::vector<Row>& rows) {
    sort_rows(rows, [](const Row& a, const Row& b) { return a.order() < b.order(); });
    if constexpr (requires { requires Row::kVerb == kKeepFirst; }) {
        const auto same = [](const Row& a, const Row& b) {
            if constexpr (requires { a.identity(); }) {
                return a.identity() == b.identity();
            } else {
                return a.order() == b.order();
            }
        };
        rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
    }
}

}  // namespace shardscope::traces::schema
