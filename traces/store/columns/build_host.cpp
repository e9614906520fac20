// Activity of host threads: runtime calls, ranges, marks, steps.
#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/schema/sort_rows.h"
#include "traces/store/columns/build_columns.h"
#include "traces/store/columns/names.h"
#include "traces/store/columns/nesting.h"
#include "traces/store/columns/row_order.h"
#include "traces/store/on_cores.h"

namespace shardscope::traces::store {

namespace {

// The kind of a range, found once for each name and domain.
class RangeKinds {
  public:
    RangeKinds(const PendingRows& rows, const StringTable& strings)
        : rows_(rows), strings_(strings), known_(strings.size()) {}

    RangeKind of(schema::StringId name, std::uint32_t domain, bool ours) {
        Known& known = known_[static_cast<std::size_t>(name)];
        if (known.domain != domain + 1) {
            const std::string_view text = strings_[name], in = strings_[rows_.domain_name(domain)];
            known = {domain + 1, range_kind(text, in, true), range_kind(text, in, false)};
        }
        return ours ? known.ours : known.others;
    }

  private:
    struct Known {
        std::uint32_t domain = 0;  // the latest one requested, + 1
        RangeKind ours{}, others{};
    };
    const PendingRows& rows_;
    const StringTable& strings_;
    std::vector<Known> known_;  // by name
};

// An external id is an operator's only in the domains of Kineto's operators.
void keep_operator_ids(PendingRows& rows, const StringTable& strings) {
    std::vector<std::int64_t>& ids = rows.ranges.external_id;
    if (ids.empty()) return;
    std::vector<bool> counts(rows.domains.size());
    for (std::size_t d = 0; d < counts.size(); ++d) {
        const std::string_view name = strings[rows.domain_name(static_cast<std::uint32_t>(d))];
        counts[d] = name == kOperatorDomain || name == kAnnotationDomain;
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!counts[rows.ranges.domain[i]]) ids[i] = 0;
    }
}

}  // namespace

void build_calls(PendingCalls& rows, Trace& trace) {
    const auto order = row_order(rows.size(), [&](std::size_t a, std::size_t b) {
        return rows.start[a] != rows.start[b] ? rows.start[a] < rows.start[b] : rows.end[a] > rows.end[b];
    });
    RuntimeCalls& c = trace.runtime;
    const auto take = [&](auto& from, auto& to) { reorder_into(from, order, to); };
    take(rows.start, c.start);
    take(rows.end, c.end);
    take(rows.correlation, c.correlation);
    take(rows.name, c.name);
    reorder(rows.thread, order);
}

void build_ranges(PendingRows& all, const ThreadLookup& threads, Trace& trace) {
    PendingRanges& rows = all.ranges;
    fill_rare(rows.external_id, rows.size(), std::int64_t{0});
    fill_rare(rows.detail, rows.size(), schema::StringId::empty);
    keep_operator_ids(all, trace.strings);
    const auto order = row_order(rows.size(), [&](std::size_t a, std::size_t b) {
        return rows.start[a] != rows.start[b] ? rows.start[a] < rows.start[b] : rows.end[a] > rows.end[b];
    });
    HostRanges& h = trace.ranges;
    const auto take = [&](auto& from, auto& to) { reorder_into(from, order, to); };
    take(rows.start, h.start);
    take(rows.end, h.end);
    take(rows.name, h.name);
    take(rows.module, h.module);
    take(rows.detail, h.detail);
    reorder(rows.domain, order);
    reorder(rows.thread, order);
    reorder(rows.external_id, order);
    h.thread = threads(rows.thread);
    h.kind.resize(h.size());
    const RuntimeCalls& calls = trace.runtime;
    Nesting nesting;
    on_cores(cores_for(h.size()), 2, [&](std::size_t half) {
        if (half == 0) {
            nesting = nest(h.start, h.end, h.thread, calls.start, calls.thread);
            return;
        }
        RangeKinds kinds(all, trace.strings);
        for (std::size_t i = 0; i < h.size(); ++i)
            h.kind[i] = kinds.of(h.name[i], rows.domain[i], h.module[i] >= 0);
    });
    h.parent = std::move(nesting.parent);
    h.depth = std::move(nesting.depth);
    trace.runtime.range = std::move(nesting.innermost);
}

void build_marks(PendingMarks& rows, const ThreadLookup& threads, Trace& trace) {
    const auto order =
        row_order(rows.size(), [&](std::size_t a, std::size_t b) { return rows.time[a] < rows.time[b]; });
    reorder(rows.thread, order);
    trace.marks.thread = threads(rows.thread);
    reorder_into(rows.time, order, trace.marks.time);
    reorder_into(rows.name, order, trace.marks.name);
}

