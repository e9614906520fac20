// See compare_parts_rows.h.
#include "viewer/panels/compare/compare_parts_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer {
namespace {

using traces::CompareBy;
using traces::ComparedPart;
using traces::PartFigures;
using traces::PartsComparison;

constexpr float kLetter = 0.58F;  // width of a character, in font sizes: a little more than most need

// By run: the factor of figures per step.
std::vector<double> factors(const PartsComparison& comparison, bool per_step) {
    std::vector<double> all;
    for (const traces::RunColumn& run : comparison.whole.runs)
        all.push_back(per_step ? 1.0 : std::max(1.0, run.mean_steps));
    return all;
}

std::string title_of_parts(CompareBy by) {
    switch (by) {
        case CompareBy::module:
            return "Module";
        case CompareBy::kernel:
            return "Kernel";
        case CompareBy::collective:
            return "Collective, unit";
        case CompareBy::unit:
            return "Unit, phase";
        case CompareBy::operation:
            return "Operator (itself)";
    }
    return {};
}

TableColumn number_column(std::string id, std::string title, std::string unit, float width, int priority,
                          std::string help, Color bar = 0) {
    return {std::move(id), std::move(title), std::move(unit), TableColumn::Kind::number, width, priority,
            bar,           std::move(help)};
}

// Bars of all runs have the same scale.
void share_scale(std::vector<TableColumn>& columns, const TableModel& model) {
    double most = 0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        if (columns[c].bar == 0) continue;
        for (std::size_t row = 0; row < model.rows(); ++row) {
            const double value = model.number(row, c);
            if (!std::isnan(value)) most = std::max(most, value);
        }
    }
    for (TableColumn& column : columns) column.full = most;
}

double percent_of(bool present, double value, bool first_present, double first) {
    if (!present || !first_present || std::isnan(value - first)) return kNoNumber;
    if (first == 0) return value == 0 ? 0.0 : kNoNumber;
    return 100 * (value - first) / first;
}

Color change_ink(double difference, bool inside) {
    if (inside || difference == 0) return theme::text_dim();
    return difference < 0 ? theme::good() : theme::bad();
}

std::string signed_text(double value, int decimals) {
    std::string text = format_decimal(value, decimals);
    return value > 0 && text != format_decimal(0, decimals) ? "+" + text : text;
}

}  // namespace

RunColumnHeads run_column_heads(const std::vector<RunHead>& runs) {
    const float most = runs.size() <= 2 ? 13.0F : runs.size() == 3 ? 10.5F : 8.0F;
    RunColumnHeads heads;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        heads.titles.push_back(fmt::format("{}: {}", r + 1, runs[r].name));
        heads.width = std::max(heads.width, kLetter * static_cast<float>(heads.titles.back().size()));
    }
    if (heads.width <= most) return heads;
    heads.width = 8;
    for (std::size_t r = 0; r < runs.size(); ++r) heads.titles[r] = fmt::format("Run {}", r + 1);
    return heads;
}

std::string change_text(bool present, double value, bool first_present, double first, bool inside) {
    if (!present && !first_present) return "-";
    if (!first_present || (first == 0 && value > 0)) return "new";
    if (!present) return "gone";
    if (std::isnan(value - first)) return "-";
    return signed_text(first == 0 ? 0.0 : 100 * (value - first) / first, 1) + (inside ? " ~" : "");
}

// --- by name ---------------------------------------------------------------------------------------

PartsModel::PartsModel(std::shared_ptr<const PartsComparison> comparison, const std::vector<RunHead>& runs,
                       bool per_step)
    : comparison_(std::move(comparison)), factor_(factors(*comparison_, per_step)) {
    const CompareBy by = comparison_->by;
    const std::string of = per_step ? " a step" : "";
    const RunColumnHeads heads = run_column_heads(runs);
    add(What::name, 0, {"name", title_of_parts(by), "", TableColumn::Kind::text, 0, 99, 0, "", 0, 18});
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::string n = fmt::format("{}", r + 1);
        add(What::time, r,
            number_column(
                "run" + n + "_us", heads.titles[r], "\u00b5s" + of, heads.width, 40 - static_cast<int>(r),
                "Run " + n + ", " + runs[r].name + (comparison_->on_host ? ": host time" : ": device time") +
                    " of one rank in the mean",
                runs[r].color));
        if (r == 0) continue;
        add(What::difference, r,
            number_column("run" + n + "_difference_us", n + " - 1", "\u00b5s" + of, 6.5F,
                          20 - static_cast<int>(r), "What run " + n + " takes more than run 1"));
        add(What::change, r,
            number_column("run" + n + "_percent", n + " to 1", "%", 5.6F, 30 - static_cast<int>(r),
                          "The difference in percent of run 1; ~: within the spread of the steps"));
    }
    const bool with_bytes = by == CompareBy::collective || by == CompareBy::unit;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::string n = fmt::format("{}", r + 1);
        add(What::times, r,
            number_column("run" + n + "_times", "Calls " + n, of.empty() ? "" : "a step", 5, 8, "How often"));
        if (with_bytes)
            add(What::bytes, r,
                number_column("run" + n + "_mb", "Data " + n, "MB" + of, 6, 9, "Bytes of full buffers"));
        add(What::spread, r,
            number_column("run" + n + "_spread_us", "Spread " + n, "\u00b5s", 5.6F, 2,
                          "Half the interquartile range of the steps"));
    }
    share_scale(columns_, *this);
}

