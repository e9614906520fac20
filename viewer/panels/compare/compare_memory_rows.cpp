// See compare_memory_rows.h.
#include "viewer/panels/compare/compare_memory_rows.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer {
namespace {

constexpr double kMegabyte = 1024.0 * 1024.0;

const std::vector<traces::MemoryHolder>& holders(const traces::RankMemory& rank, MemoryBy by) {
    switch (by) {
        case MemoryBy::unit:
            return rank.units;
        case MemoryBy::module:
            return rank.modules;
        case MemoryBy::category:
        case MemoryBy::buffer:
            break;
    }
    return rank.buffers;
}

}  // namespace

const traces::RankMemory* largest_rank(const traces::MemoryReport& report) {
    const auto most =
        std::max_element(report.ranks.begin(), report.ranks.end(),
                         [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
    return most == report.ranks.end() || most->peak_bytes <= 0 ? nullptr : &*most;
}

MemoryModel::MemoryModel(const std::vector<RunHead>& runs,
                         const std::vector<const traces::RankMemory*>& ranks, MemoryBy by) {
    using Kind = TableColumn::Kind;
    columns_.push_back({"name", "At the peak", "", Kind::text, 0, 99, 0, ""});
    what_.push_back({});
    const RunColumnHeads heads = run_column_heads(runs);
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::string n = fmt::format("{}", r + 1);
        columns_.push_back({"run" + n + "_mb", heads.titles[r], "MB", Kind::number, heads.width,
                            40 - static_cast<int>(r), runs[r].color,
                            "Run " + n + ", " + runs[r].name + ": the rank with the largest peak"});
        what_.push_back({What::size, r});
        if (r == 0) continue;
        columns_.push_back({"run" + n + "_difference_mb", n + " - 1", "MB", Kind::number, 6.5F,
                            20 - static_cast<int>(r), 0, "What run " + n + " holds more than run 1"});
        what_.push_back({What::difference, r});
        columns_.push_back({"run" + n + "_percent", n + " to 1", "%", Kind::number, 5.6F,
                            30 - static_cast<int>(r), 0, "The difference in percent of run 1"});
        what_.push_back({What::change, r});
    }
    Row peak{"peak allocated", std::vector<double>(runs.size(), kNoNumber), 0};
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (ranks[r] != nullptr) peak.bytes[r] = static_cast<double>(ranks[r]->peak_bytes);
    }
    rows_.push_back(std::move(peak));
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (ranks[r] == nullptr) continue;
        if (by == MemoryBy::category) {
            for (std::size_t c = 0; c < traces::kMemoryCategories; ++c) {
                if (ranks[r]->at_peak[c] == 0) continue;
                Row& row = row_named(spaced(traces::kMemoryCategoryNames[c]));
                row.swatch = category_color(static_cast<traces::MemoryCategory>(c));
                row.bytes[r] = static_cast<double>(ranks[r]->at_peak[c]);
            }
            continue;
        }
        for (const traces::MemoryHolder& holder : holders(*ranks[r], by)) {
            double& bytes = row_named(holder.name).bytes[r];
            bytes = (std::isnan(bytes) ? 0.0 : bytes) + static_cast<double>(holder.bytes);
        }
    }
    std::stable_sort(rows_.begin() + 1, rows_.end(), [](const Row& a, const Row& b) {
        const auto most = [](const Row& row) {
            double largest = 0;
            for (const double bytes : row.bytes)
                largest = std::isnan(bytes) ? largest : std::max(largest, bytes);
            return largest;
        };
        return most(a) > most(b);
    });
    double most = 0;  // bars of all runs have the same scale
    for (const double bytes : rows_.front().bytes) most = std::isnan(bytes) ? most : std::max(most, bytes);
    for (TableColumn& column : columns_) column.full = most / kMegabyte;
}

MemoryModel::Row& MemoryModel::row_named(const std::string& name) {
    const auto at =
        std::find_if(rows_.begin() + 1, rows_.end(), [&name](const Row& row) { return row.name == name; });
    if (at != rows_.end()) return *at;
    return rows_.emplace_back(Row{name, std::vector<double>(rows_.front().bytes.size(), kNoNumber), 0});
}

double MemoryModel::number(std::size_t row, std::size_t column) const {
    const Row& r = rows_[row];
    const auto or_zero = [](double bytes) { return std::isnan(bytes) ? 0.0 : bytes; };
    const double bytes = r.bytes[what_[column].run], first = r.bytes.front();
    switch (what_[column].what) {
        case What::name:
            return kNoNumber;
        case What::size:
            return bytes / kMegabyte;
        case What::difference:
            if (std::isnan(bytes) && std::isnan(first)) return kNoNumber;
            return (or_zero(bytes) - or_zero(first)) / kMegabyte;
        case What::change:
            return first > 0 && !std::isnan(bytes) ? 100 * (bytes - first) / first : kNoNumber;
    }
    return kNoNumber;
}

std::string MemoryModel::text(std::size_t row, std::size_t column) const {
    const Row& r = rows_[row];
    const double value = number(row, column);
    switch (what_[column].what) {
        case What::name:
            return r.name;
        case What::size:
            return std::isnan(value) ? "-" : format_decimal(value, 2);
        case What::difference: {
            if (std::isnan(value)) return "-";
            const std::string text = format_decimal(value, 2);
            return value > 0 && text != "0.00" ? "+" + text : text;
        }
        case What::change: {
            const double bytes = r.bytes[what_[column].run], first = r.bytes.front();
            return change_text(!std::isnan(bytes), bytes, !std::isnan(first), first, false);
        }
    }
    return {};
}

Color MemoryModel::ink(std::size_t row, std::size_t column) const {
    if (what_[column].what != What::difference && what_[column].what != What::change) return 0;
    const auto or_zero = [](double bytes) { return std::isnan(bytes) ? 0.0 : bytes; };
    const double more = or_zero(rows_[row].bytes[what_[column].run]) - or_zero(rows_[row].bytes.front());
    return more == 0 ? theme::text_dim() : more < 0 ? theme::good() : theme::bad();
}

}  // namespace shardscope::viewer
