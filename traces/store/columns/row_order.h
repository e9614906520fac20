// Sorts columns by a key. Events arrive sorted, or as a few consecutive sorted runs, so that sorted columns
// cost one pass and runs are merged. Internal to the store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "traces/store/columns/column.h"

namespace shardscope::traces::store {

// Row numbers in the order of `less(i, j)`, ties in their original order; empty if they are in order already.
// The result equals that of std::stable_sort of all numbers.
template <typename Less>
std::vector<std::uint32_t> row_order(std::size_t size, Less less) {
    std::vector<std::size_t> runs = {0};  // where each sorted run begins
    for (std::size_t i = 1; i < size; ++i) {
        if (less(i, i - 1)) runs.push_back(i);
    }
    if (runs.size() == 1) return {};
    std::vector<std::uint32_t> order(size);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    constexpr std::size_t kFewRows = 8;  // per run: with fewer on average a plain sort is as good
    if (runs.size() > size / kFewRows) {
        std::stable_sort(order.begin(), order.end(), less);
        return order;
    }
    runs.push_back(size);
    std::vector<std::uint32_t> merged(size);
    const auto at = [](std::vector<std::uint32_t>& rows, std::size_t i) {
        return rows.begin() + static_cast<std::ptrdiff_t>(i);
    };
    while (runs.size() > 2) {
        std::vector<std::size_t> joined = {0};
        for (std::size_t r = 0; r + 1 < runs.size(); r += 2) {
            const std::size_t first = runs[r], middle = runs[r + 1];
            const std::size_t last = r + 2 < runs.size() ? runs[r + 2] : middle;
            std::merge(at(order, first), at(order, middle), at(order, middle), at(order, last),
                       at(merged, first), less);
            joined.push_back(last);
        }
        order.swap(merged);
        runs = std::move(joined);
    }
    return order;
}

// A column in such an order. An empty column (without any value) stays empty.
template <typename Values>
void reorder(Values& column, const std::vector<std::uint32_t>& order) {
    if (order.empty() || column.empty()) return;
    std::vector<typename Values::value_type> moved;
    moved.reserve(column.size());
    for (const std::uint32_t row : order) moved.push_back(column[row]);
    column = std::move(moved);
}

// The same, moved into `to`.
template <typename T>
void reorder_into(std::vector<T>& from, const std::vector<std::uint32_t>& order, Column<T>& to) {
    reorder(from, order);
    to = std::move(from);
}

}  // namespace shardscope::traces::store
