#include "traces/analysis/memory/allocator_history.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/address_ranges.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::int64_t kMostOfDevice = CachingAllocator::kMostRequested;

struct PlacedRange {
    std::uint64_t end = 0;
    std::optional<AllocatorPlace> place;
};
using PlacedRanges = std::map<std::uint64_t, PlacedRange>;  // by first address

PlacedRange* range_at(PlacedRanges& ranges, std::uint64_t address) {
    const auto after = ranges.upper_bound(address);
    if (after == ranges.begin() || std::prev(after)->second.end <= address) return nullptr;
    return &std::prev(after)->second;
}

std::string mb_and_bytes(std::int64_t bytes) {
    return fmt::format("{} MiB ({} bytes)", store::grouped(static_cast<double>(bytes) / (1 << 20), 2),
                       store::grouped(bytes));
}

class HistoryReader {
    using Kind = AllocatorEvent::Kind;
    using State = AllocatorPiece::State;

  public:
    HistoryReader(const store::Trace& trace, store::RankIndex rank, const std::vector<std::uint32_t>& rows)
        : trace_(trace), rank_(rank), rows_(rows) {}

    AllocatorHistory read() {
        history_.settings = recorded_allocator_settings(trace_);
        read_segments();
        read_kept_rows();
        read_memory();
        for (const store::Step& step : trace_.steps) {
            if (step.rank == rank_) add({.kind = Kind::end_step, .time = step.end});
        }
        // At equal times the allocator takes a segment before it hands out the block, and requests a free
        // before it completes it: the order of the kinds.
        std::stable_sort(history_.events.begin(), history_.events.end(), [](const auto& a, const auto& b) {
            return std::pair(a.time, order_of(a.kind)) < std::pair(b.time, order_of(b.kind));
        });
        add_initial_segments();
        follow_segments();
        tell_assumptions();
        return std::move(history_);
    }

  private:
    static int order_of(Kind kind) {
        return kind == Kind::free ? order_of(Kind::allocate) : static_cast<int>(kind);
    }

    void add(const AllocatorEvent& event) { history_.events.push_back(event); }

    // Segments without a stream are those of the beginning.
    void read_segments() {
        const store::Segments& s = trace_.segments;
        store::AddressRanges initial;
        for (std::size_t i = 0; i < s.size(); ++i) {
            if (s.rank[i] != rank_.value || s.bytes[i] == 0) continue;
            history_.has_segments = true;
            if (s.stream[i] < 0 && s.bytes[i] > 0) {
                initial.add(s.address[i], std::min(s.bytes[i], kMostOfDevice));
                continue;
            }
            add({.kind = Kind::segment,
                 .time = s.time[i],
                 .address = s.address[i],
                 .bytes = std::clamp(s.bytes[i], -kMostOfDevice, kMostOfDevice),
                 .stream = s.stream[i]});
        }
        for (const auto& [start, end] : initial.ranges()) initial_[start] = {end, {}};
        // The return of a segment of the beginning shows its stream.
        for (const AllocatorEvent& event : history_.events) {
            PlacedRange* range = event.bytes < 0 ? range_at(initial_, event.address) : nullptr;
            if (range != nullptr && !range->place)
                range->place = {event.stream, 0, -event.bytes <= AllocatorSizes::kSmallSegment};
        }
    }

    void read_kept_rows() {
        const int number = trace_.ranks[rank_.at()].number;
        for (const schema::AllocatorEventRow& row : trace_.allocator_events) {
            if (row.rank != number || row.bytes <= 0 || row.bytes > kMostOfDevice) continue;
            AllocatorEvent event{.kind = Kind::request_free,
                                 .time = row.time,
                                 .address = row.address,
                                 .bytes = row.bytes,
                                 .stream = row.stream};
            switch (row.kind) {
                case schema::AllocatorEventKind::free_requested:
                    add(event);
                    break;
                case schema::AllocatorEventKind::failed:
                    event.kind = Kind::fail;
                    // What the device has left; follow_segments() adds what is reserved.
                    event.limit = std::min(row.device_free, kMostOfDevice);
                    add(event);
                    break;
                case schema::AllocatorEventKind::last_segment:
                    last_[row.address] = {row.address + static_cast<std::uint64_t>(row.bytes),
                                          AllocatorPlace{row.stream, row.pool, row.small}};
                    break;
            }
        }
    }

