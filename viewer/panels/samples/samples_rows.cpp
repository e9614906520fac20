// See samples_rows.h.
#include "viewer/panels/samples/samples_rows.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>

#include "traces/lanes/thread_titles.h"
#include "traces/schema/enums.h"
#include "traces/schema/text.h"
#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::FlameBoxes;
using traces::analysis::FlameNode;
using traces::analysis::FunctionTime;
using traces::analysis::SamplesReport;
using traces::analysis::ThreadSamples;
using traces::store::HostThread;
using traces::store::Trace;

using Tree = std::vector<FlameNode>;

const FlameNode& node_of(const Tree& tree, int node) {
    return tree[static_cast<std::size_t>(node)];
}

// --- threads

std::int64_t process_of(const HostThread& thread) {
    return thread.global_tid & traces::schema::kPidMask;
}

// Its name is that of its main thread, whose number is the process's.
std::string process_label(const Trace& trace, std::int64_t process, const HostThread& any) {
    const std::int64_t pid = process >> 24 & 0xFFFFFF;
    std::string label = fmt::format("Process {}", pid);
    const auto main = std::find_if(trace.threads.begin(), trace.threads.end(), [&](const HostThread& thread) {
        return thread.global_tid == (process | pid) && !thread.name.empty();
    });
    if (main != trace.threads.end()) label += fmt::format(" ({})", main->name);
    if (any.rank.at() < trace.ranks.size())
        label += fmt::format(", rank {}", trace.ranks[any.rank.at()].number);
    return label;
}

}  // namespace

std::vector<ThreadChoice> thread_choices(const Trace& trace, const std::vector<ThreadSamples>& threads) {
    struct Process {
        std::int64_t id = 0, weight = 0, samples = 0;
        std::vector<std::size_t> threads;
    };
    std::vector<Process> processes;
    std::map<std::int64_t, std::size_t> known;
    std::vector<ThreadChoice> choices(1);
    for (const ThreadSamples& of : threads) {
        const std::int64_t id = process_of(trace.threads[of.thread]);
        const auto [it, is_new] = known.try_emplace(id, processes.size());
        if (is_new) processes.push_back({.id = id, .threads = {}});
        Process& process = processes[it->second];
        process.weight += of.weight;
        process.samples += of.samples;
        process.threads.push_back(static_cast<std::size_t>(&of - threads.data()));
        choices.front().samples += of.samples;
    }
    choices.front().label = "All threads";
    std::stable_sort(processes.begin(), processes.end(),
                     [](const Process& a, const Process& b) { return a.weight > b.weight; });
    const std::vector<std::string> titles = traces::lanes::thread_titles(trace);
    const bool several = processes.size() > 1;
    for (const Process& process : processes) {
        const HostThread& any = trace.threads[threads[process.threads.front()].thread];
        if (several)
            choices.push_back(
                {process_label(trace, process.id, any), process.id, {}, process.samples, false});
        for (const std::size_t i : process.threads) {
            const HostThread& thread = trace.threads[threads[i].thread];
            choices.push_back(
                {titles[threads[i].thread], {}, thread.global_tid, threads[i].samples, several});
        }
    }
    return choices;
}

std::string weight_text(const SamplesReport& report, std::int64_t weight) {
    return report.is_time ? draw::format_duration(static_cast<double>(weight))
                          : fmt::format("{} {}", traces::store::grouped(weight), report.event);
}

std::string rate_text(const SamplesReport& report, std::int64_t weight, double ns) {
    const double rate = ns > 0 ? static_cast<double>(weight) / ns : 0;
    return report.is_time ? fmt::format("{:.2f} cores", rate)
                          : fmt::format("{} {}/s", draw::format_short(rate * 1e9), report.event);
}

