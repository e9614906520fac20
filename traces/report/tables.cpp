// Results as tables for people: aligned, a unit in every header. MB = 2^20 bytes.
#include <algorithm>
#include <array>
#include <functional>

#include <fmt/core.h>

#include "traces/report/formats.h"
#include "traces/report/hosts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"
#include "traces/store/no_space.h"

namespace shardscope::traces {
namespace {

// --- modules -----------------------------------------------------------------------------------------

struct ModuleColumn {
    std::string title;
    std::function<std::string(const ModuleNode&)> cell;
    std::function<bool(const ModuleNode&)> known;  // a column that no row knows is not shown
};

const std::vector<ModuleColumn>& module_columns() {
    const auto always = [](const ModuleNode&) { return true; };
    static const std::vector<ModuleColumn> columns = {
        {"Calls", [](const ModuleNode& n) { return grouped(n.occurrences); }, always},
        {"Operators", [](const ModuleNode& n) { return grouped(n.operators); }, always},
        {"Host (us)", [](const ModuleNode& n) { return us(n.host_us); }, always},
        {"Host self (us)", [](const ModuleNode& n) { return us(n.host_self_us); }, always},
        {"Device (us)", [](const ModuleNode& n) { return us(n.device_us); }, always},
        {"Device self (us)", [](const ModuleNode& n) { return us(n.device_self_us); }, always},
        {"Backward device (us)", [](const ModuleNode& n) { return us(n.backward_device_us); },
         [](const ModuleNode& n) { return n.backward_device_us > 0; }},
        {"Recomputed calls", [](const ModuleNode& n) { return grouped(n.recomputations); },
         [](const ModuleNode& n) { return n.recomputations > 0; }},
        {"Recompute host (us)", [](const ModuleNode& n) { return us(n.recompute_host_us); },
         [](const ModuleNode& n) { return n.recomputations > 0; }},
        {"Recompute device (us)", [](const ModuleNode& n) { return us(n.recompute_device_us); },
         [](const ModuleNode& n) { return n.recompute_device_us > 0; }},
        {"Parameters", [](const ModuleNode& n) { return grouped(n.parameters); },
         [](const ModuleNode& n) { return n.parameters > 0; }},
        {"Gathered (MB)", [](const ModuleNode& n) { return mb(n.gathered_bytes); },
         [](const ModuleNode& n) { return n.gathered_bytes > 0; }},
        {"Reduced (MB)", [](const ModuleNode& n) { return mb(n.reduced_bytes); },
         [](const ModuleNode& n) { return n.reduced_bytes > 0; }},
        {"Unshard wait (us)", [](const ModuleNode& n) { return us(n.unshard_wait_us); },
         [](const ModuleNode& n) { return n.unshard_wait_us > 0; }},
        {"Peak (MB)", [](const ModuleNode& n) { return mb(n.peak_bytes); },
         [](const ModuleNode& n) { return n.peak_bytes > 0; }},
    };
    return columns;
}

bool any_node(const std::vector<ModuleNode>& nodes, const std::function<bool(const ModuleNode&)>& holds) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const ModuleNode& n) { return holds(n) || any_node(n.children, holds); });
}

// `above`: the tree lines of the ancestors, before this level's own.
void add_modules(TextTable& table, const std::vector<const ModuleColumn*>& columns,
                 const std::vector<ModuleNode>& nodes, const std::string& above, bool root) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const bool last = i + 1 == nodes.size();
        const char* branch = last ? "└─ " : "├─ ";
        std::vector<std::string> cells = {root ? nodes[i].name : above + branch + nodes[i].name};
        for (const ModuleColumn* column : columns) cells.push_back(column->cell(nodes[i]));
        table.row(std::move(cells));
        add_modules(table, columns, nodes[i].children, root ? std::string() : above + (last ? "   " : "│  "),
                    false);
    }
}

// --- info --------------------------------------------------------------------------------------------

