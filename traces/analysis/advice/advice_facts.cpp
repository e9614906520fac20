#include "traces/analysis/advice/advice_facts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_links.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/host_collectives.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/time/copies.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr double kNoGainPercent = 0.5;  // of a step
constexpr double kApart = 1.05;         // times a rank's step
constexpr double kLinkPercent = 10;     // of a step, exposed: with less, the links are not judged

const RankPath* main_path(const CriticalPathReport& report) {
    if (report.job && !report.job->steps.empty()) return &*report.job;
    return report.ranks.empty() ? nullptr : &report.ranks.front();
}

// A collective's time from the moment when all its ranks take part to its end.
Interval transfer_of(const AdviceFacts& f, std::size_t event) {
    const store::DeviceEvents& device = f.trace.device;
    const std::int32_t all = f.replay.sources().joined_of[event];
    std::int64_t length = device.end[event] - device.start[event];
    if (all >= 0)
        length = std::min(length, f.replay.sources().joined[static_cast<std::size_t>(all)].transfer);
    return {device.end[event] - length, device.end[event]};
}

void add_transfers(AdviceFacts& f) {
    const store::Trace& trace = f.trace;
    const TraceSteps& steps = f.replay.sources().steps;
    const std::vector<bool> selected = selected_events(trace, steps, f.selection);
    const UnitCollectives of_units(trace, f.unit_ranges);
    const std::size_t ranks = trace.ranks.size();
    enum Purpose : std::size_t { gathers, reductions, others, parts };
    std::array<std::vector<std::vector<Interval>>, parts> transfers;
    for (auto& part : transfers) part.resize(ranks);
    std::vector<IntervalSet> compute(ranks);
    for (std::size_t i = 0; i < trace.device.size(); ++i) {
        const std::uint16_t rank = trace.device.rank[i];
        if (trace.device.kind[i] == store::DeviceKind::kernel)
            append_merged(compute[rank], {trace.device.start[i], trace.device.end[i]});
        if (trace.device.kind[i] != store::DeviceKind::communication || !selected[i]) continue;
        const std::optional<UnitCollective> known = of_units.of_event(i);
        if (known) f.collectives.push_back(*known);
        const Purpose part = !known ? others : known->gather ? gathers : reductions;
        transfers[part][rank].push_back(transfer_of(f, i));
    }
    std::int64_t all = 0, gathered = 0, reduced = 0;
    for (const store::RankIndex r : selected_ranks(trace, f.selection)) {
        const std::size_t at = r.at();
        IntervalSet windows;
        const std::vector<StepWindow> shown = selected_windows(steps.ranks[at], f.selection);
        for (const StepWindow& step : shown) append_merged(windows, step.window);
        if (windows.empty()) continue;
        std::vector<Interval> together;
        const auto exposed = [&](std::vector<Interval> set) {
            return length(subtract(intersect(make_union(std::move(set)), windows), compute[at]));
        };
        for (const auto& part : transfers) together.insert(together.end(), part[at].begin(), part[at].end());
        const double count = static_cast<double>(shown.size());
        f.transfers_us =
            std::max(f.transfers_us,
                     static_cast<double>(length(intersect(make_union(together), windows))) * 1e-3 / count);
        all += exposed(std::move(together));
        gathered += exposed(transfers[gathers][at]);
        reduced += exposed(transfers[reductions][at]);
    }
    f.exposed = {f.per_step_us(all), f.per_step_us(gathered), f.per_step_us(reduced)};
}

HostCommunication communication_on_host(const store::Trace& trace, const TraceSteps& steps,
                                        const Selection& selection) {
    struct HostSums {
        IntervalSet time;  // grows in order of start
        std::int64_t waiting = 0, count = 0, bytes = 0;
    };
    std::vector<HostSums> sums(trace.ranks.size());
    HostCommunication found;
    bool matched = true;
    for (const auto& [c, in_step] :
         selected_host_collectives(trace, steps, match_communications(trace), selection)) {
        if (!in_step) continue;
        const schema::StringId name = trace.ranges.name[static_cast<std::size_t>(c.range)];
        if (found.library.empty()) found.library = host_library(trace.strings[name]);
        HostSums& own = sums[c.rank];
        append_merged(own.time, {c.start, c.end});
        own.waiting += c.end - c.start - c.transfer_ns;
        ++own.count;
        own.bytes += c.bytes;
        matched = matched && !c.unmatched;
    }
    double ranks = 0, bytes = 0;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        const std::size_t at = r.at();
        const auto kept = static_cast<double>(selected_windows(steps.ranks[at], selection).size());
        if (sums[at].count == 0 || kept == 0) continue;
        const double waiting = static_cast<double>(sums[at].waiting) * 1e-3 / kept;
        found.us += static_cast<double>(length(sums[at].time)) * 1e-3 / kept;
        found.waiting_us += waiting;
        found.count += static_cast<double>(sums[at].count) / kept;
        bytes += static_cast<double>(sums[at].bytes) / kept;
        if (ranks == 0 || waiting < found.least_waiting_us) {
            found.least_waiting_us = waiting;
            found.waited_for = trace.ranks[at].number;
        }
        found.most_waiting_us = std::max(found.most_waiting_us, waiting);
        ++ranks;
    }
    if (ranks == 0) return {};
    found.us /= ranks;
    found.waiting_us /= ranks;
    found.count /= ranks;
    found.bytes = static_cast<std::int64_t>(bytes / ranks);
    if (ranks < 2 || !matched || found.most_waiting_us <= found.least_waiting_us) found.waited_for = -1;
    return found;
}

