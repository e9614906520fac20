#include "trainer/plan/messages.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/plan/print.h"

namespace shardscope::trainer::plan {

namespace {

constexpr int kWholePipeline = -1;
// The neighbours in the context group, which have the same Plan and are taken to be at the same operation.
constexpr int kRing = -2;

// A point in a stream: that many of its items have ended.
struct Point {
    int stream = -1;
    std::int64_t count = 0;
};

// An item that waits for a point of its own rank, or meets items of other places.
struct Item {
    Point waits;
    int meets = 0;            // 0: nobody; kWholePipeline; kRing; else 1 + the other place
    std::int64_t number = 0;  // among those that meet there, from this rank
    std::size_t operation = 0;
};

// The messages from one place to another, as operations of their Plans.
struct Channel {
    std::vector<std::size_t> sent, received;
};

// One place: its host thread and its streams.
struct Place {
    const Plan* plan = nullptr;
    std::size_t next = 0;  // operation of the host
    std::array<std::deque<Item>, kStreams> streams;
    std::array<std::int64_t, kStreams> issued{}, ended{};
    std::vector<Point> events;
    struct Queue {
        Point last;
        std::int64_t number = 0;
    };
    std::map<std::pair<Operation, int>, Queue> queues;  // of messages; Operation::other: of collectives

    bool happened(const Point& point) const {
        return point.stream < 0 || ended[static_cast<std::size_t>(point.stream)] >= point.count;
    }
    std::deque<Item>& stream(int number) { return streams[static_cast<std::size_t>(number)]; }
    const std::deque<Item>& stream(int number) const { return streams[static_cast<std::size_t>(number)]; }
};

class Checker {
  public:
    Checker(const Mesh& mesh, const std::vector<const Plan*>& plans)
        : mesh_(mesh), places_(plans.size()), channels_() {
        if (static_cast<int>(plans.size()) != mesh.pipeline)
            throw std::logic_error("messages are checked with one Plan for each place of the pipeline");
        for (std::size_t p = 0; p < plans.size(); ++p) {
            places_[p].plan = plans[p];
            places_[p].events.resize(static_cast<std::size_t>(plans[p]->events));
        }
    }

    std::string first_problem() {
        std::string problem = unequal_ends();
        if (!problem.empty()) return problem;
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t p = 0; p < places_.size(); ++p) moved |= advance(places_[p]);
            moved |= meet();
        }
        for (std::size_t p = 0; p < places_.size(); ++p) {
            if (const auto blocked = blocked_at(p)) return deadlock(*blocked);
        }
        return {};
    }

  private:
    struct Blocked {
        std::size_t place = 0;
        Item item;
        bool operator==(const Blocked& other) const {
            return place == other.place && item.operation == other.item.operation;
        }
    };

    int rank_of(std::size_t place) const { return mesh_.rank_in_copy(static_cast<int>(place), 0); }
    const Op& op(std::size_t place, std::size_t operation) const {
        return places_[place].plan->ops[operation];
    }
    std::string text_of(std::size_t place, std::size_t operation) const {
        const Op& own = op(place, operation);
        const CollectiveOp& call = own.collective();
        if (!is_message(own)) {
            return fmt::format("rank {} at {} (operation {})", rank_of(place),
                               traces::schema::name(call.operation), operation);
        }
        return fmt::format(
            "rank {} at {} rank {} (operation {}, {} bytes)", rank_of(place),
            call.operation == Operation::send ? "its send to" : "its receive from",
            call.group == Group::context
                ? mesh_.neighbour(Group::context, rank_of(place), call.operation == Operation::send ? 1 : -1)
                : rank_of(static_cast<std::size_t>(call.peer)),
            operation, with_thousands(own.bytes));
    }

