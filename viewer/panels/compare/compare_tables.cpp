// See compare_tables.h.
#include "viewer/panels/compare/compare_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::CompareBy;
using traces::analysis::ComparedPart;
using traces::analysis::PartFigures;
using traces::analysis::PartsComparison;

constexpr float kLetter = 0.58F;  // width of a character, in font sizes: a little more than most need
constexpr double kMegabyte = 1024.0 * 1024.0;

// By run: what its figures per step are multiplied by.
std::vector<double> factors(const PartsComparison& comparison, bool per_step) {
    std::vector<double> all;
    for (const traces::analysis::RunColumn& run : comparison.whole.runs)
        all.push_back(per_step ? 1.0 : std::max(1.0, run.mean_steps));
    return all;
}

std::string signed_text(double value, int decimals) {
    std::string text = draw::format_decimal(value, decimals);
    return value > 0 && text != draw::format_decimal(0, decimals) ? "+" + text : text;
}

// The modules of all runs by name, as a tree.
struct Branch {
    const ComparedPart* part = nullptr;
    std::map<std::string, Branch, bool (*)(std::string_view, std::string_view)> children{
        tables::natural_less};
};

const std::vector<traces::analysis::MemoryHolder>& holders(const traces::analysis::RankMemory& rank,
                                                           MemoryBy by) {
    return by == MemoryBy::unit ? rank.units : by == MemoryBy::module ? rank.modules : rank.buffers;
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

const PartWords& words_of(CompareBy by) {
    static constexpr std::array<PartWords, traces::analysis::kCompareByNames.size()> kWords = {{
        {"Module", "modules", "Device time of what each module launches itself, without the modules in it",
         "ranges \"nn.Module: Class_n\" name them"},
        {"Kernel", "kernels", "Device time by kernel", "the profiler must record the device's activity"},
        {"Collective, unit", "collectives", "Device time of the collectives",
         "only runs on several ranks communicate"},
        {"Unit, phase", "FSDP units", "Device time of each unit's gathers and reductions",
         "FSDP's own ranges, or shardscope-train's units, name them"},
        {"Operator (itself)", "operators", "Device time of what each operator launches itself",
         "the profiler must record host ranges"},
    }};
    return kWords[static_cast<std::size_t>(by)];
}

// --- The columns of runs.

void RunColumns::compare(const std::vector<RunHead>& runs, const Compared& what) {
    const RunColumnHeads heads = run_column_heads(runs);
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::string n = fmt::format("{}", r + 1);
        const int after = static_cast<int>(r);
        add(tables::number_column("run" + n + "_" + what.key, heads.titles[r], what.unit, heads.width,
                                  40 - after, runs[r].color,
                                  "Run " + n + ", " + runs[r].name + ": " + what.meaning),
            r, what.decimals, what.value);
        if (r == 0) continue;
        columns_.push_back(tables::number_column(
            "run" + n + "_difference_" + what.key, n + " - 1", what.unit, 6.5F, 20 - after, 0,
            fmt::format("How much more run {} {} than run 1", n, what.more)));
        what_.push_back({What::difference, r, what.decimals, what.value, what.inside});
        columns_.push_back(tables::number_column("run" + n + "_percent", n + " to 1", "%", 5.6F, 30 - after,
                                                 0, what.change_meaning));
        what_.push_back({What::change, r, what.decimals, what.value, what.inside});
    }
}

void RunColumns::add(tables::TableColumn column, std::size_t run, int decimals, Value value) {
    columns_.push_back(std::move(column));
    what_.push_back({What::value, run, decimals, std::move(value), {}});
}

void RunColumns::share_scale(std::size_t rows) {
    double most = 0;
    for (std::size_t c = 1; c < columns_.size(); ++c) {
        for (std::size_t row = 0; columns_[c].bar != 0 && row < rows; ++row) {
            const double value = number(row, c);
            if (!std::isnan(value)) most = std::max(most, value);
        }
    }
    for (tables::TableColumn& column : columns_) column.full = most;
}

double RunColumns::number(std::size_t row, std::size_t column) const {
    if (column == 0) return tables::kNoNumber;
    const Column& c = what_[column];
    const RunValue own = c.value(row, c.run), first = c.value(row, 0);
    if (c.what == What::value) return own.present ? own.value : tables::kNoNumber;
    if (c.what == What::difference)
        return own.present || first.present ? own.value - first.value : tables::kNoNumber;
    if (!own.present || !first.present || std::isnan(own.value - first.value)) return tables::kNoNumber;
    if (first.value == 0) return own.value == 0 ? 0.0 : tables::kNoNumber;
    return 100 * (own.value - first.value) / first.value;
}

