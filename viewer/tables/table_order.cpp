// See table_order.h.
#include "viewer/tables/table_order.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

namespace shardscope::viewer {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool holds(const std::string& text, const std::string& lowered) {
    return std::search(text.begin(), text.end(), lowered.begin(), lowered.end(),
                       [](char a, char b) { return lower(a) == b; }) != text.end();
}

// Sorts by a key that is made once a row.
template <class Key, class Make, class Before>
void sort_by(std::vector<std::uint32_t>& order, Make make, Before before) {
    std::vector<std::pair<Key, std::uint32_t>> keyed;
    keyed.reserve(order.size());
    for (const std::uint32_t row : order) keyed.emplace_back(make(row), row);
    std::stable_sort(keyed.begin(), keyed.end(),
                     [&](const auto& a, const auto& b) { return before(a.first, b.first); });
    std::transform(keyed.begin(), keyed.end(), order.begin(), [](const auto& k) { return k.second; });
}

}  // namespace

std::vector<std::uint32_t> table_order(const TableModel& model, const TableSort& sort,
                                       const std::string& filter) {
    std::vector<std::uint32_t> order(model.rows());
    std::iota(order.begin(), order.end(), 0U);
    const std::size_t columns = model.columns().size();
    if (!filter.empty()) {
        std::string lowered = filter;
        std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
        std::erase_if(order, [&](std::uint32_t row) {
            for (std::size_t c = 0; c < columns; ++c) {
                if (holds(model.text(row, c), lowered)) return false;
            }
            return true;
        });
    }
    if (sort.column < 0 || static_cast<std::size_t>(sort.column) >= columns) return order;
    const auto column = static_cast<std::size_t>(sort.column);
    if (model.columns()[column].kind == TableColumn::Kind::number) {
        sort_by<double>(
            order, [&](std::uint32_t row) { return model.number(row, column); },
            [&](double a, double b) {
                if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
                return sort.descending ? a > b : a < b;
            });
    } else {
        sort_by<std::string>(
            order, [&](std::uint32_t row) { return model.text(row, column); },
            [&](const std::string& a, const std::string& b) { return sort.descending ? a > b : a < b; });
    }
    return order;
}

const std::vector<std::uint32_t>& TableOrder::of(const std::shared_ptr<const TableModel>& model,
                                                 const TableSort& sort, const std::string& filter) {
    if (next_.valid() && next_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
        order_ = next_.get();
        model_ = wanted_model_;
        sort_ = wanted_sort_;
        filter_ = wanted_filter_;
    }
    if (model_ != model && !next_.valid()) order_.clear();
    if ((model_ == model && sort_ == sort && filter_ == filter) || next_.valid()) {
        static const std::vector<std::uint32_t> kNone;
        return model_ == model ? order_ : kNone;  // never the rows of another table
    }
    if (model->rows() <= kAtOnce) {
        order_ = table_order(*model, sort, filter);
        model_ = model;
        sort_ = sort;
        filter_ = filter;
        return order_;
    }
    wanted_model_ = model;
    wanted_sort_ = sort;
    wanted_filter_ = filter;
    next_ =
        std::async(std::launch::async, [model, sort, filter] { return table_order(*model, sort, filter); });
    static const std::vector<std::uint32_t> kNone;
    return model_ == model ? order_ : kNone;
}

}  // namespace shardscope::viewer
