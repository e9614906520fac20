// See compare_rows.h.
#include "viewer/panels/compare/compare_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::Comparison;
using traces::analysis::RunColumn;

constexpr std::size_t kTitleSettings = 3;

// The settings that tell most about a run, the most informative first; others follow in the file's order.
constexpr std::array<std::string_view, 9> kTellingKeys = {"parallel.mode",
                                                          "fsdp.sharding_strategy",
                                                          "fsdp.wrap",
                                                          "fsdp.layout",
                                                          "fsdp.backward_prefetch",
                                                          "run.ranks",
                                                          "model.type",
                                                          "model.width",
                                                          "data.batch"};
// Facts that differ from run to run but are not choices.
constexpr std::array<std::string_view, 4> kFactKeys = {"run.trace", "run.overwrite", "run.counters",
                                                       "memory.counted"};
constexpr std::array<std::string_view, 11> kJobSections = {"run",       "model",      "data",      "parallel",
                                                           "fsdp",      "ddp",        "precision", "memory",
                                                           "optimizer", "checkpoint", "sim"};

bool is_setting(std::string_view key) {  // a choice of the job, not a fact of the run
    if (std::find(kFactKeys.begin(), kFactKeys.end(), key) != kFactKeys.end()) return false;
    const std::string_view section = key.substr(0, key.find('.'));
    return section.size() < key.size() &&
           std::find(kJobSections.begin(), kJobSections.end(), section) != kJobSections.end();
}

std::size_t rank_of(std::string_view key) {
    const auto at = std::find(kTellingKeys.begin(), kTellingKeys.end(), key);
    return static_cast<std::size_t>(at - kTellingKeys.begin());
}

const std::string* value_of(const RunColumn& run, std::string_view key) {
    const auto at =
        std::find_if(run.config.begin(), run.config.end(), [&](const auto& p) { return p.first == key; });
    return at == run.config.end() || at->second.empty() ? nullptr : &at->second;
}

// The runs that are jobs of ours. Every job has a number of ranks; if the comparison contains that key at
// all, a run without it is a foreign trace, which has no settings that could differ.
struct Jobs {
    std::vector<const RunColumn*> runs;
    bool foreign = false;  // jobs are compared with foreign traces

    // A comparison lists settings that differ between its runs; this checks between its jobs only.
    bool differ_in(std::string_view key) const {
        if (!foreign) return true;
        return std::any_of(runs.begin(), runs.end(), [&](const RunColumn* run) {
            const std::string *first = value_of(*runs.front(), key), *value = value_of(*run, key);
            return (first == nullptr) != (value == nullptr) || (first != nullptr && *first != *value);
        });
    }
};

Jobs jobs_of(const Comparison& comparison) {
    constexpr std::string_view kOfEveryJob = "run.ranks";
    const auto names_it = [&](const RunColumn& run) { return value_of(run, kOfEveryJob) != nullptr; };
    const bool named = std::any_of(comparison.runs.begin(), comparison.runs.end(), names_it);
    Jobs jobs;
    for (const RunColumn& run : comparison.runs) {
        if (!named || names_it(run)) {
            jobs.runs.push_back(&run);
        } else {
            jobs.foreign = true;
        }
    }
    return jobs;
}

std::string title_of(const RunColumn& run, const Jobs& jobs) {
    const auto mode = std::find_if(run.config.begin(), run.config.end(),
                                   [](const auto& setting) { return setting.first == "parallel.mode"; });
    // A setting of fsdp does not apply to a ddp run, and vice versa.
    const auto applies = [&](std::string_view key) {
        if (mode == run.config.end()) return true;
        return !(key.starts_with("fsdp.") && mode->second != "fsdp") &&
               !(key.starts_with("ddp.") && mode->second != "ddp");
    };
    std::vector<std::pair<std::string, std::string>> settings;
    for (const auto& [key, value] : run.config) {
        if (is_setting(key) && applies(key) && !value.empty() && jobs.differ_in(key))
            settings.emplace_back(key, value);
    }
    traces::schema::sort_rows(
        settings, [](const auto& a, const auto& b) { return rank_of(a.first) < rank_of(b.first); });
    std::string title;
    for (std::size_t i = 0; i < std::min(settings.size(), kTitleSettings); ++i) {
        const std::string_view key = settings[i].first;
        title +=
            fmt::format("{}{}={}", i > 0 ? "  " : "", key.substr(key.rfind('.') + 1), settings[i].second);
    }
    return title;
}