void PartsModel::add(What what, std::size_t run, TableColumn column) {
    what_.push_back({what, run});
    columns_.push_back(std::move(column));
}

bool PartsModel::inside(const ComparedPart& part, std::size_t run) const {
    const PartFigures &a = part.runs.front(), &b = part.runs[run];
    return a.present && b.present && a.us != b.us &&
           traces::inside_spread(a.us, a.spread.spread, b.us, b.spread.spread);
}

double PartsModel::number(std::size_t row, std::size_t column) const {
    const ComparedPart& part = comparison_->parts[row];
    const std::size_t run = what_[column].run;
    const PartFigures &figures = part.runs[run], &first = part.runs.front();
    const double factor = factor_[run];
    const auto known = [&](double value) { return figures.present ? value : kNoNumber; };
    switch (what_[column].what) {
        case What::name:
            return kNoNumber;
        case What::time:
            return known(figures.us * factor);
        case What::difference:
            if (!figures.present && !first.present) return kNoNumber;
            return figures.us * factor - first.us * factor_[0];
        case What::change:
            return percent_of(figures.present, figures.us * factor, first.present, first.us * factor_[0]);
        case What::times:
            return known(figures.times * factor);
        case What::bytes:
            return known(figures.bytes * factor / (1024.0 * 1024.0));
        case What::spread:
            return known(figures.spread.spread);
    }
    return kNoNumber;
}

std::string PartsModel::text(std::size_t row, std::size_t column) const {
    const ComparedPart& part = comparison_->parts[row];
    const std::size_t run = what_[column].run;
    const PartFigures &figures = part.runs[run], &first = part.runs.front();
    const double value = number(row, column);
    switch (what_[column].what) {
        case What::name:
            return part.name;
        case What::change:
            return change_text(figures.present, figures.us * factor_[run], first.present,
                               first.us * factor_[0], inside(part, run));
        case What::difference:
            return std::isnan(value) ? "-" : signed_text(value, 1);
        case What::times: {
            const bool whole = value == std::floor(value);
            return std::isnan(value) ? "-" : format_decimal(value, whole ? 0 : 2);
        }
        case What::bytes:
            return std::isnan(value) ? "-" : format_decimal(value, 2);
        case What::time:
        case What::spread:
            break;
    }
    return std::isnan(value) ? "-" : format_decimal(value, 1);
}

Color PartsModel::ink(std::size_t row, std::size_t column) const {
    const What what = what_[column].what;
    if (what != What::difference && what != What::change) return 0;
    const ComparedPart& part = comparison_->parts[row];
    const std::size_t run = what_[column].run;
    // A part that only one of the runs has is neither better nor worse.
    if (!part.runs[run].present || !part.runs.front().present) return theme::text_dim();
    return change_ink(part.runs[run].us * factor_[run] - part.runs.front().us * factor_[0],
                      inside(part, run));
}

// --- modules ---------------------------------------------------------------------------------------

namespace {

// The modules of all runs by name, as a tree.
struct Branch {
    const ComparedPart* part = nullptr;
    std::map<std::string, Branch, bool (*)(std::string_view, std::string_view)> children{natural_less};
};

}  // namespace

