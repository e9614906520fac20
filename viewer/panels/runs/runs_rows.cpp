// See runs_rows.h.
#include "viewer/panels/runs/runs_rows.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/base/shown_ranks.h"
#include "traces/analysis/compare/compare.h"
#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::TraceInfo;

const std::string* value_of(const RunFacts& run, const std::string& key) {
    if (run.info == nullptr) return nullptr;
    for (const auto& [k, value] : run.info->config) {
        if (k == key) return &value;
    }
    return nullptr;
}

struct Key {
    std::string name;
    bool differs = false;
};

std::vector<Key> keys_of(const std::vector<RunFacts>& runs) {
    std::vector<Key> keys;
    for (const RunFacts& run : runs) {
        if (run.info == nullptr) continue;
        for (const auto& [name, value] : run.info->config) {
            if (std::none_of(keys.begin(), keys.end(), [&n = name](const Key& k) { return k.name == n; }))
                keys.push_back({name});
        }
    }
    for (Key& key : keys) {
        const std::string* first = nullptr;
        bool any = false;
        for (const RunFacts& run : runs) {
            if (run.info == nullptr || run.info->config.empty()) continue;
            const std::string* value = value_of(run, key.name);
            if (any && (value == nullptr) != (first == nullptr)) key.differs = true;
            if (any && value != nullptr && first != nullptr && *value != *first) key.differs = true;
            if (!any) first = value;
            any = true;
        }
        if (!traces::analysis::is_setting(key.name)) key.differs = false;
    }
    std::stable_partition(keys.begin(), keys.end(), [](const Key& k) { return k.differs; });
    return keys;
}

// A text column for each run that has been read; they share the room.
void run_columns(const std::vector<RunFacts>& runs, std::vector<tables::TableColumn>& columns) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (runs[i].info == nullptr) continue;
        columns.push_back(tables::text_column(fmt::format("run_{}", i), runs[i].entry->name, 0));
    }
}

// "8 of 1,024" for a simulation whose trace shows a few ranks that represent all.
tables::CellTable::Cell ranks_cell(int ranks, const traces::store::Trace* trace) {
    tables::CellTable::Cell cell = tables::count_cell(ranks);
    if (trace != nullptr && traces::analysis::shows_some_ranks(*trace))
        cell.text += fmt::format(" of {}", draw::format_count(traces::analysis::ranks_of_run(*trace)));
    return cell;
}

}  // namespace

std::string state_of(const RunFacts& run) {
    if (!run.entry->error.empty()) return "cannot be read";
    if (run.entry->loading()) return fmt::format("reading, {:.0f} %", 100 * run.entry->progress);
    if (run.info == nullptr) return "working";
    return run_state(*run.entry);
}

namespace {

// Green only while a run is going. The square before a row has the run's own colour, as in every panel.
tables::CellTable::Cell state_cell(const RunFacts& run) {
    tables::CellTable::Cell cell = tables::text_cell(state_of(run));
    if (run.entry->running()) {
        cell.ink = theme::good();
    } else if (!run.entry->error.empty() || (run.info != nullptr && !run.info->ended)) {
        cell.ink = theme::bad();
    }
    return cell;
}

}  // namespace

std::optional<std::vector<std::string>> faults_of(const RunFacts& run) {
    if (run.faults == nullptr) return std::nullopt;
    std::vector<std::string> faults = *run.faults;
    if (run.entry->running())
        std::erase_if(faults, [](const std::string& f) { return f.starts_with("The run did not end"); });
    return faults;
}

