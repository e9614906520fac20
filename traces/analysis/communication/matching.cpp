// Matching by sorting: counterparts become neighbours; see matching.h.
#include "traces/analysis/communication/matching.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "traces/analysis/base/shown_ranks.h"
#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// The sort key of a part; counterparts become neighbours.
struct Key {
    bool bare = false;  // without metadata
    std::int64_t group = 0;
    schema::Operation operation = schema::Operation::other;
    std::int64_t sequence = 0;
    bool by_order = true;    // `sequence` is the place in the rank's order, assigned here
    std::int64_t place = 0;  // among the rank's parts with the same number
    int rank = 0;
    std::int64_t when = -1;
    Communication part;
    std::size_t number = 0;  // of the part, in input order
    MessageEnds ends;        // of a message: `operation` is then that of the sender, for both

    // If one rank has sequence numbers and another does not, the assigned numbers do not match the real ones.
    auto numbered() const { return std::tie(bare, group, operation, ends, sequence, by_order); }
    auto whole() const { return std::tie(bare, group, operation, ends, sequence, by_order, place); }
    bool alone() const { return sequence < 0 || place < 0; }  // cannot be matched by order
    auto kind() const { return std::tie(bare, group, operation, ends); }
    // Among its counterparts: by rank; of a message the sender comes first.
    int seat() const {
        return ends.known() ? static_cast<int>(part.operation == schema::Operation::recv) : rank;
    }
};

// A kernel with an unknown operation, and a message whose other end is unknown, have no counterpart that
// could be found by order.
bool never_matched(const Key& key) {
    return (is_point_to_point(key.operation) && !key.ends.known()) ||
           (key.bare && key.operation == schema::Operation::other);
}

std::vector<Key> all_keys(const store::Trace& trace) {
    const store::Collectives& collectives = trace.collectives;
    const store::DeviceEvents& device = trace.device;
    const Messages messages(trace);
    std::vector<Key> keys;
    keys.reserve(collectives.size());
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        Key key;
        key.group = collectives.group[i];
        key.operation = collectives.operation[i];
        key.sequence = collectives.sequence[i];
        key.by_order = key.sequence < 0;
        key.rank = collectives.rank[i];
        key.part = {static_cast<std::int32_t>(i), collectives.event[i], -1, collectives.rank[i],
                    key.operation};
        if (is_point_to_point(key.operation)) key.ends = messages.ends_of(i);
        if (key.ends.known()) key.operation = schema::Operation::send;
        if (key.part.event >= 0) key.when = device.start[static_cast<std::size_t>(key.part.event)];
        key.number = keys.size();
        keys.push_back(key);
    }
    const KernelOperations operations(trace);
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.kind[i] != store::DeviceKind::communication || device.collective[i] >= 0) continue;
        Key key;
        key.bare = true;
        key.operation = operations.of_event(i);
        key.sequence = -1;
        key.rank = device.rank[i];
        key.when = device.start[i];
        key.part = {-1, static_cast<std::int32_t>(i), -1, device.rank[i], key.operation};
        key.number = keys.size();
        keys.push_back(key);
    }
    return keys;
}

// The n-th message that a rank sends to another in a group is the n-th that the other receives from it.
// Sequence numbers say which, if both ends have the same; PyTorch's count each rank's own messages in the
// group, with any peer: then the order decides, as it does for parts without a number. In a group of two both
// ranks count the same messages, so numbers that only one end has are messages that the other did not record;
// the order decides only if the ends have equally many messages and no number in common.
void number_messages(std::vector<Key>& keys, const store::Trace& trace) {
    struct Ends {
        std::vector<Key*> sent, received;
        static std::vector<std::int64_t> numbers(const std::vector<Key*>& of) {
            std::vector<std::int64_t> all;
            for (const Key* key : of) all.push_back(key->sequence);
            std::sort(all.begin(), all.end());
            return all;
        }
    };
    std::map<std::pair<std::int64_t, MessageEnds>, Ends> messages;
    for (Key& key : keys) {
        if (!key.ends.known()) continue;
        Ends& ends = messages[{key.group, key.ends}];
        (key.part.operation == schema::Operation::send ? ends.sent : ends.received).push_back(&key);
    }
    for (auto& [which, ends] : messages) {
        const std::vector<std::int64_t> sent = Ends::numbers(ends.sent),
                                        received = Ends::numbers(ends.received);
        const Key& any = *(ends.sent.empty() ? ends.received : ends.sent).front();
        const bool of_two = trace.collectives.group_size[static_cast<std::size_t>(any.part.row)] == 2;
        const auto is_received = [&](std::int64_t number) {
            return std::binary_search(received.begin(), received.end(), number);
        };
        const bool trusted =
            sent == received || (of_two && (sent.size() != received.size() ||
                                            std::any_of(sent.begin(), sent.end(), is_received)));
        for (const auto* side : {&ends.sent, &ends.received}) {
            for (Key* key : *side) {
                if (trusted && key->sequence >= 0) continue;
                key->sequence = -1;
                key->by_order = true;
            }
        }
    }
}