std::string RunColumns::text(std::size_t row, std::size_t column) const {
    const Column& c = what_[column];
    if (c.what == What::change) {
        const RunValue own = c.value(row, c.run), first = c.value(row, 0);
        return change_text(own.present, own.value, first.present, first.value,
                           c.inside && c.inside(row, c.run));
    }
    const double value = number(row, column);
    if (std::isnan(value)) return "-";
    if (c.what == What::difference) return signed_text(value, c.decimals);
    const bool whole = value == std::floor(value);
    return draw::format_decimal(value, c.decimals == kWholeOrTwo ? (whole ? 0 : 2) : c.decimals);
}

theme::Color RunColumns::ink(std::size_t row, std::size_t column) const {
    if (column == 0 || what_[column].what == What::value) return 0;
    const Column& c = what_[column];
    const RunValue own = c.value(row, c.run), first = c.value(row, 0);
    const bool judged = judge_missing_ || (own.present && first.present);
    const double more = own.value - first.value;
    if (!judged || more == 0 || (c.inside && c.inside(row, c.run))) return theme::text_dim();
    return more < 0 ? theme::good() : theme::bad();
}

// --- By name.

PartsModel::PartsModel(std::shared_ptr<const PartsComparison> comparison, const std::vector<RunHead>& runs,
                       bool per_step)
    : comparison_(std::move(comparison)) {
    const CompareBy by = comparison_->by;
    const std::string of = per_step ? " per step" : "";
    // A figure of the part, multiplied by the run's factor.
    const auto value = [this, factor = factors(*comparison_, per_step)](double PartFigures::*member,
                                                                        double unit) {
        return [this, factor, member, unit](std::size_t row, std::size_t run) {
            const PartFigures& figures = comparison_->parts[row].runs[run];
            return RunValue{figures.present, figures.*member * factor[run] / unit};
        };
    };
    columns_.push_back(
        {"name", std::string(words_of(by).title), "", tables::TableColumn::Kind::text, 0, 99, 0, "", 0, 18});
    figures_.compare(
        runs,
        {.key = "us",
         .unit = "\u00b5s" + of,
         .meaning = comparison_->on_host ? "host time, mean of the ranks" : "device time, mean of the ranks",
         .more = "takes",
         .change_meaning = "The difference in percent of run 1; ~: within the spread of the steps",
         .value = value(&PartFigures::us, 1),
         .inside = [this](std::size_t row, std::size_t run) {
             const PartFigures &a = comparison_->parts[row].runs.front(),
                               &b = comparison_->parts[row].runs[run];
             return a.present && b.present && a.us != b.us &&
                    traces::analysis::inside_spread(a.us, a.spread.spread, b.us, b.spread.spread);
         }});
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::string n = fmt::format("{}", r + 1);
        figures_.add(tables::number_column("run" + n + "_times", "Calls " + n, of.empty() ? "" : "per step",
                                           5, 8, 0, "How often"),
                     r, RunColumns::kWholeOrTwo, value(&PartFigures::times, 1));
        if (by == CompareBy::collective || by == CompareBy::unit)
            figures_.add(tables::number_column("run" + n + "_mb", "Data " + n, "MiB" + of, 6, 9, 0,
                                               "Bytes of full buffers"),
                         r, 2, value(&PartFigures::bytes, kMegabyte));
        figures_.add(tables::number_column("run" + n + "_spread_us", "Spread " + n, "\u00b5s", 5.6F, 2, 0,
                                           "Half the interquartile range of the steps"),
                     r, 1, [this](std::size_t row, std::size_t run) {
                         const PartFigures& figures = comparison_->parts[row].runs[run];
                         return RunValue{figures.present, figures.spread.spread};
                     });
    }
    figures_.share_scale(rows());
}

std::string PartsModel::text(std::size_t row, std::size_t column) const {
    return column == 0 ? comparison_->parts[row].name : figures_.text(row, column);
}

// --- Modules.

