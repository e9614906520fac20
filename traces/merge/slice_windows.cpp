#include "traces/merge/slice_windows.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

#include <fmt/core.h>

#include "traces/merge/part.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::merge {

namespace {

constexpr std::string_view kStepPrefix = "ProfilerStep#";

struct StepTime {
    std::int64_t owner = 0;  // rank, or process if it has no rank
    bool of_rank = true;
    std::int64_t step = 0, start = 0, end = 0;
};

}  // namespace

bool SliceChoice::has_rank(std::int64_t rank) const {
    return ranks.empty() || std::any_of(ranks.begin(), ranks.end(),
                                        [&](const auto& r) { return rank >= r.first && rank <= r.second; });
}

bool SliceChoice::has_step(std::int64_t step) const {
    return (!first_step || step >= *first_step) && (!last_step || step <= *last_step);
}

bool holds(const SliceWindows::Windows& windows, std::int64_t time) {
    return std::any_of(windows.begin(), windows.end(), [&](const Window& w) { return w.holds(time); });
}

bool meets(const SliceWindows::Windows& windows, std::int64_t start, std::int64_t end) {
    return std::any_of(windows.begin(), windows.end(), [&](const Window& w) { return w.meets(start, end); });
}

SliceWindows::SliceWindows(Part& part, const SliceChoice& choice) {
    choose_ranks(part, choice);
    index_owners(part, choice);
    const Window chosen{choice.from_ns.value_or(INT64_MIN), choice.to_ns.value_or(INT64_MAX)};
    for (auto& [rank, windows] : by_rank_) windows = {chosen};
    for (auto& [process, windows] : by_process_) windows = {chosen};
    if (choice.ranks.empty()) nobody_ = {chosen};
    if (choice.first_step || choice.last_step) choose_steps(part, choice);
    hull_ = {INT64_MAX, INT64_MIN};
    for (const auto* owners : {&by_rank_, &by_process_}) {
        for (const auto& [owner, windows] : *owners) {
            for (const Window& w : windows) hull_ = {std::min(hull_.from, w.from), std::max(hull_.to, w.to)};
        }
    }
    if (hull_.to < hull_.from) hull_ = chosen;
    if (!nobody_.empty()) nobody_ = {hull_};
}

void SliceWindows::choose_ranks(Part& part, const SliceChoice& choice) {
    for (const PartRank& rank : part.ranks) {
        if (!choice.has_rank(rank.rank)) continue;
        ranks_.insert(rank.rank);
        by_rank_[rank.rank];
        processes_.insert(rank.global_pid);
    }
    if (choice.ranks.empty() || !ranks_.empty()) return;
    throw store::StoreError(part.ranks.empty()
                                ? fmt::format("--rank: {} has no ranks; omit the option", part.path)
                                : fmt::format("--rank: {} has no such rank; it has {} to {}", part.path,
                                              part.ranks.front().rank, part.ranks.back().rank));
}

// Threads and devices of ranks that are not chosen also have an owner: one without windows.
void SliceWindows::index_owners(const Part& part, const SliceChoice& choice) {
    for (const PartRank& rank : part.ranks) {
        rank_of_process_.emplace(rank.global_pid, rank.rank);  // keeps the lowest: the ranks are sorted
        rank_of_device_.emplace(std::pair(rank.device, rank.global_pid), rank.rank);
        rank_of_device_.emplace(std::pair(rank.device, std::int64_t{0}), rank.rank);
    }
    rank_of_thread_ = part.rank_of_thread;
    if (!choice.ranks.empty()) return;
    for (const auto& [process, name] : part.processes) {
        if (rank_of_process_.contains(process)) continue;
        by_process_[process];
        processes_.insert(process);
    }
}

