#include "traces/store/columns/owners.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/device_streams.h"
#include "traces/store/error.h"

namespace shardscope::traces::store {

namespace {
constexpr std::size_t kMaxIndex = std::numeric_limits<std::uint16_t>::max();
}

void check_size(std::size_t size, const char* what, const Trace& trace) {
    if (size <= kMaxIndex) return;
    throw StoreError(fmt::format(
        "{} has {} {}, more than the {} that a trace can hold; open fewer ranks or a shorter part",
        trace.path.empty() ? "the trace" : trace.path, size, what, kMaxIndex));
}

void check_rows(std::size_t rows, const char* what, const Trace& trace) {
    if (rows <= kRowsAtMost) return;
    throw StoreError(fmt::format(
        "{} has {} {}, more than the {} that a trace can hold; open fewer ranks or a shorter part",
        trace.path.empty() ? "the trace" : trace.path, rows, what, kRowsAtMost));
}

RankLookup::RankLookup(const PendingRows& rows, Trace& trace) {
    std::map<int, Rank> ranks;
    for (const schema::RankRow& r : rows.ranks) {
        const auto [rank, is_new] = ranks.try_emplace(r.rank, Rank{.number = r.rank,
                                                                   .device = r.device,
                                                                   .global_pid = r.global_pid,
                                                                   .global_tid = r.global_tid,
                                                                   .host = r.host,
                                                                   .device_name = r.device_name,
                                                                   .device_memory = r.device_memory,
                                                                   .local_rank = r.local_rank,
                                                                   .cpus = r.cpus});
        for (std::size_t axis = 0; is_new && axis < schema::kMeshAxes.size(); ++axis)
            rank->second.place[axis] = r.*schema::kMeshAxes[axis].place;
    }
    const auto make_up = [&](int number, int device) {
        ranks.try_emplace(number, Rank{.number = number,
                                       .device = device,
                                       .global_pid = 0,
                                       .global_tid = 0,
                                       .host = {},
                                       .device_name = {},
                                       .cpus = {}});
    };
    int last = -1;  // consecutive rows mostly have the same rank
    for (const auto& r : rows.collectives) {
        if (std::exchange(last, r.rank) != r.rank || r.rank < 0) make_up(r.rank, r.rank);
    }
    for (const SlotKey& rank : rows.memory_ranks.keys())
        make_up(static_cast<int>(rank.a), static_cast<int>(rank.a));
    for (const auto& r : rows.counters) {
        if (r.rank >= 0) make_up(r.rank, r.rank);
    }
    for (const auto& r : rows.steps) make_up(r.rank, r.rank);
    for (const auto& r : rows.segments) make_up(r.rank, r.rank);
    for (const auto& r : trace.flight) make_up(r.rank, r.rank);
    for (const auto& r : rows.streams) make_up(r.rank, r.rank);
    for (const auto& r : rows.thread_rows) {
        if (r.rank >= 0) make_up(r.rank, r.rank);
    }
    std::set<int> devices;
    std::map<std::int64_t, int> ranks_of_process;
    for (const auto& [number, rank] : ranks) {
        devices.insert(rank.device);
        ++ranks_of_process[rank.global_pid];
    }
    int unused = 0;
    for (const SlotKey& lane : rows.device.lanes.keys()) {
        const int device = PendingDevice::device_of(lane);
        const auto process = ranks_of_process.find(lane.a);
        if (lane.a != 0 && process != ranks_of_process.end() && process->second == 1) continue;
        if (!devices.insert(device).second) continue;
        while (ranks.contains(unused)) ++unused;
        make_up(ranks.contains(device) ? unused : device, device);
    }
    check_size(ranks.size(), "ranks", trace);
    for (auto& [number, rank] : ranks) {
        const RankIndex index(trace.ranks.size());
        by_number_.emplace(number, index);
        by_device_.emplace(rank.device, index);
        by_place_.emplace(std::pair(rank.device, rank.global_pid), index);
        if (rank.global_pid != 0) by_pid_.emplace(rank.global_pid, index);
        trace.ranks.push_back(std::move(rank));
    }
    find_further_devices(rows);
}

void RankLookup::find_further_devices(const PendingRows& rows) {
    std::map<std::int64_t, std::set<int>> of_process;
    for (const SlotKey& lane : rows.device.lanes.keys()) {
        const int device = PendingDevice::device_of(lane);
        if (of_pid(lane.a).known() && !by_place_.contains({device, lane.a}))
            of_process[lane.a].insert(device);
    }
    for (const auto& [process, devices] : of_process) {
        std::size_t nth = 0;
        for (const int device : devices) further_[{device, process}] = ++nth;
    }
}

RankIndex RankLookup::of_device(int device, std::int64_t pid) const {
    const auto it = by_place_.find({device, pid});
    if (it != by_place_.end()) return it->second;
    const RankIndex only = of_pid(pid);
    return only.known() ? only : by_device_.at(device);
}

int RankLookup::stream_of(int device, std::int64_t pid, int stream) const {
    const auto it = further_.find({device, pid});
    return it != further_.end() ? stream_of_device(it->second, stream) : stream;
}

ThreadLookup::ThreadLookup(PendingRows& rows, const RankLookup& ranks, Trace& trace) {
    for (const SlotKey& thread : rows.threads.keys()) slots_.emplace(thread.a, slots_.size());
    for (const auto& t : rows.thread_rows) {
        if (t.rank >= 0 && slots_.emplace(t.global_tid, slots_.size()).second) rows.threads.of(t.global_tid);
    }
    threads_.resize(slots_.size());
    for (const auto& [tid, slot] : slots_) threads_[slot].global_tid = tid;
    for (const auto& t : rows.thread_rows) {
        const auto it = slots_.find(t.global_tid);
        if (it == slots_.end()) continue;
        HostThread& thread = threads_[it->second];
        if (!t.name.empty()) thread.name = t.name;
        if (t.rank >= 0) thread.rank = ranks.of_number(t.rank);
    }
    for (const schema::StepRow& s : rows.steps) settle(s.global_tid, ranks.of_number(s.rank));
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) settle(trace.ranks[r].global_tid, RankIndex(r));
    for (HostThread& thread : threads_) {
        if (!thread.rank.known()) thread.rank = ranks.of_pid(pid_of(thread.global_tid));
    }
}