    void read_memory() {
        const store::MemoryEvents& m = trace_.memory;
        const auto before = trace_.strings.find(store::kBeforeRecording),
                   rounding = trace_.strings.find(store::kRoundingOfBlocks);
        const auto is = [&](std::uint32_t row, const std::optional<schema::StringId>& annotation) {
            return annotation && !m.annotation.empty() && m.annotation[row] == *annotation;
        };
        std::set<std::uint64_t> live;
        for (const std::uint32_t row : rows_) {
            const std::uint64_t address = m.address[row];
            const std::int64_t bytes = m.bytes[row];
            if (is(row, rounding)) {
                continue;  // a replay rounds blocks itself
            }
            if (address == 0 || bytes > kMostOfDevice) {
                unplaced_ += std::max<std::int64_t>(bytes, 0);
            } else if (bytes > 0 && is(row, before)) {
                blocks_[address] = bytes;
                live.insert(address);
            } else if (bytes > 0) {
                live.insert(address);
                const int stream = m.stream.empty() ? -1 : m.stream[row];
                no_stream_ = no_stream_ || stream < 0;
                const AllocatorPlace place = learn(address, bytes, std::max(stream, 0));
                add({.kind = Kind::allocate,
                     .time = m.time[row],
                     .address = address,
                     .bytes = bytes,
                     .stream = place.stream,
                     .pool = place.pool});
            } else if (live.erase(address) > 0) {
                add({.kind = Kind::free, .time = m.time[row], .address = address});
            } else {
                ++unknown_frees_;
            }
        }
    }

    // The private pool of an allocation is that of its segment. A segment of the beginning that did not last
    // to the end belongs to the stream of its first allocation.
    AllocatorPlace learn(std::uint64_t address, std::int64_t bytes, int stream) {
        AllocatorPlace place{stream, 0, bytes <= AllocatorSizes::kLargestSmall};
        if (const PlacedRange* range = range_at(last_, address); range != nullptr)
            place.pool = range->place->pool;
        if (PlacedRange* range = range_at(initial_, address); range != nullptr && !range->place)
            range->place = place;
        return place;
    }

    AllocatorPlace place_of(std::uint64_t start, const PlacedRange& range) {
        if (const PlacedRange* at_end = range_at(last_, start); at_end != nullptr) return *at_end->place;
        if (range.place) return *range.place;
        ++unknown_places_;
        return {0, 0, range.end - start <= static_cast<std::uint64_t>(AllocatorSizes::kSmallSegment)};
    }

    // --- the beginning ---

    void add_initial_segments() {
        std::map<AllocatorPlace, InitialSegment> growing;  // expandable ones; the last of each place
        for (const auto& [start, range] : initial_) {
            const AllocatorPlace place = place_of(start, range);
            if (!history_.settings.expandable_segments) {
                history_.initial.push_back({place, {}, false});
                add_pieces(start, range.end, history_.initial.back());
                continue;
            }
            InitialSegment& segment =
                growing.try_emplace(place, InitialSegment{place, {}, true}).first->second;
            const std::uint64_t end = segment.pieces.empty() ? start : end_of(segment);
            if (start - end > static_cast<std::uint64_t>(kMostOfDevice)) {  // too far apart to be one
                close(segment);
                segment.pieces.clear();
            } else if (start > end) {
                segment.pieces.push_back({end, static_cast<std::int64_t>(start - end), State::unmapped});
            }
            add_pieces(start, range.end, segment);
        }
        for (auto& [place, segment] : growing) close(segment);
        for (const auto& [address, bytes] : blocks_)
            unplaced_ += range_at(initial_, address) == nullptr ? bytes : 0;
    }