// Gives parts without a sequence number their place in the rank's order of the same group and operation. If
// the ranks' counts differ, that order is meaningless: the numbers stay negative, and each part is alone.
void number_by_order(std::vector<Key>& keys) {
    std::vector<Key*> unnumbered;
    for (Key& key : keys) {
        if (key.sequence < 0) unnumbered.push_back(&key);
    }
    std::sort(unnumbered.begin(), unnumbered.end(), [](const Key* a, const Key* b) {
        return std::tuple(a->kind(), a->rank, a->when, a->number) <
               std::tuple(b->kind(), b->rank, b->when, b->number);
    });
    std::int64_t lonely = -1;
    std::vector<std::int64_t> counts;
    for (std::size_t begin = 0; begin < unnumbered.size();) {
        std::size_t end = begin;
        counts.clear();
        for (int rank = -1; end < unnumbered.size() && unnumbered[end]->kind() == unnumbered[begin]->kind();
             ++end) {
            if (unnumbered[end]->rank != rank) counts.push_back(0);
            rank = unnumbered[end]->rank;
            unnumbered[end]->sequence = counts.back()++;
        }
        const bool agree =
            std::all_of(counts.begin(), counts.end(), [&](std::int64_t n) { return n == counts.front(); }) &&
            (counts.size() == 1 || !never_matched(*unnumbered[begin]));
        for (; begin < end; ++begin) {
            if (!agree) unnumbered[begin]->sequence = lonely--;
        }
    }
}

// PyTorch gives all collectives of a coalescing group one sequence number: the k-th of a rank matches the
// k-th of the others if the ranks' counts agree; else each is alone. Sorts the keys by whole() and rank.
void part_by_order(std::vector<Key>& keys) {
    std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
        return std::tuple(a.numbered(), a.seat(), a.when, a.number) <
               std::tuple(b.numbered(), b.seat(), b.when, b.number);
    });
    std::vector<std::int64_t> counts;
    for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
        counts.clear();
        for (int rank = -1; end < keys.size() && keys[end].numbered() == keys[begin].numbered(); ++end) {
            if (keys[end].rank != rank) counts.push_back(0);
            rank = keys[end].rank;
            keys[end].place = counts.back()++;
        }
        if (counts.size() == end - begin) continue;  // one for each rank
        const bool agree =
            std::all_of(counts.begin(), counts.end(), [&](std::int64_t n) { return n == counts.front(); });
        for (std::size_t k = begin; k < end && !agree; ++k)
            keys[k].place = -1 - static_cast<std::int64_t>(k - begin);
        std::sort(keys.begin() + static_cast<std::ptrdiff_t>(begin),
                  keys.begin() + static_cast<std::ptrdiff_t>(end), [](const Key& a, const Key& b) {
                      return std::tuple(a.place, a.seat()) < std::tuple(b.place, b.seat());
                  });
    }
}

}  // namespace

schema::Operation operation_of_range(std::string_view name) {
    const bool spoken = name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("gloo:") ||
                        name.starts_with("mpi:") || name.starts_with("c10d::") || name.starts_with("FSDP::");
    if (!spoken) return schema::Operation::other;
    std::string text = schema::lower_case(name.substr(0, 80));
    if (name.starts_with("FSDP::")) {
        // "(layers.3)" is a module's name, not the operation.
        text.resize(std::min(text.size(), text.find(" (")));
        if (text.find("copy") != text.npos) return schema::Operation::other;
        if (text.find("post_backward_reduce") != text.npos) return schema::Operation::reduce_scatter;
    }
    // Longer names precede those that they contain.
    constexpr std::array<std::pair<std::string_view, schema::Operation>, 21> kWords = {{
        {"all_gather", schema::Operation::all_gather},
        {"allgather", schema::Operation::all_gather},
        {"reduce_scatter", schema::Operation::reduce_scatter},
        {"reducescatter", schema::Operation::reduce_scatter},
        {"all_reduce", schema::Operation::all_reduce},
        {"allreduce", schema::Operation::all_reduce},
        {"all_to_all", schema::Operation::all_to_all},
        {"alltoall", schema::Operation::all_to_all},
        {"broadcast", schema::Operation::broadcast},
        {"barrier", schema::Operation::barrier},
        {"reduce", schema::Operation::reduce},
        {"gather", schema::Operation::gather},
        {"scatter", schema::Operation::scatter},
        {"nccl:send", schema::Operation::send},
        {"nccl:recv", schema::Operation::recv},
        {"ncclsend", schema::Operation::send},
        {"ncclrecv", schema::Operation::recv},
        {"c10d::send", schema::Operation::send},
        {"c10d::recv", schema::Operation::recv},
        {"gloo:send", schema::Operation::send},
        {"gloo:recv", schema::Operation::recv},
    }};
    for (const auto& [word, operation] : kWords) {
        if (text.find(word) != text.npos) return operation;
    }
    return schema::Operation::other;
}