ComparedModules::ComparedModules(const std::shared_ptr<const PartsComparison>& comparison,
                                 const std::vector<RunHead>& runs, bool per_step)
    : runs_(runs.size()) {
    build(*comparison, factors(*comparison, per_step));
    const std::string unit = per_step ? "\u00b5s per step" : "\u00b5s";
    const auto value = [this](double Sums::*member) {
        return [this, member](std::size_t row, std::size_t run) {
            const Sums& sums = sums_[row * runs_ + run];
            return RunValue{sums.present, sums.*member};
        };
    };
    columns_.push_back({"module", std::string(words_of(CompareBy::module).title), "",
                        tables::TableColumn::Kind::text, 0, 99, 0, ""});
    figures_.compare(runs,
                     {.key = "us",
                      .unit = unit,
                      .meaning = comparison->on_host ? "host time in it, modules inside included"
                                                     : "device time launched in it, modules inside included",
                      .more = "takes",
                      .change_meaning = "The difference in percent of run 1",
                      .value = value(&Sums::total)});
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::string n = fmt::format("{}", r + 1);
        figures_.add(tables::number_column("run" + n + "_self_us", "Self " + n, unit, 6, 8, 0,
                                           "Without modules inside"),
                     r, 1, value(&Sums::own));
        figures_.add(tables::number_column("run" + n + "_times", "Calls " + n, per_step ? "per step" : "", 5,
                                           6, 0, "How often"),
                     r, RunColumns::kWholeOrTwo, value(&Sums::times));
    }
    figures_.share_scale(rows());
}

void ComparedModules::build(const PartsComparison& comparison, const std::vector<double>& factor) {
    Branch root;
    for (const ComparedPart& part : comparison.parts) {
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

std::string ComparedModules::text(std::size_t row, std::size_t column) const {
    return column == 0 ? node(row).path : figures_.text(row, column);
}

// --- Memory at the peaks.

const traces::analysis::RankMemory* largest_rank(const traces::analysis::MemoryReport& report) {
    const auto most =
        std::max_element(report.ranks.begin(), report.ranks.end(),
                         [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
    return most == report.ranks.end() || most->peak_bytes <= 0 ? nullptr : &*most;
}

MemoryModel::MemoryModel(const std::vector<RunHead>& runs,
                         const std::vector<const traces::analysis::RankMemory*>& ranks, MemoryBy by) {
    columns_.push_back({"name", "At the peak", "", tables::TableColumn::Kind::text, 0, 99, 0, ""});
    figures_.compare(runs, {.key = "mb",
                            .unit = "MiB",
                            .meaning = "the rank with the largest peak",
                            .more = "has allocated",
                            .change_meaning = "The difference in percent of run 1",
                            .decimals = 2,
                            .value = [this](std::size_t row, std::size_t run) {
                                const RunValue& bytes = rows_[row].bytes[run];
                                return RunValue{bytes.present, bytes.value / kMegabyte};
                            }});
    rows_.push_back({"peak allocated", std::vector<RunValue>(runs.size()), 0});
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (ranks[r] == nullptr) continue;
        rows_.front().bytes[r] = {true, static_cast<double>(ranks[r]->peak_bytes)};
        for (std::size_t c = 0; by == MemoryBy::category && c < traces::schema::kMemoryCategories; ++c) {
            if (ranks[r]->at_peak[c] == 0) continue;
            value_of(draw::spaced(traces::schema::kMemoryCategoryNames[c]), r,
                     theme::category_color(static_cast<traces::schema::MemoryCategory>(c))) = {
                true, static_cast<double>(ranks[r]->at_peak[c])};
        }
        if (by == MemoryBy::category) continue;
        for (const traces::analysis::MemoryHolder& holder : holders(*ranks[r], by)) {
            RunValue& bytes = value_of(holder.name, r);
            bytes = {true, bytes.value + static_cast<double>(holder.bytes)};
        }
    }
    std::stable_sort(rows_.begin() + 1, rows_.end(), [](const Row& a, const Row& b) {
        const auto most = [](const Row& row) {
            double largest = 0;
            for (const RunValue& bytes : row.bytes) largest = std::max(largest, bytes.value);
            return largest;
        };
        return most(a) > most(b);
    });
    figures_.share_scale(rows());
}

RunValue& MemoryModel::value_of(const std::string& name, std::size_t run, theme::Color swatch) {
    auto at =
        std::find_if(rows_.begin() + 1, rows_.end(), [&name](const Row& row) { return row.name == name; });
    if (at == rows_.end())
        at = rows_.insert(at, {name, std::vector<RunValue>(rows_.front().bytes.size()), swatch});
    return at->bytes[run];
}

std::string MemoryModel::text(std::size_t row, std::size_t column) const {
    return column == 0 ? rows_[row].name : figures_.text(row, column);
}

}  // namespace shardscope::viewer::panels
