// See plan_rows.h.
#include "viewer/panels/plan/plan_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/schema/json_text.h"
#include "traces/schema/plan_keys.h"
#include "traces/schema/sort_rows.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

using traces::schema::PlanRow;

constexpr double kMB = 1 << 20;

// The planner's own order: the best comes first.
bool before(const PlanItem& a, const PlanItem& b) {
    if (a.fate != b.fate) return a.fate < b.fate;
    const auto key = [](const PlanItem& item) {
        // Without a number of samples (a lifted trace) all steps have the same size, so their times compare.
        const double sample = ns_per_sample(*item.row), time = sample > 0 ? sample : item.row->step_us * 1e3;
        if (item.fate == PlanFate::too_large)
            return std::make_tuple(static_cast<double>(item.row->peak_bytes), item.row->number);
        return std::make_tuple(is_time(time) && is_known(item.fate) ? time : 0.0, item.row->number);
    };
    return key(a) < key(b);
}

PlanSettings settings_of(const PlanRow& row) {
    return traces::schema::json_members(row.settings).value_or(PlanSettings());
}

const std::string* find(const PlanSettings& settings, std::string_view key) {
    for (const auto& [own, value] : settings)
        if (own == key) return &value;
    return nullptr;
}
std::string value_of(const PlanSettings& settings, std::string_view key) {
    const std::string* value = find(settings, key);
    return value == nullptr ? "-" : *value;
}
std::string yes_no(const std::string& truth) {
    return truth == "true" ? "yes" : truth == "false" ? "no" : truth;
}

// --- names of a row, as shardscope-train plan prints them -------------------------------------------------

std::string strategy_of(const PlanSettings& settings) {
    const std::string* mode = find(settings, "parallel.mode");
    if (mode != nullptr && *mode == "ddp") {
        const std::string name = value_of(settings, "ddp.shard_optimizer") == "true" ? "ZERO_1" : "ddp";
        const std::string* hook = find(settings, "ddp.comm_hook");
        return hook == nullptr || *hook == "none" ? name : name + " " + *hook;
    }
    if (mode != nullptr && *mode != "fsdp") return *mode;
    const std::string name = value_of(settings, "fsdp.sharding_strategy");
    const std::string* group = find(settings, "fsdp.shard_group");
    return group != nullptr && *group != "0" ? fmt::format("{} of {}", name, *group) : name;
}

bool is_sharded(const PlanSettings& settings) {
    const std::string* mode = find(settings, "parallel.mode");
    return mode == nullptr || *mode == "fsdp";
}
std::string of_units(const PlanSettings& settings, std::string_view key) {
    return is_sharded(settings) ? value_of(settings, key) : "-";
}
std::string of_gathers(const PlanSettings& settings, std::string_view key) {
    return value_of(settings, "fsdp.sharding_strategy") == "NO_SHARD" ? "-" : of_units(settings, key);
}

// Plans of older versions have no memory.offload.
std::string offload_of(const PlanSettings& settings) {
    const std::string memory = value_of(settings, "memory.offload");
    const std::string fsdp = yes_no(of_gathers(settings, "fsdp.cpu_offload"));
    const std::string* const nvme = find(settings, "memory.nvme");
    const std::string in_files = nvme != nullptr && !nvme->empty() ? ", nvme" : "";
    if (memory == "none" || memory == "-") return fsdp + in_files;
    return memory + (fsdp == "yes" ? ", cpu_offload" : "") + in_files;
}

std::vector<PlanChoice> decided_choices() {
    using S = const PlanSettings&;
    return {
        {"strategy", "Strategy", 8.6F, [](S s) { return strategy_of(s); }},
        {"wrap", "Wrap", 7.4F, [](S s) { return of_units(s, "fsdp.wrap"); }},
        {"offload", "Offload", 3.8F, [](S s) { return offload_of(s); }},
        {"checkpointing", "Checkpointing", 7.2F,
         [](S s) { return value_of(s, "memory.activation_checkpointing"); }},
        {"prefetch", "Prefetch", 8.2F, [](S s) { return of_gathers(s, "fsdp.backward_prefetch"); }},
        {"limiter", "Limiter", 3.6F, [](S s) { return yes_no(of_gathers(s, "fsdp.limit_all_gathers")); }},
        {"param", "Param", 3.3F, [](S s) { return value_of(s, "precision.param"); }},
        {"batch", "Batch", 3.2F, [](S s) { return value_of(s, "data.batch"); }},
    };
}