// A window of an owner spans consecutive steps, from the start of the first to the end of the last.
void SliceWindows::choose_steps(Part& part, const SliceChoice& choice) {
    std::vector<StepTime> all;
    if (part.has_table("SHARD_STEPS")) {
        store::Statement row(part.database, "SELECT rank, step, start, \"end\" FROM SHARD_STEPS");
        while (row.step())
            all.push_back({row.integer(0), true, row.integer(1), row.integer(2), row.integer(3)});
    }
    if (all.empty() && part.has_table("NVTX_EVENTS")) {
        const bool registered =
            part.database.has_column("NVTX_EVENTS", "textId") && part.has_table("StringIds");
        const char* text =
            registered ? "coalesce(text, (SELECT value FROM StringIds s WHERE s.id = n.textId))" : "text";
        store::Statement row(part.database,
                             fmt::format("SELECT globalTid, {0}, start, \"end\" FROM NVTX_EVENTS n WHERE "
                                         "eventType IN ({1}, {2}) AND \"end\" NOT NULL AND {0} LIKE '{3}%'",
                                         text, schema::kNvtxPushPop, schema::kNvtxStartEnd, kStepPrefix));
        while (row.step()) {
            const std::string_view digits = row.text(1).substr(kStepPrefix.size());
            std::int64_t step = 0;
            if (std::from_chars(digits.data(), digits.data() + digits.size(), step).ec != std::errc())
                continue;
            const std::int64_t thread = row.integer(0);
            const auto its_rank = rank_of_thread_.find(thread);
            const auto lowest = rank_of_process_.find(thread & schema::kPidMask);
            const bool ranked = its_rank != rank_of_thread_.end() || lowest != rank_of_process_.end();
            const std::int64_t owner = its_rank != rank_of_thread_.end()  ? its_rank->second
                                       : lowest != rank_of_process_.end() ? lowest->second
                                                                          : thread & schema::kPidMask;
            all.push_back({owner, ranked, step, row.integer(2), row.integer(3)});
        }
    }
    if (all.empty())
        throw store::StoreError(fmt::format("--step: {} has no steps; omit the option", part.path));
    std::sort(all.begin(), all.end(), [](const StepTime& a, const StepTime& b) {
        return std::tie(a.of_rank, a.owner, a.start) < std::tie(b.of_rank, b.owner, b.start);
    });

    std::map<std::pair<bool, std::int64_t>, Windows> windows;
    const StepTime* before = nullptr;
    for (const StepTime& step : all) {
        if (choice.has_step(step.step)) {
            Windows& own = windows[{step.of_rank, step.owner}];
            const bool follows = before != nullptr && before->of_rank == step.of_rank &&
                                 before->owner == step.owner && choice.has_step(before->step);
            if (follows) {
                own.back().to = std::max(own.back().to, step.end);
            } else {
                own.push_back({step.start, step.end});
            }
            steps_.insert(step.step);
        }
        before = &step;
    }
    if (steps_.empty()) {
        const auto [first, last] = std::minmax_element(
            all.begin(), all.end(), [](const StepTime& a, const StepTime& b) { return a.step < b.step; });
        throw store::StoreError(
            fmt::format("--step: {} has no such step; it has {} to {}", part.path, first->step, last->step));
    }
    const auto cut = [&](bool of_rank, std::map<std::int64_t, Windows>& owners) {
        for (auto& [owner, chosen] : owners) {
            Windows both;
            for (const Window& w : windows[{of_rank, owner}]) {
                const Window common{std::max(w.from, chosen.front().from), std::min(w.to, chosen.front().to)};
                if (common.from < common.to) both.push_back(common);
            }
            chosen = std::move(both);
        }
    };
    cut(true, by_rank_);
    cut(false, by_process_);
}

const SliceWindows::Windows& SliceWindows::of_rank(std::int64_t rank) const {
    if (rank < 0) return nobody_;
    const auto it = by_rank_.find(rank);
    return it != by_rank_.end() ? it->second : none_;
}

const SliceWindows::Windows& SliceWindows::of_process(std::int64_t process) const {
    if (const auto it = rank_of_process_.find(process); it != rank_of_process_.end())
        return of_rank(it->second);
    const auto it = by_process_.find(process);
    return it != by_process_.end() ? it->second : nobody_;
}

const SliceWindows::Windows& SliceWindows::of_thread(std::int64_t thread) const {
    const auto it = rank_of_thread_.find(thread);
    return it != rank_of_thread_.end() ? of_rank(it->second) : of_process(thread & schema::kPidMask);
}

const SliceWindows::Windows& SliceWindows::of_device(std::int64_t device, std::int64_t process) const {
    auto it = rank_of_device_.find({device, process});
    // A further device of a process belongs to the process's rank, even if other ranks use it, too.
    if (it == rank_of_device_.end() && process != 0 && rank_of_process_.contains(process))
        return of_process(process);
    if (it == rank_of_device_.end()) it = rank_of_device_.find({device, 0});
    return it != rank_of_device_.end() ? of_rank(it->second) : of_process(process);
}

const SliceWindows::Windows& SliceWindows::of_nobody() const {
    return nobody_;
}

bool SliceWindows::has_pid(std::int64_t pid) const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [&](std::int64_t process) { return pid_number(process) == pid; });
}

}  // namespace shardscope::traces::merge
