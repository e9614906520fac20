// See area_table.h.
#include "viewer/timeline/area_table.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::timeline {
namespace {

using traces::analysis::Unit;

std::string text_of(const traces::store::Cell& cell) {
    const auto* text = std::get_if<std::string>(&cell);
    return text != nullptr ? *text : std::string("(none)");
}

double number_of(const traces::store::Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
    const auto* real = std::get_if<double>(&cell);
    return real != nullptr ? *real : tables::kNoNumber;
}

struct Look {
    std::string_view key;
    float width = 5.4F;
    int priority = 5;
    bool of_communication = false;
};
constexpr Look kLooks[] = {{"count", 4.4F, 9},
                           {"sum_us", 6.6F, 9},
                           {"union_us", 6.2F, 7},
                           {"mean_us", 5.4F, 6},
                           {"min_us", 5.2F, 3},
                           {"max_us", 5.6F, 5},
                           {"exposed_us", 5.8F, 4, true},
                           {"exposed_percent", 4.4F, 8, true}};

}  // namespace

AreaTable::AreaTable(std::shared_ptr<const traces::analysis::AreaReport> report, const std::string& by)
    : tables::LazyTable(report->groups.size()), report_(std::move(report)) {
    for (const auto& field : traces::analysis::area_fields()) {
        const auto cell = [this, of = field.of](std::size_t row) { return of(group(row)); };
        const std::string key(field.key), help(field.meaning);
        if (field.unit == Unit::text) {
            cells_.add(tables::text_column(key, by, 0, 10, help),
                       [cell](std::size_t row) { return text_of(cell(row)); });
            continue;
        }
        const bool percent = field.unit == Unit::percent;
        const std::string unit = field.unit == Unit::us ? tables::kMicro : percent ? "%" : "";
        const auto look =
            std::find_if(std::begin(kLooks), std::end(kLooks), [&](const Look& l) { return l.key == key; });
        if (look->of_communication && report_->all.communication == 0) continue;
        const theme::Color bar = key == "sum_us" ? theme::accent() : theme::Color{0};
        cells_.add(tables::number_column(key, std::string(field.title), unit, look->width, look->priority,
                                         bar, help),
                   field.unit == Unit::count ? 0
                   : percent                 ? 2
                                             : 1,
                   [cell](std::size_t row) { return number_of(cell(row)); });
    }
}

std::string area_text(const traces::analysis::AreaGroup& all) {
    if (all.count == 0) return "no events";
    const auto time = [](std::int64_t ns) { return draw::format_duration(static_cast<double>(ns)); };
    std::string text = fmt::format("{} event{}", draw::format_count(all.count), all.count == 1 ? "" : "s");
    if (all.cut > 0) text += fmt::format(" ({} cut)", draw::format_count(all.cut));
    text += fmt::format(", sum {}, union {}", time(all.sum), time(all.busy));
    if (all.communication > 0) {
        text += fmt::format(", communication {} ({} exposed)", time(all.communication),
                            draw::format_percent(all.exposed_percent()));
    }
    return text;
}

}  // namespace shardscope::viewer::timeline