void build_samples(std::vector<schema::SampleRow>& rows, const ThreadLookup& threads, Trace& trace) {
    schema::sort_rows(rows,
                      [](const schema::SampleRow& a, const schema::SampleRow& b) { return a.time < b.time; });
    Samples& s = trace.samples;
    for (const schema::SampleRow& r : rows) {
        s.time.push_back(r.time);
        s.weight.push_back(r.weight);
        s.event.push_back(r.event);
        s.stack.push_back(r.stack);
        s.cpu.push_back(r.cpu);
        s.thread.push_back(static_cast<std::uint16_t>(threads.find(r.global_tid)));
    }
}

namespace {

// Ranges "ProfilerStep#N" as steps of their threads' ranks.
struct RangeStep {
    Step step;
    std::uint16_t thread = 0;
};

// If a step occurs on several threads of a rank, keeps only the one that lasted longest.
void keep_one_thread(std::vector<RangeStep>& steps) {
    std::map<std::pair<RankIndex, std::int64_t>, const RangeStep*> longest;  // by rank and number
    const auto length = [](const RangeStep& s) { return s.step.end - s.step.start; };
    for (const RangeStep& s : steps) {
        const RangeStep*& best = longest[{s.step.rank, s.step.number}];
        if (best == nullptr || length(s) > length(*best)) best = &s;
    }
    std::map<std::pair<RankIndex, std::int64_t>, std::uint16_t> kept;
    for (const auto& [key, step] : longest) kept[key] = step->thread;
    std::erase_if(steps, [&](const RangeStep& s) {
        return s.thread != kept.at({s.step.rank, s.step.number});
    });
}

// If a process drives several devices, each of them a rank, one thread's steps apply to all of them.
void share_steps(Trace& trace) {
    constexpr int kDevicesAtMost = 64;                   // of one process; only artificial files have more
    std::map<std::int64_t, RankIndex> first_with_steps;  // by process
    std::map<std::int64_t, int> ranks_of;                // by process
    std::vector<bool> has_steps(trace.ranks.size(), false);
    for (const Step& step : trace.steps) has_steps[step.rank.at()] = true;
    for (std::size_t r = 0; r < has_steps.size(); ++r) {
        ++ranks_of[trace.ranks[r].global_pid];
        if (has_steps[r]) first_with_steps.try_emplace(trace.ranks[r].global_pid, RankIndex(r));
    }
    std::vector<std::vector<Step>> own(trace.ranks.size());
    for (const Step& step : trace.steps) own[step.rank.at()].push_back(step);
    for (std::size_t r = 0; r < has_steps.size(); ++r) {
        const std::int64_t process = trace.ranks[r].global_pid;
        const auto from = first_with_steps.find(process);
        if (has_steps[r] || process == 0 || from == first_with_steps.end()) continue;
        if (ranks_of[process] > kDevicesAtMost) continue;
        for (Step step : own[from->second.at()]) {
            step.rank = RankIndex(r);
            trace.steps.push_back(step);
        }
    }
}

}  // namespace

void build_steps(const PendingRows& rows, const RankLookup& ranks, Trace& trace) {
    for (const schema::StepRow& s : rows.steps) {
        trace.steps.push_back(
            {.rank = ranks.of_number(s.rank), .number = s.step, .start = s.start, .end = s.end, .loss = {}});
    }
    if (rows.steps.empty()) {
        std::vector<RangeStep> found;
        for (std::size_t i = 0; i < trace.ranges.size(); ++i) {
            if (trace.ranges.kind[i] != RangeKind::step) continue;
            const RankIndex rank = trace.threads[trace.ranges.thread[i]].rank;
            const auto number = profiler_step(trace.strings[trace.ranges.name[i]]);
            if (!rank.known() || !number) continue;
            found.push_back({.step = {.rank = rank,
                                      .number = *number,
                                      .start = trace.ranges.start[i],
                                      .end = trace.ranges.end[i],
                                      .loss = {}},
                             .thread = trace.ranges.thread[i]});
        }
        keep_one_thread(found);
        for (const RangeStep& s : found) trace.steps.push_back(s.step);
        share_steps(trace);
    }
    schema::sort_rows(trace.steps, [](const Step& a, const Step& b) {
        return std::tie(a.rank, a.start) < std::tie(b.rank, b.start);
    });
    std::unordered_map<std::int64_t, double> losses;
    for (const schema::LossRow& l : rows.losses) losses[l.step] = l.loss;
    for (Step& s : trace.steps) {
        if (const auto it = losses.find(s.number); it != losses.end()) s.loss = it->second;
    }
}

}  // namespace shardscope::traces::store