WeightsOverTime weights_over_time(const Trace& trace, std::string_view event,
                                  const traces::analysis::SampleFilter& filter, std::size_t most) {
    constexpr std::size_t kSamplesInAPart = 8;  // fewer would only show when the profiler looked
    const auto& samples = trace.samples;
    WeightsOverTime over{
        .from = trace.first_ns, .to = std::max(trace.last_ns, trace.first_ns + 1), .parts = {}};
    const auto id = trace.strings.find(event);
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; id && i < samples.size(); ++i) {
        if (samples.event[i] == *id && filter.keeps(trace.threads[samples.thread[i]])) kept.push_back(i);
    }
    over.parts.resize(std::clamp<std::size_t>(kept.size() / kSamplesInAPart, 1, most));
    for (const std::size_t i : kept) {
        const double at =
            (static_cast<double>(samples.time[i]) - static_cast<double>(over.from)) / over.part_ns();
        const double last = static_cast<double>(over.parts.size() - 1);
        std::int64_t& part = over.parts[static_cast<std::size_t>(std::clamp(at, 0.0, last))];
        part += samples.weight[i];
        over.most = std::max(over.most, part);
    }
    return over;
}

FrameParts frame_parts(std::string_view frame) {
    constexpr std::string_view kBefore = " (";
    const std::size_t from = frame.rfind(kBefore);
    if (from == std::string_view::npos || from == 0 || !frame.ends_with(')')) return {frame, {}};
    const std::size_t inside = from + kBefore.size();
    return {frame.substr(0, from), frame.substr(inside, frame.size() - inside - 1)};
}

std::string node_label(const FlameNode& node) {
    if (node.depth == 0) return "all threads";
    if (node.frame.empty()) return node.depth == 1 ? "[unnamed thread]" : "[unknown]";
    return std::string(node.depth == 1 ? node.frame : frame_parts(node.frame).function);
}

// --- boxes

const FlameCell* FlameLayout::at(std::size_t row, double x) const {
    if (row >= rows.size()) return nullptr;
    const auto after = std::upper_bound(rows[row].begin(), rows[row].end(), x,
                                        [](double at, const FlameCell& cell) { return at < cell.x; });
    if (after == rows[row].begin()) return nullptr;
    const FlameCell& cell = *std::prev(after);
    return x < cell.x + cell.width ? &cell : nullptr;
}

FlameLayout flame_layout(const Tree& tree, int top, double width, double narrowest, std::size_t most) {
    FlameBoxes boxes;
    for (;; narrowest *= 2) {
        boxes = flame_boxes(tree, top, width, narrowest);
        // What is narrower than a pixel together cannot be seen.
        std::erase_if(boxes.narrow, [](const auto& narrow) { return narrow.width < 1; });
        if (boxes.boxes.size() + boxes.narrow.size() <= most || narrowest >= width) break;
    }
    FlameLayout layout{.rows = {}, .top = top, .narrowest = narrowest, .hidden = boxes.hidden};
    const int top_depth = node_of(tree, top).depth;
    layout.rows.resize(static_cast<std::size_t>(top_depth));
    for (int caller = node_of(tree, top).parent; caller >= 0; caller = node_of(tree, caller).parent) {
        const FlameNode& of = node_of(tree, caller);
        layout.rows[static_cast<std::size_t>(of.depth)] = {{caller, 0, width, of.total, 0}};
    }
    const auto add = [&](int depth, const FlameCell& cell) {
        const auto row = static_cast<std::size_t>(depth);
        if (layout.rows.size() <= row) layout.rows.resize(row + 1);
        layout.rows[row].push_back(cell);
    };
    for (const auto& box : boxes.boxes) {
        const FlameNode& of = node_of(tree, box.node);
        add(of.depth, {box.node, box.x, box.width, of.total, 0});
    }
    for (const auto& narrow : boxes.narrow)
        add(node_of(tree, narrow.caller).depth + 1,
            {narrow.caller, narrow.x, narrow.width, narrow.weight, narrow.callees});
    for (std::vector<FlameCell>& row : layout.rows)
        std::sort(row.begin(), row.end(), [](const FlameCell& a, const FlameCell& b) { return a.x < b.x; });
    return layout;
}

std::vector<std::string> path_of(const Tree& tree, int node) {
    std::vector<std::string> path;
    for (; node > 0; node = node_of(tree, node).parent) path.emplace_back(node_of(tree, node).frame);
    std::reverse(path.begin(), path.end());
    return path;
}

