#include "trainer/lift/host_trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/communication/host_collectives.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/tensor_sizes.h"
#include "trainer/lift/host_memory.h"
#include "trainer/lift/host_points.h"
#include "trainer/lift/recorded_costs.h"
#include "trainer/lift/settings.h"

namespace shardscope::trainer::lift {

namespace {

using traces::analysis::HostCollective;
using traces::schema::Operation;
using traces::schema::StringId;
using traces::store::RangeKind;
using traces::store::Trace;

constexpr std::int64_t kSmall = 4096;  // bytes of an operator's inputs whose time is all overhead
constexpr int kComputeStream = 0, kLibraryStream = 1;

// Operators are named "library::operator"; those of autograd and of the process groups contain others.
bool is_operator(std::string_view name) {
    for (const std::string_view prefix : {"autograd::", "torch::", "torch.", "c10d::"})
        if (name.starts_with(prefix)) return false;
    return name.find("::") != name.npos;
}

// A collective that a rank's thread requested, and the library's thread carried out.
struct Requested {
    std::int32_t range = -1;  // c10d's, index into HostRanges
    HostCollective collective;
    std::int64_t bytes = 0;  // of the full buffer
    bool blocks = false;
};

class Conversion {
  public:
    explicit Conversion(const Trace& from) : from_(from) {
        for (std::size_t s = 0; s < from.strings.size(); ++s)
            out_.strings.intern(from.strings[static_cast<StringId>(s)]);
    }
    Trace run();

  private:
    struct Call {
        std::int64_t start = 0, end = 0;
        StringId name{};
        std::uint16_t thread = 0;
        std::int32_t range = -1;
        bool waits = false;
        int event = -1;  // index into events_
    };
    struct Event {
        std::int64_t start = 0, end = 0, bytes = 0;
        StringId name{};
        int rank = 0, stream = 0;
        int collective = -1;  // index into requested_
        std::size_t call = 0;
    };

    void copy_rest();
    void find_operators();
    void find_overheads();
    void find_collectives();
    bool works_inside(int rank, traces::analysis::Interval time) const;
    std::int64_t end_before(int rank, std::int64_t time) const;
    void add_operators();
    void add_collectives();
    void add_waits_at_gaps();
    void write();
    template <class IsOne>
    std::vector<traces::analysis::IntervalSet> ranges_by_rank(const IsOne& is_one) const;
    std::vector<traces::analysis::IntervalSet> library_copies() const;
    std::vector<traces::analysis::IntervalSet> fsdp_collectives() const;
    std::string_view text(StringId id) const { return from_.strings[id]; }
    traces::analysis::Interval time_of(std::int32_t range) const {
        const auto r = static_cast<std::size_t>(range);
        return {from_.ranges.start[r], from_.ranges.end[r]};
    }
    int rank_of(std::int32_t range) const {
        return from_.threads[from_.ranges.thread[static_cast<std::size_t>(range)]].rank.value;
    }

