#include "traces/analysis/memory/device_account.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/memory/memory_curves.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// A counter of what the device uses; NVML's includes other programs.
constexpr std::array<std::string_view, 3> kUsedCounters = {"gpu_memory_used_bytes", "memory_used_bytes",
                                                           "device_bytes"};

std::optional<std::int64_t> value_at(const ByteCurve& curve, std::int64_t time) {
    const auto after = std::upper_bound(curve.time.begin(), curve.time.end(), time);
    if (after == curve.time.begin()) return std::nullopt;
    return curve.bytes[static_cast<std::size_t>(after - curve.time.begin()) - 1];
}

std::optional<std::int64_t> first_from(const ByteCurve& curve, std::int64_t time) {
    const auto at = std::lower_bound(curve.time.begin(), curve.time.end(), time);
    if (at == curve.time.end()) return std::nullopt;
    return curve.bytes[static_cast<std::size_t>(at - curve.time.begin())];
}

ByteCurve counter_curve(const store::Trace& trace, store::RankIndex rank, std::string_view name) {
    ByteCurve curve;
    const auto id = trace.strings.find(name);
    const store::Counters& counters = trace.counters;
    for (std::size_t i = 0; id && i < counters.size(); ++i) {
        if (counters.rank[i] != rank.value || counters.name[i] != *id) continue;
        curve.time.push_back(counters.time[i]);
        curve.bytes.push_back(counter_bytes(counters.value[i]));
    }
    return curve;
}

ByteCurve used_curve(const store::Trace& trace, store::RankIndex rank) {
    for (const std::string_view name : kUsedCounters) {
        ByteCurve curve = counter_curve(trace, rank, name);
        if (!curve.empty()) return curve;
    }
    return {};
}

// When the rank created NCCL's communicators.
IntervalSet communicator_times(const store::Trace& trace, store::RankIndex rank) {
    std::vector<Interval> times;
    const store::HostRanges& ranges = trace.ranges;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const std::string_view name = trace.strings[ranges.name[i]];
        const bool creates = name.starts_with("ncclCommInit") || name.starts_with("ncclCommSplit");
        if (creates && trace.threads[ranges.thread[i]].rank == rank)
            times.push_back({ranges.start[i], ranges.end[i]});
    }
    return make_union(std::move(times));
}

}  // namespace

void DeviceAccount::close() {
    if (!used || !allocated || !cached) return;
    other = *used - *allocated - *cached - nccl.value_or(0) - context.value_or(0);
}

DeviceAccount device_account(const store::Trace& trace, store::RankIndex rank, std::string moment,
                             std::int64_t time) {
    DeviceAccount account;
    account.moment = std::move(moment);
    account.time = time;
    if (const std::int64_t total = trace.ranks[rank.at()].device_memory; total > 0) account.total = total;
    const ByteCurve used = used_curve(trace, rank);
    const ByteCurve reserved = counter_curve(trace, rank, kReservedCounter);
    account.used = value_at(used, time);
    if (account.used && account.total)
        account.free = std::max<std::int64_t>(*account.total - *account.used, 0);
    const IntervalSet created = communicator_times(trace, rank);
    const auto reserved_at = [&](std::int64_t t) { return value_at(reserved, t).value_or(0); };
    if (!used.empty() && used.time.front() <= time && !reserved.empty() &&
        reserved_at(used.time.front()) == 0 &&
        (created.empty() || created.front().start >= used.time.front())) {
        account.context = used.bytes.front();
    }
    for (const Interval& creation : created) {
        const auto before = value_at(used, creation.start), after = first_from(used, creation.end);
        if (creation.end > time || !before || !after) continue;
        const std::int64_t grown =
            *after - *before - (reserved_at(creation.end) - reserved_at(creation.start));
        account.nccl = account.nccl.value_or(0) + std::max<std::int64_t>(grown, 0);
    }
    return account;
}

Fields<DeviceAccount> device_account_fields() {
    using A = DeviceAccount;
    static constexpr Field<A> kFields[] = {
        {{"moment", "Moment", Unit::text, "The moment of the account."}, value_of<&A::moment>},
        {{"time_ns", "At", Unit::ns, "When it was."}, value_of<&A::time>},
        {{"allocated_bytes", "Allocated", Unit::bytes, "In blocks that the program has."},
         value_of<&A::allocated>},
        {{"cached_bytes", "Cached", Unit::bytes, "Reserved by the allocator, in no such block."},
         value_of<&A::cached>},
        {{"nccl_bytes", "NCCL", Unit::bytes, "What creating communicators added to the used bytes."},
         value_of<&A::nccl>},
        {{"context_bytes", "Context", Unit::bytes,
          "Used before the allocator had anything: the CUDA context, its modules, other programs."},
         value_of<&A::context>},
        {{"other_bytes", "Other", Unit::bytes,
          "The rest of the used bytes, with what is unknown to its left."},
         value_of<&A::other>},
        {{"used_bytes", "Used", Unit::bytes, "What the device uses: the sum of the columns before."},
         value_of<&A::used>},
        {{"free_bytes", "Free", Unit::bytes, "What the device has left."}, value_of<&A::free>},
        {{"total_bytes", "Total", Unit::bytes, "Memory of the device."}, value_of<&A::total>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