    // What is wrong with the two ends of a message; empty: nothing.
    std::string unequal_ends() {
        for (std::size_t p = 0; p < places_.size(); ++p) {
            const std::vector<Op>& ops = places_[p].plan->ops;
            for (std::size_t i = 0; i < ops.size(); ++i) {
                if (!is_message(ops[i])) continue;
                const CollectiveOp& call = ops[i].collective();
                if (call.group == Group::context) {
                    Channel& ring = channels_[std::pair(static_cast<int>(p), static_cast<int>(p))];
                    (call.operation == Operation::send ? ring.sent : ring.received).push_back(i);
                    continue;
                }
                const int own = static_cast<int>(p), apart = std::abs(own - call.peer);
                if (call.peer < 0 || call.peer >= mesh_.pipeline || apart == 0 ||
                    (apart != 1 && apart != mesh_.pipeline - 1)) {
                    return fmt::format(
                        "rank {}: operation {} is a message to or from place {} of the "
                        "pipeline, which is not a neighbour of place {} (of {})",
                        rank_of(p), i, call.peer, own, mesh_.pipeline);
                }
                const bool sends = call.operation == Operation::send;
                Channel& channel = channels_[sends ? std::pair(own, call.peer) : std::pair(call.peer, own)];
                (sends ? channel.sent : channel.received).push_back(i);
            }
        }
        for (const auto& [ends, channel] : channels_) {
            const auto from = static_cast<std::size_t>(ends.first),
                       to = static_cast<std::size_t>(ends.second);
            const std::size_t both = std::min(channel.sent.size(), channel.received.size());
            for (std::size_t m = 0; m < both; ++m) {
                const Op &sent = op(from, channel.sent[m]), &received = op(to, channel.received[m]);
                if (sent.bytes == received.bytes && sent.collective().dtype == received.collective().dtype)
                    continue;
                return fmt::format(
                    "message {} from rank {} to rank {} is sent as {} bytes of {} (operation {}) and "
                    "received as {} bytes of {} (operation {}); both ends must agree, in the same order",
                    m, rank_of(from), rank_of(to), with_thousands(sent.bytes), type_of(sent), channel.sent[m],
                    with_thousands(received.bytes), type_of(received), channel.received[m]);
            }
            if (channel.sent.size() > both) {
                return fmt::format(
                    "rank {} never receives what rank {} sends in operation {} (message {} "
                    "from rank {} to rank {})",
                    rank_of(to), rank_of(from), channel.sent[both], both, rank_of(from), rank_of(to));
            }
            if (channel.received.size() > both) {
                return fmt::format(
                    "rank {} never sends what rank {} receives in operation {} (message {} "
                    "from rank {} to rank {})",
                    rank_of(from), rank_of(to), channel.received[both], both, rank_of(from), rank_of(to));
            }
        }
        return {};
    }
    static std::string_view type_of(const Op& op) {
        return kDTypeNames[static_cast<std::size_t>(op.collective().dtype)];
    }

    // A run without time. Does what the place can do alone; returns whether that was anything.
    bool advance(Place& place) {
        bool moved = false;
        for (bool again = true; again;) {
            again = false;
            while (place.next < place.plan->ops.size() && do_on_host(place)) {
                ++place.next;
                again = true;
            }
            for (std::size_t s = 0; s < place.streams.size(); ++s) {
                std::deque<Item>& stream = place.streams[s];
                while (!stream.empty() && stream.front().meets == 0 && place.happened(stream.front().waits)) {
                    stream.pop_front();
                    ++place.ended[s];
                    again = true;
                }
            }
            moved |= again;
        }
        return moved;
    }
    // Whether the host goes on.
    bool do_on_host(Place& place) const {
        const Op& op = place.plan->ops[place.next];
        switch (op.kind) {
            case OpKind::host_wait:
                return place.happened(place.events[static_cast<std::size_t>(op.event())]);
            case OpKind::record_event:
                place.events[static_cast<std::size_t>(op.event())] = last_of(place, op.stream);
                return true;
            case OpKind::wait_event:
                add(place, op.stream, {place.events[static_cast<std::size_t>(op.event())], 0, 0, place.next});
                return true;
            case OpKind::collective: {
                const CollectiveOp& call = op.collective();
                const bool message = is_message(op);
                if (!message && call.group != Group::world && call.group != Group::pipeline) return true;
                // Both kinds of groups hold ranks of all places; which of them does not matter here.
                const int meets = !message                       ? kWholePipeline
                                  : call.group == Group::context ? kRing
                                                                 : 1 + call.peer;
                Place::Queue& queue = place.queues[{message ? call.operation : Operation::other,
                                                    message ? call.peer : static_cast<int>(call.group)}];
                add(place, op.stream, {queue.last, 0, 0, place.next});
                add(place, op.stream, {{}, meets, queue.number++, place.next});
                queue.last = last_of(place, op.stream);
                return true;
            }
            default:
                return true;  // its end needs no other place
        }
    }
    static Point last_of(const Place& place, Stream stream) {
        const auto s = static_cast<int>(stream);
        return s < 0 ? Point{} : Point{s, place.issued[static_cast<std::size_t>(s)]};
    }
    static void add(Place& place, Stream stream, const Item& item) {
        const auto s = static_cast<std::size_t>(stream);
        place.streams[s].push_back(item);
        ++place.issued[s];
    }