std::shared_ptr<const tables::TableModel> runs_table(const std::vector<RunFacts>& runs) {
    std::size_t longest = 0;
    for (const RunFacts& run : runs) longest = std::max(longest, state_of(run).size());
    const float state_width = std::clamp(0.5F * static_cast<float>(longest), 6.0F, 20.0F);
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        tables::text_column("file", "File", 0), tables::text_column("state", "State", state_width),
        tables::number_column("ranks", "Ranks", "", 5, 8, 0,
                              "that the trace shows; for a simulation also how many they represent"),
        tables::number_column("steps", "Steps", "", 3.5F, 8, 0,
                              "recorded steps; without any, the figures of a step are unknown"),
        tables::number_column("duration_ms", "Duration", "ms", 6.5F, 6),
        tables::number_column("average_step_us", "Mean step", "\u00b5s", 7, 10, 0,
                              "mean over the kept steps and the ranks"),
        tables::number_column("exposed_communication_us", "Exposed comm.", "\u00b5s", 7, 8, 0,
                              "communication of a step outside compute"),
        tables::number_column(
            "device_busy_percent", "Device busy", "%", 6, 7, 0,
            "of the steps' time (of the whole trace where it names none): at least one kernel, copy or "
            "collective ran"),
        tables::number_column("peak_mb", "Peak memory", "MiB", 6.5F, 9, 0,
                              "allocated device memory of the fullest rank"),
        tables::number_column("faults", "Faults", "", 4, 9, 0, "found by check; 0: the trace is whole"),
        tables::number_column("dropped", "Dropped", "events", 5, 5),
        tables::text_column("device", "Device", 14, 4),
        tables::text_column("started_utc", "Started (UTC)", 12, 3)});
    for (const RunFacts& run : runs) {
        const TraceInfo* info = run.info.get();
        const auto faults = faults_of(run);
        const traces::analysis::RunColumn* figures =
            run.figures != nullptr && !run.figures->runs.empty() ? &run.figures->runs.front() : nullptr;
        // A trace without steps counts as one step: its time is its duration, not a step's.
        const bool device = figures != nullptr && figures->steps > 0 && run.entry->trace != nullptr &&
                            run.entry->trace->device.size() > 0;
        const bool stepped = figures != nullptr && figures->steps > 0 && info != nullptr && info->steps > 0;
        table->add(
            {tables::text_cell(run.entry->name), state_cell(run),
             info != nullptr ? ranks_cell(info->ranks, run.entry->trace.get()) : tables::no_cell(),
             info == nullptr    ? tables::no_cell()
             : info->steps == 0 ? tables::CellTable::Cell{"none", 0}
                                : tables::count_cell(info->steps),
             info != nullptr ? tables::decimal_cell(info->duration_ms, 3) : tables::no_cell(),
             stepped ? tables::us_cell(figures->average_step_us) : tables::no_cell(),
             stepped && device ? tables::us_cell(figures->exposed_communication_us) : tables::no_cell(),
             device ? tables::percent_cell(figures->device_busy_percent) : tables::no_cell(),
             figures != nullptr && figures->peak_bytes > 0 ? tables::mb_cell(figures->peak_bytes)
                                                           : tables::no_cell(),
             faults ? tables::count_cell(static_cast<std::int64_t>(faults->size())) : tables::no_cell(),
             info != nullptr ? tables::count_cell(info->dropped) : tables::no_cell(),
             tables::text_cell(info == nullptr        ? ""
                               : info->device.empty() ? "unknown"
                                                      : info->device),
             tables::text_cell(info == nullptr ? "" : info->started_utc)},
            theme::run_color(run.entry->color));
    }
    return table;
}

ConfigurationCount count_configuration(const std::vector<RunFacts>& runs) {
    ConfigurationCount count;
    for (const Key& key : keys_of(runs)) {
        ++count.keys;
        count.different += key.differs ? 1 : 0;
    }
    return count;
}

std::shared_ptr<const tables::TableModel> configuration_table(const std::vector<RunFacts>& runs,
                                                              bool only_differences) {
    std::vector<tables::TableColumn> columns = {tables::text_column("key", "Setting",
                                                                    runs.size() == 1   ? 20.0F
                                                                    : runs.size() == 2 ? 11.5F
                                                                                       : 13.0F)};
    run_columns(runs, columns);
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    for (const Key& key : keys_of(runs)) {
        if (only_differences && !key.differs) continue;
        std::vector<tables::CellTable::Cell> cells = {tables::text_cell(key.name)};
        for (const RunFacts& run : runs) {
            if (run.info == nullptr) continue;
            const std::string* value = value_of(run, key.name);
            cells.push_back(tables::text_cell(value == nullptr ? "-" : *value));
        }
        if (key.differs) {
            for (tables::CellTable::Cell& cell : cells) cell.ink = theme::accent();
        }
        table->add(std::move(cells));
    }
    return table;
}

std::shared_ptr<const tables::TableModel> counts_table(const std::vector<RunFacts>& runs) {
    std::vector<tables::TableColumn> columns = {tables::text_column("rows", "Rows of", 11)};
    std::vector<std::string> names;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (runs[i].info == nullptr) continue;
        columns.push_back(tables::number_column(fmt::format("run_{}", i), runs[i].entry->name, "", 10));
        for (const auto& [name, count] : runs[i].info->counts) {
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        }
    }
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    for (const std::string& name : names) {
        std::vector<tables::CellTable::Cell> cells = {tables::text_cell(draw::spaced(name))};
        for (const RunFacts& run : runs) {
            if (run.info == nullptr) continue;
            const auto& counts = run.info->counts;
            const auto at =
                std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == name; });
            cells.push_back(at == counts.end() ? tables::no_cell() : tables::count_cell(at->second));
        }
        table->add(std::move(cells));
    }
    return table;
}

std::shared_ptr<const tables::TableModel> devices_table(const traces::store::Trace& trace) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        tables::number_column("rank", "Rank", "", 4), tables::text_column("host", "Host", 10, 8),
        tables::text_column("device", "Device", 0, 9),
        tables::number_column("device_memory_mb", "Device memory", "MiB", 8, 6),
        tables::number_column("process", "Process", "id", 6, 5)});
    const auto told = [](const std::string& text) {
        return tables::text_cell(text.empty() ? "unknown" : text);
    };
    for (const traces::store::Rank& rank : trace.ranks) {
        const std::int64_t process = rank.global_pid >> 24 & 0xFFFFFF;
        table->add({tables::count_cell(rank.number), told(rank.host), told(rank.device_name),
                    rank.device_memory > 0 ? tables::mb_cell(rank.device_memory) : tables::no_cell(),
                    process > 0
                        ? tables::CellTable::Cell{fmt::format("{}", process), static_cast<double>(process)}
                        : tables::no_cell()});
    }
    return table;
}

}  // namespace shardscope::viewer::panels