std::string pairs_table(const std::vector<std::pair<std::string, std::string>>& pairs, Align values) {
    TextTable table({Align::left, values});
    for (const auto& [key, value] : pairs) table.row({key, value});
    return table.text();
}

}  // namespace

std::string table_text(const ExecutionSummary& summary, std::size_t width) {
    if (summary.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const RankSummary& rank : summary.ranks) {
        if (!text.empty()) text += '\n';
        text += summary.stepped
                    ? fmt::format("Rank {}: mean of {} step{}", rank.rank,
                                  grouped(std::int64_t(rank.steps.size())), rank.steps.size() == 1 ? "" : "s")
                    : fmt::format("Rank {}: the whole trace, which names no steps", rank.rank);
        if (rank.cut_steps > 0) {
            text += fmt::format(" ({} at the end cut off and left out)", grouped(rank.cut_steps));
        }
        if (summary.stepped && !rank.steps.empty())
            text += fmt::format("; median {} us, host step {} us", us(rank.median_step_us),
                                us(rank.average_host_step_us));
        text += '\n';
        TextTable table({Align::left, Align::right, Align::right});
        table.header({"Category", "Time (us)", "Percent"});
        table.row({summary.stepped ? "Average Step Time" : "Whole trace", us(rank.average_step_us),
                   percent(rank.average_step_us, rank.average_step_us)});
        for (std::size_t c = 0; c < rank.average_us.size(); ++c) {
            if (!summary.has(static_cast<TimeCategory>(c))) continue;
            const bool known = rank.knows(static_cast<TimeCategory>(c));
            table.row({std::string(kTimeCategoryNames[c]), known ? us(rank.average_us[c]) : "-",
                       known ? percent(rank.average_us[c], rank.average_step_us) : "-"});
        }
        text += table.text(width);
    }
    if (!summary.has(TimeCategory::communication)) text += "Kernel holds communication.\n";
    if (!summary.stepped) return text;
    const auto left_out = [](const RankSummary& rank) { return rank.first_left_out; };
    const bool any = std::any_of(summary.ranks.begin(), summary.ranks.end(), left_out);
    return text +
           paragraph(fmt::format("A step's time is its window: from the end of the device work before it to "
                                 "the end of its own. The host step is its range on the host.{}",
                                 any ? " The median leaves out the trace's first step." : ""),
                     width);
}

std::string table_text(const ModuleView& view, std::size_t width) {
    if (view.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const RankModules& rank : view.ranks) {
        if (!text.empty()) text += '\n';
        if (rank.modules.empty()) {
            text += fmt::format("Rank {}: no module ranges\n", rank.rank);
            continue;
        }
        text += fmt::format("Rank {} (MB = 2^20 bytes)\n", rank.rank);
        std::vector<const ModuleColumn*> columns;
        std::vector<std::string> header = {"Module"};
        std::vector<Align> align = {Align::left};
        for (const ModuleColumn& column : module_columns()) {
            if (!any_node(rank.modules, column.known)) continue;
            columns.push_back(&column);
            header.push_back(column.title);
            align.push_back(Align::right);
        }
        TextTable table(align);
        table.header(std::move(header));
        add_modules(table, columns, rank.modules, "", true);
        text += table.text(width);
    }
    return text;
}