// Device events of the kept steps, whose number is the divisor of all figures per step.
std::vector<bool> events_of_kept_steps(const AdviceFacts& f) {
    const TraceSteps& steps = f.replay.sources().steps;
    std::vector<bool> events = selected_events(f.trace, steps, f.selection);
    for (std::size_t i = 0; i < events.size(); ++i) {
        const std::int32_t step = steps.event[i];
        events[i] = events[i] && step >= 0 && step < steps.ranks[f.trace.device.rank[i]].kept();
    }
    return events;
}

}  // namespace

AdviceFacts::AdviceFacts(const store::Trace& t, const Selection& s)
    : trace(t),
      warm_up(find_warm_up(t, find_steps(t), s)),
      selection(without_warm_up(s, warm_up)),
      summary(summarize(t, selection)),
      units(units_report(t, selection)),
      idle(idle_report(t, selection)),
      kernels(kernels_report(t, selection)),
      memory(memory_report(t, selection, space_in_use(t))),
      path(critical_path(t, selection)),
      stragglers(straggler_report(t, selection)),
      use(utilization_report(t, s)),
      replay(t, selection),
      unit_ranges(find_units(t)) {
    on_host = communication_on_host(trace, replay.sources().steps, selection);
    double ranks = 0, sum = 0;
    for (const RankSummary& rank : summary.ranks) {
        if (rank.steps.empty()) continue;
        sum += rank.average_step_us;
        ++ranks;
    }
    const double mean = ranks > 0 ? sum / ranks : 0;
    if (trace.device.size() == 0) {  // the device time of a step is unknown
        host_step_us = mean;
        return;
    }
    step_us = mean;
    device_work = std::any_of(idle.ranks.begin(), idle.ranks.end(),
                              [](const RankIdle& rank) { return rank.device.busy > 0; });
    add_transfers(*this);
    if (!config("memory.nvme").empty()) {
        std::int64_t waits = 0;
        for (const RankCopies& rank : copies_report(trace, this->selection).ranks) waits += rank.file_waits;
        file_waits_us = per_step_us(waits);
    }
    links = link_report(trace, events_of_kept_steps(*this));
    if (!host_topologies(trace).empty()) topology = topology_report(trace, this->selection);
}

std::string_view AdviceFacts::backend() const {
    if (!on_host.library.empty()) return on_host.library;
    const std::string_view told = config("distributed.backend");
    if (told.find("nccl") != std::string_view::npos || told.empty()) return "NCCL";
    if (told.find("gloo") != std::string_view::npos) return "Gloo";
    return told.find("mpi") != std::string_view::npos ? "MPI" : told;
}