    const Trace& from_;
    Trace out_;
    std::vector<bool> library_threads_;                 // by thread
    std::vector<std::vector<std::int32_t>> operators_;  // by rank: the outermost, in order of start
    std::vector<bool> optimizes_;                       // by range: within the optimizer's
    struct Overheads {
        std::unordered_map<StringId, std::int64_t> of;
        std::int64_t typical = 0;
    };
    std::array<Overheads, 2> overheads_;  // by optimizes_: those of an optimizer of DTensors are larger
    std::vector<Requested> requested_;
    std::vector<Call> calls_;
    std::vector<Event> events_;
};

void Conversion::copy_rest() {
    out_.path = from_.path;
    out_.schema_version = from_.schema_version;
    out_.ended = from_.ended;
    out_.start_utc_ns = from_.start_utc_ns;
    out_.first_ns = from_.first_ns;
    out_.last_ns = from_.last_ns;
    out_.config = from_.config;
    out_.ranks = from_.ranks;
    out_.threads = from_.threads;
    out_.steps = from_.steps;
    out_.modules = from_.modules;
    out_.ranges = from_.ranges;
    for (std::size_t r = 0; r < from_.ranks.size(); ++r) {
        out_.streams.push_back({traces::store::RankIndex(r), kComputeStream, "operators"});
        out_.streams.push_back({traces::store::RankIndex(r), kLibraryStream, "collectives"});
    }
}

// The outermost operators on threads that are not the library's; those of a collective's call (copies) are
// among them.
void Conversion::find_operators() {
    const traces::store::HostRanges& ranges = from_.ranges;
    library_threads_.assign(from_.threads.size(), false);
    // 1: an operator, 2: the library's, 3: the optimizer's
    std::vector<std::int8_t> kinds(from_.strings.size(), 0);
    for (std::size_t s = 0; s < kinds.size(); ++s) {
        const std::string_view name = text(static_cast<StringId>(s));
        kinds[s] = !traces::analysis::host_library(name).empty() ? 2 : is_operator(name) ? 1 : 0;
        if (is_optimizer_name(name)) kinds[s] = 3;
    }
    for (std::size_t r = 0; r < ranges.size(); ++r)
        if (kinds[static_cast<std::size_t>(ranges.name[r])] == 2) library_threads_[ranges.thread[r]] = true;
    operators_.resize(from_.ranks.size());
    optimizes_.assign(ranges.size(), false);
    std::vector<bool> inside(ranges.size(), false);  // an operator, or within one
    for (std::size_t r = 0; r < ranges.size(); ++r) {
        const std::int32_t parent = ranges.parent[r];
        optimizes_[r] = kinds[static_cast<std::size_t>(ranges.name[r])] == 3 ||
                        (parent >= 0 && optimizes_[static_cast<std::size_t>(parent)]);
        if (parent >= 0 && inside[static_cast<std::size_t>(parent)]) {
            inside[r] = true;
            continue;
        }
        const int rank = from_.threads[ranges.thread[r]].rank.value;
        const std::int8_t kind = kinds[static_cast<std::size_t>(ranges.name[r])];
        if (rank < 0 || library_threads_[ranges.thread[r]] || ranges.kind[r] != RangeKind::operation)
            continue;
        if (kind != 1) continue;
        inside[r] = true;
        operators_[static_cast<std::size_t>(rank)].push_back(static_cast<std::int32_t>(r));
    }
}

// Times of operators whose inputs are small; a name without such takes the median of all that have them.
void Conversion::find_overheads() {
    std::array<std::map<StringId, std::vector<std::int64_t>>, 2> by_name;
    if (from_.ranges.detail.empty()) return;
    for (const std::vector<std::int32_t>& own : operators_) {
        for (const std::int32_t range : own) {
            const auto r = static_cast<std::size_t>(range);
            const auto sizes = traces::store::input_tensors(text(from_.ranges.detail[r]));
            if (!sizes || sizes->tensors == 0 || sizes->sum > kSmall) continue;
            by_name[optimizes_[r]][from_.ranges.name[r]].push_back(time_of(range).length());
        }
    }
    for (std::size_t where = 0; where < overheads_.size(); ++where) {
        std::vector<std::int64_t> all;
        for (auto& [name, times] : by_name[where])
            all.push_back(overheads_[where].of[name] = median(std::move(times)));
        overheads_[where].typical = median(std::move(all));
    }
}

// The k-th request of an operation is carried out by the first free event of the library that may be its own.
void Conversion::find_collectives() {
    std::vector<std::vector<std::int32_t>> requests(from_.ranks.size());
    for (std::size_t r = 0; r < from_.ranges.size(); ++r) {
        const int rank = rank_of(static_cast<std::int32_t>(r));
        if (rank >= 0 && text(from_.ranges.name[r]).starts_with("c10d::"))
            requests[static_cast<std::size_t>(rank)].push_back(static_cast<std::int32_t>(r));
    }
    const std::int64_t members = std::max(ranks_of(from_), 1);
    for (const HostCollective& collective : traces::analysis::host_collectives(from_)) {
        Requested own;
        own.collective = collective;
        own.bytes = collective.bytes;
        std::vector<std::int32_t>& open = requests[collective.rank];
        const auto fits = [&](std::int32_t range) {
            const Operation asked = traces::analysis::operation_of_range(
                text(from_.ranges.name[static_cast<std::size_t>(range)]));
            return time_of(range).start <= collective.start &&
                   (asked == collective.operation ||
                    (asked == Operation::reduce_scatter && collective.operation == Operation::all_reduce));
        };
        if (const auto found = std::find_if(open.begin(), open.end(), fits); found != open.end()) {
            own.range = *found;
            const auto r = static_cast<std::size_t>(*found);
            own.collective.operation = traces::analysis::operation_of_range(text(from_.ranges.name[r]));
            open.erase(found);
        }
        if (own.bytes == 0 && collective.operation == Operation::all_gather && !from_.ranges.detail.empty()) {
            // The rank's own part, in the list form of the call.
            const auto part = traces::store::input_tensors(
                text(from_.ranges.detail[static_cast<std::size_t>(collective.range)]));
            own.bytes = part ? part->sum * members : 0;
        }
        requested_.push_back(own);
    }
}

bool Conversion::works_inside(int rank, traces::analysis::Interval time) const {
    const std::vector<std::int32_t>& own = operators_[static_cast<std::size_t>(rank)];
    const auto next = std::partition_point(own.begin(), own.end(),
                                           [&](std::int32_t r) { return time_of(r).start < time.start; });
    return next != own.end() && time_of(*next).start < time.end;
}

// When the rank's last operator that began before a time ended.
std::int64_t Conversion::end_before(int rank, std::int64_t time) const {
    const std::vector<std::int32_t>& own = operators_[static_cast<std::size_t>(rank)];
    const auto next =
        std::partition_point(own.begin(), own.end(), [&](std::int32_t r) { return time_of(r).start < time; });
    return next == own.begin() ? 0 : time_of(*std::prev(next)).end;
}

void Conversion::add_operators() {
    const StringId call_name = out_.strings.intern(kHostOperator);
    for (std::size_t rank = 0; rank < operators_.size(); ++rank) {
        for (const std::int32_t range : operators_[rank]) {
            const auto r = static_cast<std::size_t>(range);
            const traces::analysis::Interval time = time_of(range);
            const Overheads& overheads = overheads_[optimizes_[r]];
            const auto known = overheads.of.find(from_.ranges.name[r]);
            const std::int64_t overhead =
                std::min(known == overheads.of.end() ? overheads.typical : known->second, time.length());
            events_.push_back({.start = time.start + overhead,
                               .end = time.end,
                               .name = from_.ranges.name[r],
                               .rank = static_cast<int>(rank),
                               .stream = kComputeStream,
                               .call = calls_.size()});
            calls_.push_back({.start = time.start,
                              .end = time.start + overhead,
                              .name = call_name,
                              .thread = from_.ranges.thread[r],
                              .range = range,
                              .event = static_cast<int>(events_.size()) - 1});
        }
    }
}

void Conversion::add_collectives() {
    const StringId call_name = out_.strings.intern(kHostCollective),
                   wait_name = out_.strings.intern(kHostWait);
    for (std::size_t c = 0; c < requested_.size(); ++c) {
        Requested& own = requested_[c];
        if (own.range < 0) continue;
        const auto r = static_cast<std::size_t>(own.range);
        const traces::analysis::Interval asked = time_of(own.range);
        // It begins after the copies that the request makes first.
        const std::int64_t begin =
            std::max(asked.start, end_before(own.collective.rank, std::min(own.collective.start, asked.end)));
        const traces::analysis::Interval call{begin, std::max(begin, own.collective.start)};
        own.blocks = !works_inside(own.collective.rank, {call.start, own.collective.end});
        events_.push_back({.start = own.collective.start,
                           .end = own.collective.end,
                           .bytes = own.bytes,
                           .name = from_.ranges.name[static_cast<std::size_t>(own.collective.range)],
                           .rank = own.collective.rank,
                           .stream = kLibraryStream,
                           .collective = static_cast<int>(c),
                           .call = calls_.size()});
        calls_.push_back({.start = call.start,
                          .end = own.blocks ? call.end : std::clamp(asked.end, call.start, call.end),
                          .name = call_name,
                          .thread = from_.ranges.thread[r],
                          .range = own.range,
                          .event = static_cast<int>(events_.size()) - 1});
        if (own.blocks)
            calls_.push_back({.start = call.end,
                              .end = own.collective.end,
                              .name = wait_name,
                              .thread = from_.ranges.thread[r],
                              .range = own.range,
                              .waits = true});
    }
}

// A collective that runs beside operators and ends while the calling thread has none is waited for there.
void Conversion::add_waits_at_gaps() {
    const StringId wait_name = out_.strings.intern(kHostWait);
    for (const Requested& own : requested_) {
        if (own.range < 0 || own.blocks) continue;
        const std::vector<std::int32_t>& operators = operators_[own.collective.rank];
        const auto next = std::partition_point(operators.begin(), operators.end(), [&](std::int32_t r) {
            return time_of(r).start < own.collective.end;
        });
        if (next == operators.begin()) continue;
        const std::int32_t before = *std::prev(next);
        const std::int64_t since = std::max(time_of(before).end, time_of(own.range).end);
        if (since >= own.collective.end) continue;
        calls_.push_back({.start = since,
                          .end = own.collective.end,
                          .name = wait_name,
                          .thread = from_.ranges.thread[static_cast<std::size_t>(before)],
                          .range = -1,
                          .waits = true});
    }
}

void Conversion::write() {
    std::vector<std::size_t> order(calls_.size()), place(calls_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    traces::schema::sort_rows(order, [&](std::size_t a, std::size_t b) {
        return std::pair(calls_[a].start, calls_[a].end) < std::pair(calls_[b].start, calls_[b].end);
    });
    traces::store::RuntimeCalls& calls = out_.runtime;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Call& own = calls_[order[i]];
        place[order[i]] = i;
        calls.start.push_back(own.start);
        calls.end.push_back(own.end);
        calls.correlation.push_back(static_cast<std::int64_t>(i) + 1);
        calls.name.push_back(own.name);
        calls.thread.push_back(own.thread);
        calls.range.push_back(own.range);
        if (!own.waits) continue;
        traces::store::Synchronizations& waits = out_.synchronizations;
        waits.start.push_back(own.start);
        waits.end.push_back(own.end);
        waits.call.push_back(static_cast<std::int32_t>(i));
        waits.stream.push_back(-1);
        waits.rank.push_back(static_cast<std::uint16_t>(std::max(out_.threads[own.thread].rank.value, 0)));
        waits.type.push_back(0);
    }
    std::vector<std::size_t> sorted(events_.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
    traces::schema::sort_rows(sorted, [&](std::size_t a, std::size_t b) {
        return std::pair(events_[a].start, events_[a].end) < std::pair(events_[b].start, events_[b].end);
    });
    traces::store::DeviceEvents& device = out_.device;
    traces::store::Collectives& collectives = out_.collectives;
    device.launch.reset(events_.size());
    device.collective.reset(events_.size());
    device.range.reset(events_.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const Event& own = events_[sorted[i]];
        const std::size_t call = place[own.call];
        device.start.push_back(own.start);
        device.end.push_back(own.end);
        device.correlation.push_back(static_cast<std::int64_t>(call) + 1);
        device.bytes.push_back(own.bytes);
        device.name.push_back(own.name);
        device.launch.set(i, static_cast<std::int32_t>(call));
        device.range.set(i, calls.range[call]);
        device.rank.push_back(static_cast<std::uint16_t>(own.rank));
        device.stream.push_back(static_cast<std::uint16_t>(2 * own.rank + own.stream));
        device.kind.push_back(own.collective < 0 ? traces::store::DeviceKind::kernel
                                                 : traces::store::DeviceKind::communication);
        device.copy_kind.push_back(0);
        if (own.collective < 0) continue;
        device.collective.set(i, static_cast<std::int32_t>(collectives.size()));
        collectives.correlation.push_back(static_cast<std::int64_t>(call) + 1);
        collectives.padding.push_back(0);
        collectives.group.push_back(0);
        collectives.sequence.push_back(-1);
        collectives.group_size.push_back(ranks_of(from_));
        collectives.unit.push_back(-1);
        collectives.event.push_back(static_cast<std::int32_t>(i));
        collectives.rank.push_back(static_cast<std::uint16_t>(own.rank));
        collectives.operation.push_back(
            requested_[static_cast<std::size_t>(own.collective)].collective.operation);
        collectives.phase.push_back(traces::schema::Phase::none);
        collectives.bytes.push_back(own.bytes);
    }
}

// The times of the ranges for which `is_one(index, name)`, by rank.
template <class IsOne>
std::vector<traces::analysis::IntervalSet> Conversion::ranges_by_rank(const IsOne& is_one) const {
    std::vector<std::vector<traces::analysis::Interval>> found(from_.ranks.size());
    for (std::size_t r = 0; r < from_.ranges.size(); ++r) {
        const auto range = static_cast<std::int32_t>(r);
        const int rank = rank_of(range);
        if (rank >= 0 && is_one(r, text(from_.ranges.name[r])))
            found[static_cast<std::size_t>(rank)].push_back(time_of(range));
    }
    std::vector<traces::analysis::IntervalSet> sets;
    sets.reserve(found.size());
    for (std::vector<traces::analysis::Interval>& own : found)
        sets.push_back(traces::analysis::make_union(std::move(own)));
    return sets;
}

// When a rank's library made copies of buffers: within requests, and within operators on the library's
// threads.
std::vector<traces::analysis::IntervalSet> Conversion::library_copies() const {
    return ranges_by_rank([&](std::size_t range, std::string_view name) {
        return library_threads_[from_.ranges.thread[range]]
                   ? is_operator(name) && traces::analysis::host_library(name).empty()
                   : name.starts_with("c10d::");
    });
}

// When fully_shard gathered or reduced.
std::vector<traces::analysis::IntervalSet> Conversion::fsdp_collectives() const {
    return ranges_by_rank([](std::size_t /*range*/, std::string_view name) {
        return name == "FSDP::all_gather" || name.starts_with("FSDP::all_gather (") ||
               name.starts_with("FSDP::post_backward_reduce");
    });
}

Trace Conversion::run() {
    copy_rest();
    find_operators();
    find_overheads();
    find_collectives();
    add_operators();
    add_collectives();
    add_waits_at_gaps();
    write();
    out_.memory = host_memory(from_, library_copies(), fsdp_collectives());
    return std::move(out_);
}

}  // namespace

bool ran_on_hosts(const Trace& trace) {
    return trace.device.size() == 0 && !traces::analysis::host_collectives(trace).empty();
}

Trace as_device_trace(const Trace& trace) {
    return Conversion(trace).run();
}

bool collectives_block(const Trace& converted) {
    // A wait of the same length as the collective ends with it.
    std::int64_t blocking = 0, all = 0;
    for (std::size_t c = 0; c < converted.collectives.size(); ++c) {
        const Operation operation = converted.collectives.operation[c];
        if (operation != Operation::all_gather && operation != Operation::reduce_scatter) continue;
        const auto e = static_cast<std::size_t>(converted.collectives.event[c]);
        const std::int64_t end = converted.device.end[e], start = converted.device.start[e];
        const auto& waits = converted.synchronizations;
        const auto first = std::lower_bound(waits.start.begin(), waits.start.end(), start);
        for (auto w = static_cast<std::size_t>(first - waits.start.begin());
             w < waits.start.size() && waits.start[w] == start; ++w) {
            if (waits.end[w] != end || waits.rank[w] != converted.device.rank[e]) continue;
            ++blocking;
            break;
        }
        ++all;
    }
    return all == 0 || 2 * blocking >= all;
}

}  // namespace shardscope::trainer::lift