std::string table_text(const CollectivesReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::vector<std::string> header = {"Rank",         "Operation",     "Count",        "MB",
                                       "Time (us)",    "Transfer (us)", "Waiting (us)", "Exposed (us)",
                                       "algbw (GB/s)", "busbw (GB/s)",  "Count/step",   "MB/step"};
    if (!report.stepped) header.resize(header.size() - 2);
    std::vector<Align> align(header.size(), Align::right);
    align[1] = Align::left;
    TextTable table(align, 2);
    table.header(header);
    std::int64_t rows = 0, unmatched = 0;
    bool on_host = false;
    for (const RankCollectives& rank : report.ranks) {
        unmatched += rank.unmatched;
        for (const OperationStats& o : rank.operations) {
            ++rows;
            on_host = on_host || o.on_host;
            std::vector<std::string> cells = {std::to_string(rank.rank),
                                              std::string(name(o.operation)),
                                              grouped(o.count),
                                              known_mb(o.bytes),
                                              us(o.us),
                                              us(o.transfer_us),
                                              us(o.waiting_us),
                                              o.on_host ? "-" : us(o.exposed_us),
                                              known_rate(o.algbw_gbps, 3),
                                              known_rate(o.busbw_gbps, 3),
                                              grouped(o.count_per_step, 2),
                                              o.bytes > 0 ? mb(o.bytes_per_step) : "-"};
            cells.resize(header.size());
            table.row(std::move(cells));
        }
    }
    if (rows == 0) return "No collectives.\n";
    std::string text = "MB = 2^20 bytes of the full buffer, GB = 10^9 bytes\n" + table.text(width);
    if (on_host) {
        text += paragraph(
            "Host threads (Gloo, MPI) carried these out: the times are theirs, and what compute hides of "
            "them is "
            "not known.",
            width);
    }
    if (unmatched > 0) {
        text += fmt::format("{} without a counterpart on another rank: the whole time counts as transfer.\n",
                            collectives_are(unmatched));
    }
    return text;
}

// Values and notes stand whole: they are last in their lines.
std::string table_text(const TraceInfo& info, std::size_t /*width*/) {
    std::string_view unfinished = "killed, or still running";
    for (const auto& [key, value] : info.config) {
        if (key == kStoppedBecause) unfinished = value;
    }
    std::vector<std::pair<std::string, std::string>> facts = {
        {"File", info.file},
        {"Schema",
         info.schema_version > 0 ? std::to_string(info.schema_version) : "not written by Shardscope"},
        {"State", info.ended ? "ended" : fmt::format("did not end ({})", unfinished)},
        {"Started (UTC)", info.started_utc.empty() ? "unknown" : info.started_utc},
        {"Duration (ms)", grouped(info.duration_ms, 3)},
        {"Ranks", std::to_string(info.ranks)},
        {"Steps", grouped(info.steps)},
        {"Device", info.device.empty() ? "unknown" : info.device},
        {"Dropped events", grouped(info.dropped)},
    };
    const auto after_ranks =
        std::find_if(facts.begin(), facts.end(), [](const auto& f) { return f.first == "Steps"; });
    if (const std::string by_host = ranks_by_host(info.hosts); !by_host.empty())
        facts.insert(after_ranks, {"Hosts", by_host});
    if (info.stopped.stopped) facts.emplace_back("Stopped", stop_sentence(info.stopped));
    std::string text = pairs_table(facts, Align::left);
    if (!info.device_note.empty()) text += "\n" + info.device_note + "\n";
    std::vector<std::pair<std::string, std::string>> counts;
    for (const auto& [what, count] : info.counts) counts.emplace_back(what, grouped(count));
    text += "\nRows\n" + pairs_table(counts, Align::right);
    if (!info.config.empty()) text += "\nConfiguration\n" + pairs_table(info.config, Align::left);
    if (info.noted.empty()) return text;
    constexpr std::size_t kMostNoted = 100;  // the last ones: a crash is at the end
    const std::size_t first = info.noted.size() > kMostNoted ? info.noted.size() - kMostNoted : 0;
    text += "\nNoted by the recorder (ms)\n";
    if (first > 0)
        text += fmt::format("{} before these are in DIAGNOSTIC_EVENT\n", grouped(std::int64_t(first)));
    TextTable noted({Align::right, Align::left});
    for (std::size_t i = first; i < info.noted.size(); ++i) {
        noted.row({grouped(info.noted[i].time_ms, 3), info.noted[i].text});
    }
    return text + noted.text();
}

}  // namespace shardscope::traces