    // Ends what all members have reached.
    bool meet() {
        bool moved = false;
        for (std::size_t p = 0; p < places_.size(); ++p) {
            for (int s = 0; s < kStreams; ++s) {
                const std::deque<Item>& stream = places_[p].stream(s);
                if (stream.empty() || stream.front().meets == 0) continue;
                const Item item = stream.front();
                if (item.meets == kRing) {
                    const int there = head_of(p, partner(p, item, p));
                    if (there < 0) continue;
                    for (const int number : {s, there}) {
                        places_[p].stream(number).pop_front();
                        ++places_[p].ended[static_cast<std::size_t>(number)];
                    }
                    moved = true;
                    continue;
                }
                std::vector<std::pair<std::size_t, int>> heads;  // place, stream
                for (const std::size_t other : members(p, item)) {
                    const int there = head_of(other, partner(p, item, other));
                    if (there >= 0) heads.emplace_back(other, there);
                }
                if (heads.size() != members(p, item).size()) continue;
                for (const auto& [place, number] : heads) {
                    places_[place].stream(number).pop_front();
                    ++places_[place].ended[static_cast<std::size_t>(number)];
                }
                moved = true;
            }
        }
        return moved;
    }
    std::vector<std::size_t> members(std::size_t place, const Item& item) const {
        if (item.meets == kRing) return {place};
        if (item.meets != kWholePipeline) return {place, static_cast<std::size_t>(item.meets - 1)};
        std::vector<std::size_t> all(places_.size());
        for (std::size_t p = 0; p < all.size(); ++p) all[p] = p;
        return all;
    }
    // The operation of another place that an item meets; none: the Plan there does not have it.
    std::optional<std::size_t> partner(std::size_t place, const Item& item, std::size_t other) const {
        if (other == place && item.meets != kRing) return item.operation;
        const Op& own = op(place, item.operation);
        const auto number = static_cast<std::size_t>(item.number);
        if (is_message(own)) {
            const bool sends = own.collective().operation == Operation::send;
            const auto here = static_cast<int>(place), there = static_cast<int>(other);
            const Channel& channel = channels_.at(sends ? std::pair(here, there) : std::pair(there, here));
            return (sends ? channel.received : channel.sent)[number];
        }
        std::size_t found = 0;
        const std::vector<Op>& ops = places_[other].plan->ops;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (ops[i].kind != OpKind::collective || is_message(ops[i]) ||
                ops[i].collective().group != own.collective().group)
                continue;
            if (found++ == number) return i;
        }
        return std::nullopt;
    }
    // The stream whose head is the operation; -1: none.
    int head_of(std::size_t place, std::optional<std::size_t> operation) const {
        for (int s = 0; operation && s < kStreams; ++s) {
            const std::deque<Item>& stream = places_[place].stream(s);
            if (!stream.empty() && stream.front().meets != 0 && stream.front().operation == *operation)
                return s;
        }
        return -1;
    }

    // The item at which a place waits for another place; none: it has ended.
    std::optional<Blocked> blocked_at(std::size_t place) const {
        const Place& own = places_[place];
        if (own.next < own.plan->ops.size()) {
            const Op& op = own.plan->ops[own.next];
            return blocker(place, own.events[static_cast<std::size_t>(op.event())].stream);
        }
        for (int s = 0; s < kStreams; ++s) {
            if (!own.stream(s).empty()) return blocker(place, s);
        }
        return std::nullopt;
    }
    // What keeps a stream from going on. Events are of earlier work, so this ends.
    Blocked blocker(std::size_t place, int stream) const {
        const Item& head = places_[place].stream(stream).front();
        return head.meets != 0 ? Blocked{place, head} : blocker(place, head.waits.stream);
    }
    // What keeps a place from an operation.
    Blocked before(std::size_t place, std::size_t operation) const {
        for (int s = 0; s < kStreams; ++s) {
            const std::deque<Item>& stream = places_[place].stream(s);
            if (std::any_of(stream.begin(), stream.end(),
                            [&](const Item& item) { return item.operation == operation; }))
                return blocker(place, s);
        }
        return *blocked_at(place);  // its host has not come to it
    }
    std::string deadlock(Blocked at) const {
        std::vector<Blocked> chain;
        std::vector<std::string> links;
        while (std::find(chain.begin(), chain.end(), at) == chain.end()) {
            chain.push_back(at);
            std::size_t other = at.place;
            std::optional<std::size_t> needed;
            for (const std::size_t member : members(at.place, at.item)) {
                needed = partner(at.place, at.item, member);
                other = member;
                if (head_of(member, needed) < 0) break;
            }
            if (!needed) {
                return fmt::format("{} waits for rank {}, which never begins it",
                                   text_of(at.place, at.item.operation), rank_of(other));
            }
            links.push_back(fmt::format("{} for operation {} of rank {}",
                                        text_of(at.place, at.item.operation), *needed, rank_of(other)));
            at = before(other, *needed);
        }
        links.erase(links.begin(),
                    links.begin() + (std::find(chain.begin(), chain.end(), at) - chain.begin()));
        return fmt::format("deadlock: {} wait{}; change the order on one of these ranks",
                           traces::schema::joined(links, ", "), links.size() == 1 ? "s" : "");
    }

    const Mesh& mesh_;
    std::vector<Place> places_;
    std::map<std::pair<int, int>, Channel> channels_;  // from, to
};

}  // namespace

std::string find_message_problem(const Mesh& mesh, const std::vector<const Plan*>& plans) {
    return Checker(mesh, plans).first_problem();
}

}  // namespace shardscope::trainer::plan
