#include "traces/store/owners.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "traces/store/error.h"

namespace shardscope::traces {

namespace {
constexpr std::size_t kMaxIndex = std::numeric_limits<std::uint16_t>::max();
}

void check_size(std::size_t size, const char* what, const Trace& trace) {
    if (size <= kMaxIndex) return;
    throw StoreError(fmt::format("{} has {} {}, more than the {} that a trace can hold; open a part of it",
                                 trace.path.empty() ? "the trace" : trace.path, size, what, kMaxIndex));
}

RankIndex::RankIndex(const PendingRows& rows, Trace& trace) {
    std::map<int, Rank> ranks;
    for (const RankRow& r : rows.ranks) {
        ranks.try_emplace(r.rank, Rank{.number = r.rank,
                                       .device = r.device,
                                       .global_pid = r.global_pid,
                                       .global_tid = r.global_tid,
                                       .host = r.host,
                                       .device_name = r.device_name});
    }
    const auto make_up = [&](int number, int device) {
        ranks.try_emplace(number, Rank{.number = number,
                                       .device = device,
                                       .global_pid = 0,
                                       .global_tid = 0,
                                       .host = {},
                                       .device_name = {}});
    };
    for (const auto& r : rows.collectives) make_up(r.rank, r.rank);
    for (const auto& r : rows.memory) make_up(r.rank, r.rank);
    for (const auto& r : rows.counters) {
        if (r.rank >= 0) make_up(r.rank, r.rank);
    }
    for (const auto& r : rows.steps) make_up(r.rank, r.rank);
    for (const auto& r : rows.segments) make_up(r.rank, r.rank);
    for (const auto& r : rows.flight) make_up(r.rank, r.rank);
    for (const auto& r : rows.streams) make_up(r.rank, r.rank);
    for (const auto& r : rows.threads) {
        if (r.rank >= 0) make_up(r.rank, r.rank);
    }
    std::set<int> devices;
    for (const auto& [number, rank] : ranks) devices.insert(rank.device);
    int unused = 0;
    for (const auto& e : rows.device) {
        if (!devices.insert(e.device).second) continue;
        while (ranks.contains(unused)) ++unused;
        make_up(ranks.contains(e.device) ? unused : e.device, e.device);
    }
    check_size(ranks.size(), "ranks", trace);
    for (auto& [number, rank] : ranks) {
        const auto index = static_cast<std::uint16_t>(trace.ranks.size());
        by_number_.emplace(number, index);
        by_device_.emplace(rank.device, index);
        if (rank.global_pid != 0) by_pid_.emplace(rank.global_pid, index);
        trace.ranks.push_back(std::move(rank));
    }
}

std::uint16_t RankIndex::of_device(int device, std::int64_t pid, const Trace& trace) const {
    const auto [first, last] = by_device_.equal_range(device);
    for (auto it = first; it != last; ++it) {
        if (trace.ranks[it->second].global_pid == pid) return it->second;
    }
    return first->second;
}

ThreadIndex::ThreadIndex(const PendingRows& rows, const RankIndex& ranks, Trace& trace) {
    for (const auto& r : rows.ranges) seen_.try_emplace(r.global_tid);
    for (const auto& r : rows.marks) seen_.try_emplace(r.global_tid);
    for (const auto& r : rows.runtime) seen_.try_emplace(r.global_tid);
    for (const auto& t : rows.threads) {
        if (t.rank < 0 && !seen_.contains(t.global_tid)) continue;
        HostThread& thread = seen_[t.global_tid];
        if (!t.name.empty()) thread.name = t.name;
        if (t.rank >= 0) thread.rank = ranks.of_number(t.rank);
    }
    for (const StepRow& s : rows.steps) settle(s.global_tid, ranks.of_number(s.rank));
    for (std::size_t r = 0; r < trace.ranks.size(); ++r)
        settle(trace.ranks[r].global_tid, static_cast<int>(r));
    for (auto& [tid, thread] : seen_) settle(tid, ranks.of_pid(pid_of(tid)));
}

void ThreadIndex::settle_by_launches(const std::vector<RuntimeRow>& runtime, const DeviceEvents& device) {
    std::map<std::int64_t, std::map<int, std::size_t>> votes;
    for (std::size_t e = 0; e < device.size(); ++e) {
        if (device.launch[e] < 0) continue;
        const std::int64_t tid = runtime[static_cast<std::size_t>(device.launch[e])].global_tid;
        if (seen_.at(tid).rank < 0) ++votes[tid][device.rank[e]];
    }
    for (const auto& [tid, by_rank] : votes) {
        const auto most = std::max_element(by_rank.begin(), by_rank.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        settle(tid, most->first);
    }
}

void ThreadIndex::finish(Trace& trace) {
    check_size(seen_.size(), "threads", trace);
    for (auto& [tid, thread] : seen_) {
        thread.global_tid = tid;
        trace.threads.push_back(std::move(thread));
    }
    std::stable_sort(trace.threads.begin(), trace.threads.end(),
                     [](const HostThread& a, const HostThread& b) {
                         return static_cast<unsigned>(a.rank) < static_cast<unsigned>(b.rank);
                     });
    for (std::size_t i = 0; i < trace.threads.size(); ++i) {
        index_.emplace(trace.threads[i].global_tid, static_cast<std::uint16_t>(i));
    }
}

void ThreadIndex::settle(std::int64_t tid, int rank) {
    const auto it = seen_.find(tid);
    if (it != seen_.end() && it->second.rank < 0) it->second.rank = rank;
}

}  // namespace shardscope::traces