// First the keys that had several values on the command line, in that order.
std::vector<PlanChoice> choices_of(const std::vector<PlanItem>& items) {
    using traces::schema::kPlanKeys;
    constexpr std::size_t kMost = 24;  // no planner writes a file with more keys
    std::vector<PlanChoice> choices;
    for (const PlanItem& item : items) {
        for (const auto& setting : item.settings) {
            const std::string& key = setting.first;
            const bool known =
                std::find(kPlanKeys.begin(), kPlanKeys.end(), key) != kPlanKeys.end() ||
                std::any_of(choices.begin(), choices.end(), [&](const PlanChoice& c) { return c.id == key; });
            if (known || choices.size() >= kMost) continue;
            const std::size_t point = key.find('.');
            std::string title = point == std::string::npos ? key : key.substr(point + 1);
            if (!title.empty() && title[0] >= 'a' && title[0] <= 'z') title[0] -= 'a' - 'A';
            choices.push_back({key, std::move(title), 7,
                               [key](const PlanSettings& settings) { return value_of(settings, key); }});
        }
    }
    for (PlanChoice& choice : decided_choices()) choices.push_back(std::move(choice));
    return choices;
}

// --- the table's cells -----------------------------------------------------------------------------------

using Cell = tables::CellTable::Cell;

std::string fits_word(PlanFate fate) {
    switch (fate) {
        case PlanFate::front:
        case PlanFate::fits:
            return "yes";
        case PlanFate::too_large:
            return "no";
        case PlanFate::impossible:
            return "impossible";
        case PlanFate::not_run:
            break;
    }
    return "not tried";
}

Cell cell(double value, int decimals, bool known) {
    return known && std::isfinite(value) ? tables::decimal_cell(value, decimals) : tables::no_cell();
}
Cell mb(std::int64_t bytes) {
    return cell(static_cast<double>(bytes) / kMB, 1, bytes >= 0);
}

std::vector<tables::TableColumn> figure_columns(const PlanList& list) {
    constexpr auto kText = tables::TableColumn::Kind::text;
    std::vector<tables::TableColumn> columns = {
        tables::text_column("fits", "Fits", 4.4F, 20),
        tables::number_column("peak_mb", "Peak", "MiB", 5.2F, 30, 0,
                              "allocated device memory at its peak, of each rank"),
        tables::number_column("reserved_mb", "Reserved", "MiB", 5.2F, 18, 0,
                              "the most that a rank's caching allocator held: what has to fit"),
        tables::number_column("step_ms", "Step", "ms", 5, 29, 0,
                              "mean step of the simulated run, warm-up included"),
        tables::number_column("exposed_ms", "Exposed", "ms", 4.6F, 19, 0,
                              "exposed communication (outside kernels) per step, averaged over the ranks"),
        tables::number_column(list.tokens ? "tokens_per_second" : "samples_per_second",
                              list.tokens ? "Tokens" : "Samples", "per s", 5.2F, 28, 0,
                              "of all ranks together"),
        tables::number_column("mfu_percent", "MFU", "%", 3.2F, 27, 0,
                              "model FLOPs utilisation: without the recomputation of checkpointing"),
    };
    if (list.priced)
        columns.push_back(tables::number_column("usd_per_million", "Cost",
                                                list.tokens ? "$/M tokens" : "$/M samples", 5.5F, 26, 0,
                                                "of a million, at the cost model's price per hour"));
    columns.push_back({.id = "why",
                       .title = "Why",
                       .kind = kText,
                       .width = 0,
                       .priority = 15,
                       .help = "what makes its peak and holds its step; of the rest, why it loses",
                       .least = 14});
    return columns;
}

std::vector<Cell> figure_cells(const PlanList& list, const PlanItem& item) {
    const PlanRow& row = *item.row;
    const bool timed = row.simulated() && is_known(item.fate);
    const auto rate = [&](double value, int decimals) { return cell(value, decimals, timed && value > 0); };
    std::vector<Cell> cells = {
        {fits_word(item.fate), tables::kNoNumber,
         item.fate == PlanFate::too_large ? theme::bad() : theme::Color{0}},
        mb(is_known(item.fate) ? row.peak_bytes : -1),
        mb(timed ? row.reserved_bytes : -1),
        cell(row.step_us / 1e3, 2, timed),
        cell(row.exposed_us / 1e3, 2, timed),
        rate(list.tokens ? row.tokens_per_second : row.samples_per_second, list.tokens ? 0 : 1),
        rate(100 * row.mfu, 1),
    };
    if (list.priced) cells.push_back(cell(row.cost_per_million, 4, timed && row.cost_per_million > 0));
    cells.push_back(tables::text_cell(row.why.empty() ? row.reason : row.why));
    return cells;
}

bool is_shown(const PlanItem& item, PlanShow show, bool repeated) {
    if (!repeated && item.row->same_as != 0) return false;
    if (show == PlanShow::front) return item.fate == PlanFate::front;
    return show == PlanShow::all || item.fate == PlanFate::front || item.fate == PlanFate::fits;
}

}  // namespace