int node_at(const Tree& tree, const std::vector<std::string>& path) {
    int at = 0;
    if (tree.empty()) return at;
    for (const std::string& frame : path) {
        const std::vector<int>& callees = node_of(tree, at).children;
        const auto next = std::find_if(callees.begin(), callees.end(),
                                       [&](int callee) { return node_of(tree, callee).frame == frame; });
        if (next == callees.end()) break;
        at = *next;
    }
    return at;
}

int largest_of(const Tree& tree, std::string_view function) {
    int largest = 0;
    for (std::size_t i = 0; i < tree.size(); ++i) {
        if (tree[i].depth < 2 || tree[i].frame != function) continue;
        if (largest == 0 || tree[i].total > node_of(tree, largest).total) largest = static_cast<int>(i);
    }
    return largest;
}

// --- search

FoundFrames find_frames(std::shared_ptr<const ShownSamples> samples, std::string_view text,
                        const std::atomic<bool>& cancel) {
    FoundFrames found;
    const SamplesReport& report = samples->report;
    std::unordered_set<std::string_view> names;
    for (std::size_t f = 0; f < report.functions.size() && !cancel; ++f) {
        if (!traces::schema::contains_but_for_case(report.functions[f].name, text)) continue;
        names.insert(report.functions[f].name);
        found.functions.push_back(static_cast<std::uint32_t>(f));
    }
    found.nodes.resize(report.tree.size());
    std::vector<bool> inside(report.tree.size());  // whether it or a caller was found
    // A caller has a smaller index than what it calls.
    for (std::size_t i = 0; i < report.tree.size() && !cancel; ++i) {
        const FlameNode& node = report.tree[i];
        const bool called = node.parent >= 0 && inside[static_cast<std::size_t>(node.parent)];
        found.nodes[i] = node.depth >= 2 && names.contains(node.frame);
        inside[i] = called || found.nodes[i];
        if (found.nodes[i] && !called) found.weight += node.total;
    }
    found.in = std::move(samples);
    return found;
}

// --- functions

FunctionTable::FunctionTable(std::shared_ptr<const ShownSamples> samples,
                             const std::shared_ptr<const FoundFrames>& found)
    : tables::LazyTable(found != nullptr ? found->functions.size() : samples->report.functions.size()),
      samples_(std::move(samples)),
      found_(found) {
    const SamplesReport& report = samples_->report;
    tables::TableColumn name = tables::text_column("function", "Function", 0, 20);
    name.help = "The function and, in parentheses, its library or program.";
    name.least = 12;
    cells_.add(std::move(name), [this](std::size_t row) { return std::string(time(row).name); });
    add("self_percent", 6, 19, 2, [](const FunctionTime& f) { return f.self_percent; });
    add("total_percent", 6, 18, 2, [](const FunctionTime& f) { return f.total_percent; });
    if (report.is_time) {
        add("self_us", 7.5F, 17, 1, [](const FunctionTime& f) { return tables::us(f.self); });
        add("total_us", 7.5F, 16, 1, [](const FunctionTime& f) { return tables::us(f.total); });
    } else {
        add(
            "self_weight", 7.5F, 17, 0, [](const FunctionTime& f) { return static_cast<double>(f.self); },
            report.event);
        add(
            "total_weight", 7.5F, 16, 0, [](const FunctionTime& f) { return static_cast<double>(f.total); },
            report.event);
    }
    add("samples", 5.5F, 15, 0, [](const FunctionTime& f) { return static_cast<double>(f.samples); });
}

// Title, unit and meaning are the result's.
void FunctionTable::add(std::string_view key, float width, int priority, int decimals,
                        double (*of)(const FunctionTime&), std::string_view unit) {
    for (const auto& field : traces::analysis::function_fields()) {
        if (field.key != key) continue;
        const bool share = field.unit == traces::analysis::Unit::percent;
        cells_.add(tables::number_column(std::string(key), std::string(field.title),
                                         std::string(unit.empty() ? symbol(field.unit) : unit), width,
                                         priority, share ? theme::accent() : 0, std::string(field.meaning)),
                   decimals, [this, of](std::size_t row) { return of(time(row)); });
        return;
    }
    throw std::out_of_range(fmt::format("functions have no {}", key));
}

}  // namespace shardscope::viewer::panels