void ThreadLookup::settle_by_launches(const std::vector<std::uint32_t>& call_thread,
                                      const DeviceEvents& device) {
    const bool open =
        std::any_of(threads_.begin(), threads_.end(), [](const HostThread& t) { return !t.rank.known(); });
    if (!open) return;
    std::map<std::uint32_t, std::map<RankIndex, std::size_t>> votes;  // slot -> rank -> events
    for (std::size_t e = 0; e < device.size(); ++e) {
        if (device.launch[e] < 0) continue;
        const std::uint32_t slot = call_thread[static_cast<std::size_t>(device.launch[e])];
        if (!threads_[slot].rank.known()) ++votes[slot][RankIndex(device.rank[e])];
    }
    for (const auto& [slot, by_rank] : votes) {
        const auto most = std::max_element(by_rank.begin(), by_rank.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        threads_[slot].rank = most->first;
    }
}

void ThreadLookup::finish(Trace& trace) {
    check_size(threads_.size(), "threads", trace);
    std::vector<std::size_t> order(threads_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t i) { return std::pair(threads_[i].rank, threads_[i].global_tid); };
        return key(a) < key(b);
    });
    index_.resize(threads_.size());
    for (const std::size_t slot : order) {
        index_[slot] = static_cast<std::uint16_t>(trace.threads.size());
        by_id_.emplace(threads_[slot].global_tid, index_[slot]);
        trace.threads.push_back(std::move(threads_[slot]));
    }
}

std::vector<std::uint16_t> ThreadLookup::operator()(const std::vector<std::uint32_t>& slots) const {
    std::vector<std::uint16_t> column;
    column.reserve(slots.size());
    for (const std::uint32_t slot : slots) column.push_back(index_[slot]);
    return column;
}

void ThreadLookup::settle(std::int64_t tid, RankIndex rank) {
    const auto it = slots_.find(tid);
    if (it != slots_.end() && !threads_[it->second].rank.known()) threads_[it->second].rank = rank;
}

}  // namespace shardscope::traces::store