PlanFate fate_of(const PlanRow& row) {
    if (row.outcome == "impossible") return PlanFate::impossible;
    if (row.outcome == "too_large" && row.peak_bytes >= 0) return PlanFate::too_large;
    if (row.outcome == "fits" && row.peak_bytes >= 0) return row.front ? PlanFate::front : PlanFate::fits;
    return PlanFate::not_run;
}

std::string_view fate_words(PlanFate fate) {
    static constexpr std::array<std::string_view, kPlanFates> kWords = {
        "on the Pareto front", "fits, not on the front", "does not fit", "impossible", "was not tried"};
    return kWords[static_cast<std::size_t>(fate)];
}

theme::Color fate_color(PlanFate fate) {
    switch (fate) {
        case PlanFate::front:
            return theme::good();
        case PlanFate::fits:
            return theme::accent();
        case PlanFate::too_large:
            return theme::bad();
        case PlanFate::impossible:
        case PlanFate::not_run:
            break;
    }
    return theme::text_dim();
}

double ns_per_sample(const PlanRow& row) {
    return row.samples_per_second > 0 ? 1e9 / row.samples_per_second : 0;
}

bool is_time(double ns) {
    return std::isfinite(ns) && ns > 0;
}

PlanList plan_list(std::shared_ptr<const traces::store::Trace> trace) {
    PlanList list;
    double samples = 0;
    for (const PlanRow& row : trace->plan) {
        const PlanItem& item = list.items.emplace_back(PlanItem{&row, fate_of(row), settings_of(row)});
        ++list.counts[static_cast<std::size_t>(item.fate)];
        list.tokens = list.tokens || row.tokens_per_second > 0;
        list.priced = list.priced || row.cost_per_million > 0;
        const double own = row.samples_per_second * row.step_us;
        if (!row.simulated() || !is_time(own)) continue;
        if (samples == 0) samples = own;
        list.same_batch = list.same_batch && std::abs(own - samples) <= samples * 1e-6;
    }
    traces::schema::sort_rows(list.items, before);
    list.choices = choices_of(list.items);
    list.trace = std::move(trace);
    return list;
}

std::size_t item_of(const PlanList& list, int number) {
    const auto found = std::find_if(list.items.begin(), list.items.end(),
                                    [&](const PlanItem& item) { return item.row->number == number; });
    return static_cast<std::size_t>(found - list.items.begin());
}

std::string plan_counts(const PlanList& list) {
    const auto count = [&](PlanFate fate) { return list.counts[static_cast<std::size_t>(fate)]; };
    const auto number = [](std::size_t n) { return draw::format_count(static_cast<std::int64_t>(n)); };
    const traces::store::Trace& trace = *list.trace;
    std::string text =
        fmt::format("{} configuration{}", number(list.items.size()), list.items.size() == 1 ? "" : "s");
    for (const std::string_view key : {"plan.job", "plan.trace"}) {
        if (const auto subject = trace.config_value(key); !subject.empty())
            text += " of " + std::filesystem::path(subject).filename().string();
    }
    if (const auto cluster = trace.config_value("plan.cluster"); !cluster.empty()) {
        text += fmt::format(" on {}", cluster);
        if (const auto device = trace.config_value("plan.device"); !device.empty())
            text += fmt::format(" ({})", device);
    }
    const std::size_t front = count(PlanFate::front), fit = front + count(PlanFate::fits);
    text += fmt::format(": {} fit, {} of them on the Pareto front; {} do not", number(fit), number(front),
                        number(count(PlanFate::too_large)));
    if (const auto n = count(PlanFate::impossible)) text += fmt::format("; {} are impossible", number(n));
    if (const auto n = count(PlanFate::not_run)) text += fmt::format("; {} were not tried", number(n));
    return text;
}

std::string nothing_fits(const PlanList& list) {
    const PlanItem* smallest = nullptr;  // the list has the smallest of them first
    for (const PlanItem& item : list.items) {
        if (item.fate == PlanFate::front || item.fate == PlanFate::fits) return "";
        if (item.fate == PlanFate::too_large && smallest == nullptr) smallest = &item;
    }
    if (smallest == nullptr) return "";
    const PlanRow& row = *smallest->row;
    std::string text = row.limit_bytes < 0 ? std::string("Nothing fits")
                                           : fmt::format("Nothing fits into {} of memory",
                                                         draw::format_size(row.limit_bytes));
    text += fmt::format(": the smallest peak is {}, of row {}", draw::format_mb(row.peak_bytes), row.number);
    if (!row.moment.empty()) text += fmt::format(", reached in {}", row.moment);
    return text +
           ". More memory (run.memory_limit, sim.cluster), more ranks, a smaller batch or a smaller model is "
           "needed.";
}