std::int32_t launching_range(const store::Trace& trace, std::size_t device_event) {
    if (!trace.device.range.empty()) return trace.device.range[device_event];
    const std::int32_t launch = trace.device.launch[device_event];
    return launch >= 0 ? trace.runtime.range[static_cast<std::size_t>(launch)] : -1;
}

KernelOperations::KernelOperations(const store::Trace& trace)
    : trace_(trace), by_kernel_(trace.strings.size(), -1), by_range_(trace.strings.size(), -1) {}

schema::Operation KernelOperations::of_event(std::size_t device_event) const {
    const schema::StringId kernel = trace_.device.name[device_event];
    std::int8_t& known = by_kernel_[static_cast<std::size_t>(kernel)];
    if (known < 0) known = static_cast<std::int8_t>(store::operation_of_kernel(trace_.strings[kernel]));
    if (static_cast<schema::Operation>(known) != schema::Operation::other)
        return static_cast<schema::Operation>(known);
    constexpr int kMostLevels = 8;  // from NCCL's own range out to the range that requested it
    std::int32_t range = launching_range(trace_, device_event);
    for (int level = 0; range >= 0 && level < kMostLevels; ++level) {
        const schema::StringId name = trace_.ranges.name[static_cast<std::size_t>(range)];
        std::int8_t& told = by_range_[static_cast<std::size_t>(name)];
        if (told < 0) told = static_cast<std::int8_t>(operation_of_range(trace_.strings[name]));
        if (static_cast<schema::Operation>(told) != schema::Operation::other)
            return static_cast<schema::Operation>(told);
        range = trace_.ranges.parent[static_cast<std::size_t>(range)];
    }
    return schema::Operation::other;
}

std::int64_t duration(const store::Trace& trace, const Communication& part) {
    if (part.event < 0) return -1;
    const auto at = static_cast<std::size_t>(part.event);
    return trace.device.end[at] - trace.device.start[at];
}

Communications match_communications(const store::Trace& trace) {
    std::vector<Key> keys = all_keys(trace);
    number_messages(keys, trace);
    number_by_order(keys);
    part_by_order(keys);
    const std::set<int> shown = [&] {
        std::set<int> numbers;
        for (const store::Rank& rank : trace.ranks) numbers.insert(rank.number);
        return numbers;
    }();
    const store::Collectives& collectives = trace.collectives;
    // If a simulated trace shows one rank of each kind, a collective of all ranks has no parts but theirs.
    const int simulated = shows_some_ranks(trace) ? ranks_of_run(trace) : std::numeric_limits<int>::max();
    Communications result;
    result.parts.reserve(keys.size());
    for (std::size_t begin = 0; begin < keys.size();) {
        const Key& front = keys[begin];
        const bool one_end = is_point_to_point(front.operation) && !front.ends.known();
        CollectiveMatch match{.begin = begin, .end = begin, .ends = front.ends};
        int ranks = 0, group_size = 0, last_rank = -1;
        for (; match.end < keys.size() && keys[match.end].whole() == keys[begin].whole() &&
               (!one_end || match.end == begin);
             ++match.end) {
            Key& key = keys[match.end];
            if (key.rank != last_rank) ++ranks;
            last_rank = key.rank;
            if (key.part.row >= 0) {
                const auto row = static_cast<std::size_t>(key.part.row);
                const auto first = static_cast<std::size_t>(keys[begin].part.row);
                group_size = std::max(group_size, collectives.group_size[row]);
                // An all_to_all may send other numbers of rows from each rank.
                match.bytes_differ =
                    match.bytes_differ || (collectives.bytes[row] != collectives.bytes[first] &&
                                           collectives.operation[row] != schema::Operation::all_to_all);
            }
            const std::int64_t took = duration(trace, key.part);
            if (took >= 0)
                match.transfer_ns = match.transfer_ns < 0 ? took : std::min(match.transfer_ns, took);
            key.part.match = static_cast<std::int32_t>(result.matches.size());
            result.parts.push_back(key.part);
        }
        if (group_size >= simulated) group_size = std::min(group_size, static_cast<int>(trace.ranks.size()));
        if (front.ends.known())
            group_size =
                static_cast<int>(shown.count(front.ends.source) + shown.count(front.ends.destination));
        match.unmatched = !one_end && (ranks < group_size || front.alone());
        result.matches.push_back(match);
        begin = match.end;
    }
    return result;
}

}  // namespace shardscope::traces::analysis