const RankMemory* AdviceFacts::highest_peak() const {
    const auto most =
        std::max_element(memory.ranks.begin(), memory.ranks.end(),
                         [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
    return most == memory.ranks.end() || most->peak_bytes <= 0 ? nullptr : &*most;
}

double AdviceFacts::per_step_us(std::int64_t ns) const {
    std::size_t steps = 0;
    for (const RankSummary& rank : summary.ranks) steps += rank.steps.size();
    return steps > 0 ? static_cast<double>(ns) * 1e-3 / static_cast<double>(steps) : 0;
}

double AdviceFacts::on_path_us(PathKind kind) const {
    const RankPath* main = main_path(path);
    return main != nullptr ? main->average_us[static_cast<std::size_t>(kind)] : 0;
}

std::vector<IntervalSet> AdviceFacts::host_time(const std::function<bool(std::size_t)>& accept) const {
    std::vector<std::vector<Interval>> found(trace.ranks.size());
    for (std::size_t i = 0; i < trace.ranges.size(); ++i) {
        const store::RankIndex rank = trace.threads[trace.ranges.thread[i]].rank;
        if (rank.known() && accept(i))
            found[rank.at()].push_back({trace.ranges.start[i], trace.ranges.end[i]});
    }
    std::vector<IntervalSet> time;
    time.reserve(found.size());
    for (std::vector<Interval>& rank : found) time.push_back(make_union(std::move(rank)));
    return time;
}

std::vector<IntervalSet> AdviceFacts::loader_time() const {
    return host_time([this](std::size_t i) { return trace.ranges.kind[i] == store::RangeKind::data_loader; });
}

void AdviceFacts::predict(Finding& finding, const PathChange& change, std::string_view were,
                          double least_us) const {
    const double now = replay.step_us();
    if (now <= 0) return;
    const double then = std::clamp(replay.step_us(change), std::min(least_us, now), now);
    finding.gain_us = now - then;
    if (percent_of_step(*finding.gain_us) < kNoGainPercent) {
        finding.expected = fmt::format("{} {} would not be shorter, according to a replay of the run.", were,
                                       trace.steps.empty() ? "the whole trace" : "a step");
        return;
    }
    // Ranks that do not begin together make this longer than any one's step.
    const bool apart = trace.ranks.size() > 1 && now > kApart * step_us;
    finding.expected = fmt::format(
        "{} {} would take {} instead of {} ({:+.1f} %){}, according to a replay of the run.", were,
        trace.steps.empty() ? "the whole trace" : "a step", us_text(then), us_text(now),
        100 * (then - now) / now, apart ? " from the first rank's start to the last one's end" : "");
}

void AdviceFacts::predict_in_parts(Finding& finding, int parts,
                                   const std::function<bool(const UnitCollective&)>& accept,
                                   std::string_view were) const {
    PathChange change;
    change.events.assign(trace.device.size(), 1);
    for (const UnitCollective& collective : collectives) {
        if (accept(collective)) change.events[collective.event] = 1.0 / parts;
    }
    predict(finding, change, were, transfers_us);
}

Settings& Settings::add(std::string_view key, std::string_view value, std::string_view words) {
    if (!value.empty() && facts_.config(key) == value) return *this;
    if (!text.empty()) text += ", ";
    if (!words.empty()) {
        text += words;
    } else {
        const bool word = value != "true" && value != "false" && !std::isdigit(value.front());
        text += word ? fmt::format("{} = \"{}\"", key, value) : fmt::format("{} = {}", key, value);
    }
    return *this;
}

std::string us_text(double us) {
    if (us >= 1e6) return fmt::format("{:.2f} s", us * 1e-6);
    if (us >= 1e4) return fmt::format("{:.1f} ms", us * 1e-3);
    if (us >= 1e3) return fmt::format("{:.2f} ms", us * 1e-3);
    return fmt::format("{:.1f} µs", us);
}

std::string bytes_text(std::int64_t bytes) {
    const auto value = static_cast<double>(bytes);
    if (value >= 1 << 30) return fmt::format("{:.2f} GiB", value / (1 << 30));
    if (value >= 1 << 20) return fmt::format("{:.1f} MiB", value / (1 << 20));
    if (value >= 1 << 10) return fmt::format("{:.1f} KiB", value / (1 << 10));
    return fmt::format("{} bytes", bytes);
}

std::string percent_text(double percent) {
    return fmt::format("{:.1f} %", percent);
}

std::string measures_disagree(const AdviceFacts& f, const WaitingForOne& waiting) {
    const std::optional<int> latest = latest_rank(f.stragglers);
    return fmt::format(
        "Which rank is late is unknown, because the ranks' critical paths wait most for rank {}, and over "
        "all "
        "collectives {}.",
        waiting.rank, latest ? fmt::format("rank {} arrives last", *latest) : "no rank arrives last");
}

std::vector<std::string> what_cannot_be_said(const AdviceFacts& f) {
    std::vector<std::string> notes;
    if (!f.device_work && !f.trace.ranks.empty()) {
        notes.emplace_back("Where the time went is unknown, because the trace has no device work.");
    }
    if (!f.on_host.library.empty()) {
        notes.push_back(
            fmt::format("How much of {0}'s communication compute hides, and what a change would gain, is "
                        "unknown, because "
                        "{0} works on host threads{1}.",
                        f.on_host.library,
                        f.device_work ? "" : ", and the trace has no device work that a replay could move"));
    }
    if (const auto waiting = waiting_for_one(f); waiting && waiting->rank != latest_rank(f.stragglers))
        notes.push_back(measures_disagree(f, *waiting));
    std::set<std::string_view> hosts;
    for (const store::Rank& rank : f.trace.ranks) hosts.insert(rank.host);
    const bool matters = f.percent_of_step(f.exposed.all_us) > kLinkPercent;
    if (matters && hosts.size() > 1 && !f.links.judged) {
        notes.emplace_back(
            "Whether a link is slow is unknown, because the trace has neither the links' nominal "
            "bandwidth "
            "nor large collectives in several groups.");
    }
    return notes;
}

void suggest_less_memory(const AdviceFacts& f, Finding& finding) {
    finding.change = "Shard over more ranks, checkpoint activations, make the batch or the units smaller.";
    Settings settings(f);
    settings.add("data.batch", "", "data.batch = ... (smaller)");
    const std::string_view checkpointing = f.config("memory.activation_checkpointing");
    if (checkpointing.empty() || checkpointing == "none")
        settings.add("memory.activation_checkpointing", "module:Block");
    finding.job_setting = settings.text;
    finding.pytorch = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; checkpoint_wrapper(block)";
}

}  // namespace shardscope::traces::analysis