// Builds rows of one comparison; smaller is better for every figure unless stated otherwise.
class RowBuilder {
  public:
    explicit RowBuilder(const Comparison& comparison) : runs_(comparison.runs) {}

    void heading(std::string label) { rows_.push_back({std::move(label), true, {}}); }

    using Get = std::function<double(const RunColumn&)>;
    using Print = std::function<std::string(double)>;
    enum class Judge { smaller_is_better, none, no_change };  // no_change: not even told

    // Bars of the rows that follow are fractions of this; 0: of the largest in the row.
    void scale(double full) { full_ = full; }

    // Whether a run recorded anything for the rows that follow.
    using Told = std::function<bool(const RunColumn&)>;
    void told(Told told) { told_ = std::move(told); }

    // `spread`: the figure's spread over a run's steps; without one every difference counts. A figure that a
    // run does not know is NaN.
    void figure(std::string label, const Get& get, const Print& print, Judge judge = Judge::smaller_is_better,
                const Get& spread = {}) {
        CompareRow row{std::move(label), false, {}};
        double full = full_;
        const auto known = [&](const RunColumn& run) { return told_(run) && !std::isnan(get(run)); };
        for (const RunColumn& run : runs_) full = std::max(full, known(run) ? get(run) : 0.0);
        for (const RunColumn& run : runs_) {
            if (!known(run)) {
                row.cells.push_back({"-", "", Tone::neutral, 0});
                continue;
            }
            const double value = get(run);
            CompareCell cell{print(value), "", Tone::neutral, full > 0 ? value / full : 0.0};
            if (judge != Judge::no_change && &run != &runs_.front() && known(runs_.front()))
                judge_change(cell, run, get, judge, spread);
            row.cells.push_back(std::move(cell));
        }
        rows_.push_back(std::move(row));
    }

    void text(std::string label, const std::function<std::string(const RunColumn&)>& get) {
        CompareRow row{std::move(label), false, {}};
        for (const RunColumn& run : runs_) row.cells.push_back({get(run), "", Tone::neutral, 0});
        rows_.push_back(std::move(row));
    }

    std::vector<CompareRow> take() { return std::move(rows_); }

  private:
    void judge_change(CompareCell& cell, const RunColumn& run, const Get& get, Judge judge,
                      const Get& spread) const {
        const RunColumn& first = runs_.front();
        const double value = get(run), base = get(first);
        cell.change = draw::format_change(value, base);
        const bool none = cell.change == "0.0 %";
        if (spread && !none && traces::analysis::inside_spread(base, spread(first), value, spread(run))) {
            cell.change += " ~";
        } else if (judge == Judge::smaller_is_better && !none) {
            cell.tone = value < base ? Tone::better : Tone::worse;
        }
    }

    const std::vector<RunColumn>& runs_;
    std::vector<CompareRow> rows_;
    double full_ = 0;
    Told told_ = [](const RunColumn&) { return true; };
};

std::string print_us(double us) {
    return draw::format_duration(us * 1e3);
}
std::string print_bytes(double bytes) {
    return draw::format_mb(static_cast<std::int64_t>(bytes));
}
std::string print_percent(double percent) {
    return draw::format_percent(percent);
}
std::string print_number(double number) {
    return draw::format_decimal(number,
                                number == static_cast<double>(static_cast<std::int64_t>(number)) ? 0 : 1);
}

bool any_run(const Comparison& comparison, const std::function<double(const RunColumn&)>& get) {
    return std::any_of(comparison.runs.begin(), comparison.runs.end(),
                       [&](const RunColumn& r) { return get(r) != 0 && !std::isnan(get(r)); });
}