    static std::uint64_t end_of(const InitialSegment& segment) {
        return segment.pieces.back().address + static_cast<std::uint64_t>(segment.pieces.back().bytes);
    }

    void close(InitialSegment& segment) {
        segment.pieces.push_back({end_of(segment), kMostOfDevice, State::unmapped});
        history_.initial.push_back(segment);
    }

    // The blocks of the beginning in [start, end), and the cached ones between them.
    void add_pieces(std::uint64_t start, std::uint64_t end, InitialSegment& to) {
        std::uint64_t at = start;
        const auto cached_until = [&](std::uint64_t next) {
            if (next <= at) return;
            const auto bytes = static_cast<std::int64_t>(next - at);
            // So little is never split off in the pool of large blocks: it belongs to the block before it.
            if (!to.place.small && !to.expandable && bytes <= AllocatorSizes::kLargestSmall && at > start) {
                to.pieces.back().bytes += bytes;
            } else {
                to.pieces.push_back({at, bytes});
            }
            at = next;
        };
        for (auto block = blocks_.lower_bound(start); block != blocks_.end() && block->first < end; ++block) {
            const auto& [address, requested] = *block;
            if (address < at) continue;  // damaged: it overlaps the block before it
            cached_until(address);
            const std::int64_t room = static_cast<std::int64_t>(end - address);
            const std::int64_t bytes = std::min(history_.settings.rounded(requested), room);
            to.pieces.push_back({address, bytes, State::used, address});
            at = address + static_cast<std::uint64_t>(bytes);
            ++placed_;
        }
        cached_until(end);
    }

    // --- segments over time ---

    // Finds what the allocator had whenever it took or returned memory: the peak, its limit, the segments at
    // the end, and where the program emptied the cache.
    void follow_segments() {
        std::int64_t reserved = 0, limit = 0;
        store::AddressRanges segments;
        for (const auto& [start, range] : initial_) {
            segments.add(start, static_cast<std::int64_t>(range.end - start));
            reserved += static_cast<std::int64_t>(range.end - start);
        }
        history_.reserved_peak = reserved;
        struct Returns {                // consecutive ones
            std::size_t event = 0;      // the first
            std::int64_t reserved = 0;  // before it
            std::int64_t needed = -1;  // for the segment that is taken next; -1: none before the next request
        };
        std::vector<Returns> returns;
        bool open = false;
        for (std::size_t i = 0; i < history_.events.size(); ++i) {
            AllocatorEvent& event = history_.events[i];
            if (event.kind == Kind::segment && event.bytes < 0) {
                if (!open) returns.push_back({i, reserved});
                open = true;
                segments.remove(event.address, -event.bytes);
                reserved += event.bytes;
            } else if (event.kind == Kind::segment) {
                if (open) returns.back().needed = returns.back().reserved + event.bytes;
                open = false;
                segments.add(event.address, event.bytes);
                reserved += event.bytes;
                history_.reserved_peak = std::max(history_.reserved_peak, reserved);
            } else if (event.kind == Kind::fail) {
                event.limit = event.limit >= 0 && history_.has_segments ? reserved + event.limit : 0;
                limit = std::max(limit, event.limit);
                if (open) returns.back().needed = std::numeric_limits<std::int64_t>::max();
                open = false;
            } else if (event.kind == Kind::allocate) {
                open = false;
            }
        }
        for (const auto& [start, end] : segments.ranges()) add_last(start, end);
        history_.limit = limit > 0 ? std::max(limit, history_.reserved_peak) : 0;
        // The allocator itself returns segments only for a request that needs more than it can have, or to
        // collect garbage.
        const std::int64_t least = std::max(limit, history_.reserved_peak);
        std::vector<std::size_t> emptied;
        std::int64_t bound = std::numeric_limits<std::int64_t>::max();
        for (const Returns& r : returns) {
            const bool collects = history_.settings.garbage_collection > 0 && r.needed >= 0;
            if (r.needed > least) {
                bound = std::min(bound, r.needed - 1);
            } else if (!collects) {
                emptied.push_back(r.event);
            }
        }
        if (limit == 0 && bound < std::numeric_limits<std::int64_t>::max() &&
            history_.settings.garbage_collection == 0) {
            history_.limit = bound;
            history_.limit_reason = fmt::format(
                "The allocator could have at most {}: it returned cached segments to take another.",
                mb_and_bytes(bound));
        }
        insert_releases(emptied);
    }