PlanTable plan_table(const PlanList& list, PlanShow show, bool repeated) {
    PlanTable table;
    for (std::size_t i = 0; i < list.items.size(); ++i)
        if (is_shown(list.items[i], show, repeated)) table.items.push_back(i);

    std::vector<PlanChoice> differ;
    std::vector<std::string> alike;
    for (const PlanChoice& choice : list.choices) {
        std::string first;
        bool same = true, any = false;
        for (const std::size_t i : table.items) {
            const PlanItem& item = list.items[i];
            if (!is_known(item.fate)) continue;
            const std::string value = choice.value(item.settings);
            if (!any) first = value;
            same = same && value == first;
            any = true;
        }
        if (!same) {
            differ.push_back(choice);
        } else if (any && first != "-") {
            alike.push_back(fmt::format("{} {}", choice.id, first));
        }
    }
    table.alike = traces::schema::joined(alike, ", ");

    std::vector<tables::TableColumn> columns = {tables::number_column(
        "row", "Row", "", 3.8F, 99, 0, "its place in the search: --write ROW of shardscope-train plan")};
    for (const PlanChoice& choice : differ)
        columns.push_back(tables::text_column(choice.id, choice.title, choice.width, 25));
    for (tables::TableColumn& column : figure_columns(list)) columns.push_back(std::move(column));
    auto model = std::make_shared<tables::CellTable>(std::move(columns));
    for (const std::size_t i : table.items) {
        const PlanItem& item = list.items[i];
        std::vector<Cell> cells = {{std::to_string(item.row->number), static_cast<double>(item.row->number)}};
        for (const PlanChoice& choice : differ)
            cells.push_back(tables::text_cell(choice.value(item.settings)));
        for (Cell& own : figure_cells(list, item)) cells.push_back(std::move(own));
        model->add(std::move(cells), fate_color(item.fate));
    }
    table.model = std::move(model);
    return table;
}

std::vector<PlanFact> plan_choices(const PlanList& list, const PlanItem& item) {
    std::vector<PlanFact> facts;
    for (const PlanChoice& choice : list.choices) {
        std::string value = choice.value(item.settings);
        if (value != "-") facts.push_back({choice.title, std::move(value)});
    }
    return facts;
}

std::vector<PlanFact> plan_figures(const PlanList& list, const PlanRow& row) {
    std::vector<PlanFact> facts;
    const auto add = [&](const char* label, std::string value) {
        facts.push_back({label, std::move(value)});
    };
    const auto ms = [](double us) {
        return std::isfinite(us) ? draw::format_duration(us * 1e3) : std::string("-");
    };
    if (row.peak_bytes >= 0) add("Peak, allocated", draw::format_mb(row.peak_bytes));
    if (row.reserved_bytes >= 0) add("Reserved", draw::format_mb(row.reserved_bytes));
    if (row.limit_bytes >= 0) add("Limit", draw::format_mb(row.limit_bytes));
    if (row.simulated()) {
        add("Step", ms(row.step_us));
        add("Exposed comm.", ms(row.exposed_us));
        if (row.tokens_per_second > 0) {
            add("Tokens/s", draw::format_decimal(row.tokens_per_second, 0));
        } else if (row.samples_per_second > 0) {
            add("Samples/s", draw::format_decimal(row.samples_per_second, 1));
        }
        if (row.mfu > 0) add("MFU", draw::format_decimal(100 * row.mfu, 1) + " %");
        if (row.cost_per_million > 0)
            add(list.tokens ? "Cost of a million tokens" : "Cost of a million samples",
                "$" + draw::format_decimal(row.cost_per_million, 4));
    } else if (row.peak_bytes >= 0) {
        add("Step", "not simulated");
    }
    if (row.ranks > 0)
        add("Ranks", row.nodes > 0 ? fmt::format("{} on {} node{}", draw::format_count(row.ranks),
                                                 draw::format_count(row.nodes), row.nodes == 1 ? "" : "s")
                                   : draw::format_count(row.ranks));
    return facts;
}

std::string plan_flags(const PlanSettings& settings) {
    std::string flags;
    for (const auto& [key, value] : settings) {
        // Quoted for a shell.
        const bool plain =
            !value.empty() && value.find_first_not_of(
                                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:,/+@") ==
                                  std::string::npos;
        std::string quoted = value;
        for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4)
            quoted.replace(at, 1, "'\\''");
        flags += fmt::format("{}--{}={}", flags.empty() ? "" : " ", key, plain ? value : "'" + quoted + "'");
    }
    return flags;
}

}  // namespace shardscope::viewer::panels