ComparedModules::ComparedModules(std::shared_ptr<const PartsComparison> comparison,
                                 const std::vector<RunHead>& runs, bool per_step)
    : comparison_(std::move(comparison)), runs_(runs.size()) {
    const std::string unit = per_step ? "\u00b5s a step" : "\u00b5s";
    const RunColumnHeads heads = run_column_heads(runs);
    add(What::path, 0, {"module", "Module", "", TableColumn::Kind::text, 0, 99, 0, ""});
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::string n = fmt::format("{}", r + 1);
        add(What::total, r,
            number_column("run" + n + "_us", heads.titles[r], unit, heads.width, 40 - static_cast<int>(r),
                          "Run " + n + ", " + runs[r].name +
                              (comparison_->on_host ? ": host time in it" : ": device time launched in it") +
                              ", modules inside included",
                          runs[r].color));
        if (r == 0) continue;
        add(What::difference, r,
            number_column("run" + n + "_difference_us", n + " - 1", unit, 6.5F, 20 - static_cast<int>(r),
                          "What run " + n + " takes more than run 1"));
        add(What::change, r,
            number_column("run" + n + "_percent", n + " to 1", "%", 5.6F, 30 - static_cast<int>(r),
                          "The difference in percent of run 1"));
    }
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::string n = fmt::format("{}", r + 1);
        add(What::own, r,
            number_column("run" + n + "_self_us", "Self " + n, unit, 6, 8, "Without modules inside"));
        add(What::times, r,
            number_column("run" + n + "_times", "Calls " + n, per_step ? "a step" : "", 5, 6, "How often"));
    }
    build(factors(*comparison_, per_step));
    share_scale(columns_, *this);
}

void ComparedModules::add(What what, std::size_t run, TableColumn column) {
    what_.push_back({what, run});
    columns_.push_back(std::move(column));
}

void ComparedModules::build(const std::vector<double>& factor) {
    Branch root;
    for (const ComparedPart& part : comparison_->parts) {
        Branch* at = &root;
        for (std::size_t from = 0; from <= part.name.size();) {
            const std::size_t to = std::min(part.name.find('/', from), part.name.size());
            at = &at->children[part.name.substr(from, to - from)];
            from = to + 1;
        }
        at->part = &part;
    }
    const auto place = [&](const auto& self, const Branch& branch, int depth) -> void {
        for (const auto& [name, child] : branch.children) {
            const std::size_t row = rows();
            add_node(name, depth);
            sums_.resize(rows() * runs_);
            for (std::size_t r = 0; r < runs_ && child.part != nullptr; ++r) {
                const PartFigures& figures = child.part->runs[r];
                if (std::isnan(figures.us)) continue;
                sums_[row * runs_ + r] = {figures.present, figures.us * factor[r], figures.us * factor[r],
                                          figures.times * factor[r]};
            }
            self(self, child, depth + 1);
            if (depth == 0) continue;
            const std::size_t above = *parent(row);
            for (std::size_t r = 0; r < runs_; ++r) {
                const Sums& own = sums_[row * runs_ + r];
                sums_[above * runs_ + r].total += own.total;
                sums_[above * runs_ + r].present |= own.present;
            }
        }
    };
    place(place, root, 0);
}

double ComparedModules::number(std::size_t row, std::size_t column) const {
    const std::size_t run = what_[column].run;
    const Sums &sums = sums_[row * runs_ + run], &first = sums_[row * runs_];
    switch (what_[column].what) {
        case What::path:
            return kNoNumber;
        case What::total:
            return sums.present ? sums.total : kNoNumber;
        case What::difference:
            return sums.present || first.present ? sums.total - first.total : kNoNumber;
        case What::change:
            return percent_of(sums.present, sums.total, first.present, first.total);
        case What::own:
            return sums.present ? sums.own : kNoNumber;
        case What::times:
            return sums.present ? sums.times : kNoNumber;
    }
    return kNoNumber;
}

std::string ComparedModules::text(std::size_t row, std::size_t column) const {
    const std::size_t run = what_[column].run;
    const Sums &sums = sums_[row * runs_ + run], &first = sums_[row * runs_];
    const double value = number(row, column);
    switch (what_[column].what) {
        case What::path:
            return node(row).path;
        case What::change:
            return change_text(sums.present, sums.total, first.present, first.total, false);
        case What::difference:
            return std::isnan(value) ? "-" : signed_text(value, 1);
        case What::times:
            return std::isnan(value) ? "-" : format_decimal(value, value == std::floor(value) ? 0 : 2);
        case What::total:
        case What::own:
            break;
    }
    return std::isnan(value) ? "-" : format_decimal(value, 1);
}

Color ComparedModules::ink(std::size_t row, std::size_t column) const {
    const What what = what_[column].what;
    if (what != What::difference && what != What::change) return 0;
    const Sums &sums = sums_[row * runs_ + what_[column].run], &first = sums_[row * runs_];
    if (!sums.present || !first.present) return theme::text_dim();
    return change_ink(sums.total - first.total, false);
}

}  // namespace shardscope::viewer