    // `before`: the events that emptying the cache caused, in order.
    void insert_releases(const std::vector<std::size_t>& before) {
        std::vector<AllocatorEvent> events;
        events.reserve(history_.events.size() + before.size());
        auto next = before.begin();
        for (std::size_t i = 0; i < history_.events.size(); ++i) {
            if (next != before.end() && *next == i) {
                events.push_back({.kind = Kind::empty_cache, .time = history_.events[i].time});
                ++next;
            }
            events.push_back(history_.events[i]);
        }
        history_.events = std::move(events);
        emptied_ = static_cast<std::int64_t>(before.size());
    }

    void add_last(std::uint64_t start, std::uint64_t end) {
        std::vector<SegmentChange>& last = history_.last_segments;
        const PlacedRange* known = range_at(last_, start);
        const int stream = known != nullptr ? known->place->stream : 0;
        const auto bytes = static_cast<std::int64_t>(end - start);
        if (history_.settings.expandable_segments && !last.empty() && last.back().stream == stream &&
            last.back().address + static_cast<std::uint64_t>(last.back().bytes) == start) {
            last.back().bytes += bytes;
        } else {
            last.push_back({start, bytes, stream});
        }
    }

    void tell_assumptions() {
        const auto say = [&](std::string text) { history_.assumptions.push_back(std::move(text)); };
        if (!initial_.empty()) {
            say(fmt::format(
                "The history begins with {} and {}, found backwards from the end of the recording; "
                "what-ifs begin with the same segments.",
                store::counted(static_cast<std::int64_t>(initial_.size()), "segment", "segments"),
                store::counted(placed_, "block", "blocks")));
        }
        if (unknown_places_ > 0) {
            say(fmt::format("{} of unknown stream {} assumed to serve the default one.",
                            store::counted(unknown_places_, "segment", "segments"),
                            unknown_places_ == 1 ? "is" : "are"));
        }
        if (unplaced_ > 0)
            say(fmt::format("{} have no address in the trace or in a segment of it and are not replayed.",
                            mb_and_bytes(unplaced_)));
        if (unknown_frees_ > 0) {
            say(fmt::format("{} without an allocation {} ignored.",
                            store::counted(unknown_frees_, "free", "frees"),
                            unknown_frees_ == 1 ? "is" : "are"));
        }
        if (no_stream_) say("The trace does not record streams; all requests are taken to be of one.");
        if (trace_.config_value(store::kMemoryCountedKey) != store::kMemoryCountedActive) {
            say("A block is reused as soon as the host has freed it: the trace does not record until when "
                "streams use it.");
        }
        if (emptied_ > 0) {
            say(fmt::format("The program emptied the cache {}, and does so in every replay.",
                            store::counted(emptied_, "time", "times")));
        }
    }

    const store::Trace& trace_;
    store::RankIndex rank_;
    const std::vector<std::uint32_t>& rows_;
    AllocatorHistory history_;
    PlacedRanges initial_, last_;
    std::map<std::uint64_t, std::int64_t> blocks_;  // of the beginning: requested bytes by address
    std::int64_t unplaced_ = 0, placed_ = 0, unknown_frees_ = 0, unknown_places_ = 0, emptied_ = 0;
    bool no_stream_ = false;
};

}  // namespace

AllocatorHistory allocator_history(const store::Trace& trace, store::RankIndex rank,
                                   const std::vector<std::uint32_t>& rows) {
    return HistoryReader(trace, rank, rows).read();
}

}  // namespace shardscope::traces::analysis
