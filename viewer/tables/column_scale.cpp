// See column_scale.h.
#include "viewer/tables/column_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "viewer/draw/format.h"

namespace shardscope::viewer::tables {
namespace {

constexpr std::size_t kSampled = 4096;  // rows
constexpr std::string_view kMebi = "MiB";
constexpr double kBytes = 1 << 20;  // in a MiB
constexpr double kLeast = 0.1;      // a column with smaller values keeps a smaller unit

struct WrittenUnit {
    double of;  // in the first unit of its kind
    std::string_view symbol;
};
struct UnitKind {
    std::array<WrittenUnit, 3> units;
    double most;  // a column with values from this on needs the next unit
};
constexpr UnitKind kKinds[] = {{{{{1, kMicro}, {1e3, "ms"}, {1e6, "s"}}}, 1e4},
                               {{{{1, kMebi}, {1024, "GiB"}, {1048576, "TiB"}}}, 1e5}};

bool is_of(const UnitKind& kind, const TableColumn& column) {
    return column.kind == TableColumn::Kind::number && column.unit.starts_with(kind.units[0].symbol);
}

double longest(const TableModel& model, std::size_t column) {
    const std::size_t step = 1 + model.rows() / kSampled;
    double most = 0;
    for (std::size_t row = 0; row < model.rows(); row += step) {
        const double number = std::abs(model.number(row, column));
        if (std::isfinite(number)) most = std::max(most, number);
    }
    return most;
}

const WrittenUnit& unit_for(const UnitKind& kind, double value) {
    for (const WrittenUnit& unit : kind.units)
        if (value < kind.most * unit.of) return unit;
    return kind.units.back();
}

int decimals_for(double largest) {
    return largest < 100 ? 3 : largest < 1000 ? 2 : 1;
}

}  // namespace

std::vector<ColumnScale> column_scales(const TableModel& model) {
    const auto& columns = model.columns();
    std::vector<ColumnScale> scales(columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c) scales[c].unit = columns[c].unit;
    if (!model.scales()) return scales;
    for (const UnitKind& kind : kKinds) {
        std::vector<double> most(columns.size(), 0);
        for (std::size_t c = 0; c < columns.size(); ++c)
            if (is_of(kind, columns[c])) most[c] = longest(model, c);
        const WrittenUnit& shared =
            unit_for(kind, most.empty() ? 0 : *std::max_element(most.begin(), most.end()));
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (most[c] == 0) continue;
            const WrittenUnit& unit = most[c] >= kLeast * shared.of ? shared : unit_for(kind, most[c]);
            if (unit.of == 1) continue;
            scales[c].of = unit.of;
            scales[c].decimals = decimals_for(most[c] / unit.of);
            scales[c].unit.replace(0, kind.units[0].symbol.size(), unit.symbol);
        }
    }
    return scales;
}

std::string scaled_text(const TableModel& model, std::size_t row, std::size_t column,
                        const ColumnScale& scale) {
    std::string text = model.text(row, column);
    const double number = model.number(row, column);
    const std::size_t first = text.find_first_of("0123456789");
    if (scale.of == 1 || !std::isfinite(number) || first == std::string::npos ||
        text.find_first_not_of("0123456789.,", first) != std::string::npos)
        return text;
    std::string before = text.substr(0, first);
    if (before.starts_with('<')) before.clear();  // a bound in the model's unit
    const double value = std::abs(number) / scale.of;
    const double least = std::pow(0.1, scale.decimals);
    if (number != 0 && value < least / 2) return before + "< " + draw::format_decimal(least, scale.decimals);
    return before + draw::format_decimal(value, scale.decimals);
}

std::string exact_text(const TableModel& model, std::size_t row, std::size_t column,
                       const ColumnScale& scale) {
    const double number = model.number(row, column);
    if (!std::isfinite(number)) return {};
    const std::string& unit = model.columns()[column].unit;
    if (scale.of != 1 && !unit.starts_with(kMebi)) return model.text(row, column) + " " + unit;
    if (!model.scales() || !unit.starts_with(kMebi)) return {};
    const double bytes = number * kBytes;
    if (std::abs(bytes) > kExactInteger) return {};
    return draw::format_count(std::llround(bytes)) + " bytes" + unit.substr(kMebi.size());
}

const std::vector<ColumnScale>& ColumnScales::of(const std::shared_ptr<const TableModel>& model) {
    if (model_ != model) {
        model_ = model;
        scales_ = column_scales(*model);
    }
    return scales_;
}

}  // namespace shardscope::viewer::tables