void add_settings(const Comparison& comparison, RowBuilder& rows) {
    std::vector<std::string> keys;
    const Jobs jobs = jobs_of(comparison);
    for (const RunColumn* run : jobs.runs) {
        for (const auto& [key, value] : run->config) {
            if (is_setting(key) && jobs.differ_in(key) &&
                std::find(keys.begin(), keys.end(), key) == keys.end())
                keys.push_back(key);
        }
    }
    if (keys.empty()) return;
    traces::schema::sort_rows(keys, [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
    rows.heading("Settings that differ");
    for (const std::string& key : keys) {
        rows.text(key, [&](const RunColumn& run) {
            const std::string* value = value_of(run, key);
            return value == nullptr ? std::string("-") : *value;
        });
    }
}

void add_memory(const Comparison& comparison, RowBuilder& rows) {
    if (largest_peak(comparison) == 0) return;  // no run recorded its allocations
    rows.heading("Memory, largest rank");
    rows.told([](const RunColumn& r) { return r.peak_bytes > 0; });
    const auto space_of = [](const RunColumn& r) { return std::string(name(r.space)); };
    const auto on_host = [](const RunColumn& r) { return r.space == traces::schema::MemorySpace::host; };
    if (std::any_of(comparison.runs.begin(), comparison.runs.end(), on_host))
        rows.text("Memory of the", space_of);
    rows.scale(static_cast<double>(largest_peak(comparison)));
    rows.figure(
        "Peak allocated", [](const RunColumn& r) { return static_cast<double>(r.peak_bytes); }, print_bytes);
    for (std::size_t c = 0; c < traces::schema::kMemoryCategories; ++c) {
        const auto get = [c](const RunColumn& r) { return static_cast<double>(r.at_peak[c]); };
        if (!any_run(comparison, get)) continue;
        rows.figure("  " + draw::spaced(traces::schema::kMemoryCategoryNames[c]), get, print_bytes,
                    RowBuilder::Judge::none);
    }
}

void add_collectives(const Comparison& comparison, RowBuilder& rows) {
    for (int op = 0; op < traces::schema::kOperations; ++op) {
        const auto of = [op](const RunColumn& run) -> const traces::analysis::OperationStats* {
            const auto it = std::find_if(run.collectives.begin(), run.collectives.end(),
                                         [op](const auto& s) { return static_cast<int>(s.operation) == op; });
            return it == run.collectives.end() ? nullptr : &*it;
        };
        const auto count = [&](const RunColumn& run) { return of(run) ? of(run)->count_per_step : 0.0; };
        const auto bytes = [&](const RunColumn& run) {
            if (!of(run)) return 0.0;
            return of(run)->bytes > 0 ? of(run)->bytes_per_step : std::numeric_limits<double>::quiet_NaN();
        };
        if (!any_run(comparison, count)) continue;
        const std::string name(traces::schema::kOperationNames[static_cast<std::size_t>(op)]);
        rows.figure(name + ", count", count, print_number, RowBuilder::Judge::none);
        rows.figure(name + ", data", bytes, print_bytes, RowBuilder::Judge::none);
    }
}

}  // namespace

std::string file_title(const std::string& path) {
    std::string name = path.substr(path.find_last_of('/') + 1);
    for (const std::string_view suffix : {".gz", ".sqlite", ".json", ".pt.trace", ".pickle"}) {
        if (name.size() > suffix.size() && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    }
    return name;
}

std::vector<std::string> run_titles(const Comparison& comparison) {
    std::vector<std::string> titles;
    const Jobs jobs = jobs_of(comparison);
    for (const RunColumn& run : comparison.runs) {
        const std::string title = title_of(run, jobs);
        titles.push_back(title.empty() ? file_title(run.file) : title);
    }
    std::vector<std::string> distinct = titles;
    for (std::size_t i = 0; i < titles.size(); ++i) {
        const std::string file = file_title(comparison.runs[i].file);
        if (std::count(titles.begin(), titles.end(), titles[i]) > 1 && titles[i] != file)
            distinct[i] += "  (" + file + ")";
    }
    return distinct;
}

std::vector<CompareRow> compare_rows(const Comparison& comparison, const std::vector<bool>& stepped) {
    if (comparison.runs.empty()) return {};
    RowBuilder rows(comparison);
    add_settings(comparison, rows);

    add_memory(comparison, rows);
    constexpr auto kJudge = RowBuilder::Judge::smaller_is_better;
    constexpr auto kNoJudge = RowBuilder::Judge::none;
    const auto step_spread = [](const RunColumn& r) { return r.spread_step_us; };
    // If only some runs have steps, those without have no figures per step; if none has, whole traces are
    // compared.
    const bool any_stepped = std::find(stepped.begin(), stepped.end(), true) != stepped.end();
    const bool whole = !stepped.empty() && !any_stepped;
    rows.heading(whole ? "Time of the whole trace, mean over ranks" : "Time of a step, mean over ranks");
    const auto has_steps = [&](const RunColumn& run) {
        const auto at = static_cast<std::size_t>(&run - comparison.runs.data());
        return run.steps > 0 && (!any_stepped || (at < stepped.size() && stepped[at]));
    };
    rows.told(has_steps);
    rows.text("Steps in the selection", [&](const RunColumn& r) {
        return has_steps(r) && !whole ? draw::format_count(r.steps) : "none";
    });
    double longest_step = 0;
    for (const RunColumn& run : comparison.runs) {
        longest_step =
            std::max(longest_step, has_steps(run) ? std::max(run.average_step_us, run.median_step_us) : 0.0);
    }
    rows.scale(longest_step);
    rows.figure(
        whole ? "Whole trace" : "Median step time", [](const RunColumn& r) { return r.median_step_us; },
        print_us, kJudge, step_spread);
    if (!whole) {
        rows.figure(
            "Average step time", [](const RunColumn& r) { return r.average_step_us; }, print_us, kJudge,
            step_spread);
        rows.figure("Spread", step_spread, print_us, RowBuilder::Judge::no_change);
    }
    for (std::size_t c = 0; c < traces::analysis::kTimeCategories; ++c) {
        const auto get = [c](const RunColumn& r) { return r.categories_us[c]; };
        const auto spread = [c](const RunColumn& r) { return r.categories_spread[c].spread; };
        if (!any_run(comparison, get)) continue;
        rows.figure(fmt::format("  {}", traces::analysis::kTimeCategoryNames[c]), get, print_us, kNoJudge,
                    spread);
    }
    rows.scale(100);
    rows.figure(
        "Device busy", [](const RunColumn& r) { return r.device_busy_percent; }, print_percent, kNoJudge,
        [](const RunColumn& r) { return r.device_busy_spread.spread; });

    rows.heading(whole ? "Communication of the whole trace, mean over ranks"
                       : "Communication of a step, mean over ranks");
    rows.scale(longest_step);
    rows.figure(
        "Communication", [](const RunColumn& r) { return r.communication_us; }, print_us, kJudge,
        [](const RunColumn& r) { return r.communication_spread.spread; });
    rows.figure(
        "  of it exposed", [](const RunColumn& r) { return r.exposed_communication_us; }, print_us, kJudge,
        [](const RunColumn& r) { return r.exposed_communication_spread.spread; });
    rows.scale(0);
    add_collectives(comparison, rows);
    return rows.take();
}

std::int64_t largest_peak(const Comparison& comparison) {
    std::int64_t largest = 0;
    for (const RunColumn& run : comparison.runs) largest = std::max(largest, run.peak_bytes);
    return largest;
}

const traces::analysis::StepSummary* steady_step(const traces::analysis::RankSummary& rank) {
    if (rank.steps.empty()) return nullptr;
    std::vector<const traces::analysis::StepSummary*> steps;
    for (const traces::analysis::StepSummary& step : rank.steps) steps.push_back(&step);
    if (steps.size() > 1) steps.erase(steps.begin());  // the first step includes warm-up
    traces::schema::sort_rows(steps, [](const auto* a, const auto* b) {
        return a->window_end - a->window_start < b->window_end - b->window_start;
    });
    return steps[(steps.size() - 1) / 2];
}

}  // namespace shardscope::viewer::panels
