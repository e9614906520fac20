#include "traces/import/join/join_columns.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/owners.h"
#include "traces/store/error.h"

namespace shardscope::traces {

namespace {

// A row of a part.
struct PartRow {
    std::uint32_t part = 0, row = 0;
};

// The rows of all parts in their new order, and the new index of each.
struct Places {
    std::vector<PartRow> from;                  // in the new order
    std::vector<std::vector<std::int32_t>> to;  // new row, by part and row

    std::int32_t moved(std::size_t part, std::int32_t row) const {
        return row < 0 ? -1 : to[part][static_cast<std::size_t>(row)];
    }
};

// Fills the columns of one kind of row, one column after the other, in the order of `Places`.
template <typename Rows>
class Columns {
  public:
    Columns(const Parts& parts, Trace& out, Rows Trace::*rows, const Places& places)
        : parts_(parts), out_(out), rows_(rows), places_(places) {}

    // `map(part, value)` returns the value in the joined trace.
    template <typename Column, typename Map>
    void add(Column Rows::*column, Map map) const {
        Column& into = (out_.*rows_).*column;
        into.reserve(places_.from.size());
        for (const PartRow& at : places_.from) into.push_back(map(at.part, of(at, column)[at.row]));
    }
    template <typename Map>
    void add(IndexColumn Rows::*column, Map map) const {
        IndexColumn& into = (out_.*rows_).*column;
        into.reset(places_.from.size());
        for (std::size_t i = 0; i < places_.from.size(); ++i) {
            const PartRow& at = places_.from[i];
            into.set(i, map(at.part, of(at, column)[at.row]));
        }
    }
    // Columns whose values need no mapping.
    template <typename... Column>
    void add_as_they_are(Column... column) const {
        (add(column, [](std::size_t, auto value) { return value; }), ...);
    }
    // A column that a part may lack.
    template <typename Column, typename Map>
    void add_if_any(Column Rows::*column, Map map, typename Column::value_type none) const {
        const bool any = std::any_of(parts_.begin(), parts_.end(),
                                     [&](const auto& part) { return !((*part).*rows_.*column).empty(); });
        if (!any) return;
        Column& into = (out_.*rows_).*column;
        into.reserve(places_.from.size());
        for (const PartRow& at : places_.from)
            into.push_back(of(at, column).empty() ? none : map(at.part, of(at, column)[at.row]));
    }

  private:
    template <typename Column>
    const Column& of(const PartRow& at, Column Rows::*column) const {
        return (*parts_[at.part]).*rows_.*column;
    }

    const Parts& parts_;
    Trace& out_;
    Rows Trace::*rows_;
    const Places& places_;
};

class ColumnJoin {
  public:
    ColumnJoin(const Parts& parts, const JoinIds& ids, Trace& out) : parts_(parts), ids_(ids), out_(out) {}

    void run() {
        join_actors();
        join_host();
        join_device();
        join_collectives();
        join_synchronizations();
        join_memory();
        join_counters();
    }

  private:
    const Trace& part(std::size_t p) const { return *parts_[p]; }

    // --- orders --------------------------------------------------------------------------------------------

    // `size(trace)` rows of each part, sorted by `key(row)`; ties in the order of the parts.
    template <typename Size, typename Key>
    Places places(Size size, Key key) const {
        Places places;
        std::size_t sum = 0;
        for (std::size_t p = 0; p < parts_.size(); ++p) sum += size(part(p));
        if (sum > kRowsAtMost)
            throw StoreError(
                fmt::format("the files have {} events of a kind together, more than a trace can hold; open "
                            "fewer of them at a time",
                            sum));
        places.from.reserve(sum);
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            const std::size_t rows = size(part(p));
            places.to.emplace_back(rows);
            for (std::size_t i = 0; i < rows; ++i)
                places.from.push_back({static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(i)});
        }
        std::stable_sort(places.from.begin(), places.from.end(),
                         [&](const PartRow& a, const PartRow& b) { return key(a) < key(b); });
        for (std::size_t i = 0; i < places.from.size(); ++i)
            places.to[places.from[i].part][places.from[i].row] = static_cast<std::int32_t>(i);
        return places;
    }
    template <typename Rows>
    Places by_time(Rows Trace::*rows) const {
        return places([&](const Trace& t) { return (t.*rows).size(); },
                      [&](const PartRow& x) { return ids_.time(x.part, (part(x.part).*rows).time[x.row]); });
    }
    template <typename Rows>
    Places by_start_and_end(Rows Trace::*rows, std::int64_t sign_of_end = 1) const {
        return places([&](const Trace& t) { return (t.*rows).size(); },
                      [&](const PartRow& x) {
                          const Rows& c = part(x.part).*rows;
                          return std::pair(ids_.time(x.part, c.start[x.row]),
                                           sign_of_end * ids_.time(x.part, c.end[x.row]));
                      });
    }
    // If starts are equal, the longer row comes first.
    template <typename Rows>
    Places outer_first(Rows Trace::*rows) const {
        return by_start_and_end(rows, -1);
    }

    // --- values --------------------------------------------------------------------------------------------

    auto times() const {
        return [this](std::size_t p, std::int64_t t) { return ids_.time(p, t); };
    }
    auto texts() const {
        return [this](std::size_t p, StringId id) { return ids_.text(p, id); };
    }
    auto ranks() const {
        return [this](std::size_t p, std::uint16_t r) { return ids_.rank(p, r); };
    }
    auto modules() const {
        return [this](std::size_t p, std::int32_t id) { return ids_.module(p, id); };
    }
    auto units() const {
        return [this](std::size_t p, std::int32_t id) { return ids_.unit(p, id); };
    }
    auto threads() const {
        return [this](std::size_t p, std::uint16_t t) {
            return static_cast<std::uint16_t>(thread_places_.to[p][t]);
        };
    }
    static auto rows_of(const Places& places) {
        return [&places](std::size_t p, std::int32_t row) { return places.moved(p, row); };
    }
    template <typename Rows>
    Columns<Rows> columns(Rows Trace::*rows, const Places& places) const {
        return {parts_, out_, rows, places};
    }

    // --- rows ----------------------------------------------------------------------------------------------

    // Threads by rank, those of no rank last; streams by (rank, id).
    void join_actors() {
        thread_places_ =
            places([](const Trace& t) { return t.threads.size(); },
                   [this](const PartRow& x) {
                       return static_cast<unsigned>(ids_.rank(x.part, part(x.part).threads[x.row].rank));
                   });
        check_joined_size(thread_places_.from.size(), "threads");
        for (const auto& [p, row] : thread_places_.from) {
            HostThread& thread = out_.threads.emplace_back(part(p).threads[row]);
            thread.rank = ids_.rank(p, thread.rank);
        }
        stream_places_ = places([](const Trace& t) { return t.streams.size(); },
                                [this](const PartRow& x) {
                                    const DeviceStream& s = part(x.part).streams[x.row];
                                    return std::pair(ids_.rank(x.part, s.rank), s.id);
                                });
        check_joined_size(stream_places_.from.size(), "streams");
        for (const auto& [p, row] : stream_places_.from) {
            DeviceStream& stream = out_.streams.emplace_back(part(p).streams[row]);
            stream.rank = ids_.rank(p, stream.rank);
        }
    }

    void join_host() {
        range_places_ = outer_first(&Trace::ranges);
        call_places_ = outer_first(&Trace::runtime);

        const auto ranges = columns(&Trace::ranges, range_places_);
        ranges.add(&HostRanges::start, times());
        ranges.add(&HostRanges::end, times());
        ranges.add(&HostRanges::name, texts());
        ranges.add(&HostRanges::module, modules());
        ranges.add(&HostRanges::parent, rows_of(range_places_));
        ranges.add(&HostRanges::thread, threads());
        ranges.add_as_they_are(&HostRanges::depth, &HostRanges::kind);
        ranges.add_if_any(&HostRanges::detail, texts(), StringId::empty);
        ranges.add_if_any(&HostRanges::forward, rows_of(range_places_), -1);

        const auto calls = columns(&Trace::runtime, call_places_);
        calls.add(&RuntimeCalls::start, times());
        calls.add(&RuntimeCalls::end, times());
        calls.add_as_they_are(&RuntimeCalls::correlation);
        calls.add(&RuntimeCalls::name, texts());
        calls.add(&RuntimeCalls::thread, threads());
        calls.add(&RuntimeCalls::range, rows_of(range_places_));

        const Places order = by_time(&Trace::marks);
        const auto marks = columns(&Trace::marks, order);
        marks.add(&Marks::time, times());
        marks.add(&Marks::name, texts());
        marks.add(&Marks::thread, threads());
    }

    void join_device() {
        event_places_ = by_start_and_end(&Trace::device);
        collective_places_ =
            places([](const Trace& t) { return t.collectives.size(); }, [](const PartRow&) { return 0; });
        const auto events = columns(&Trace::device, event_places_);
        events.add(&DeviceEvents::start, times());
        events.add(&DeviceEvents::end, times());
        events.add_as_they_are(&DeviceEvents::correlation, &DeviceEvents::bytes);
        events.add(&DeviceEvents::name, texts());
        events.add(&DeviceEvents::launch, rows_of(call_places_));
        events.add(&DeviceEvents::collective, rows_of(collective_places_));
        events.add(&DeviceEvents::rank, ranks());
        events.add(&DeviceEvents::stream, [this](std::size_t p, std::uint16_t s) {
            return static_cast<std::uint16_t>(stream_places_.to[p][s]);
        });
        events.add_as_they_are(&DeviceEvents::kind, &DeviceEvents::copy_kind);
        events.add(&DeviceEvents::range, rows_of(range_places_));
        const auto same = [](std::size_t, float value) { return value; };
        events.add_if_any(&DeviceEvents::blocks_per_sm, same, -1.0F);
        events.add_if_any(&DeviceEvents::occupancy, same, -1.0F);
    }

    void join_collectives() {
        const auto collectives = columns(&Trace::collectives, collective_places_);
        collectives.add_as_they_are(&Collectives::correlation, &Collectives::bytes, &Collectives::padding,
                                    &Collectives::group, &Collectives::sequence, &Collectives::group_size);
        collectives.add(&Collectives::unit, units());
        collectives.add(&Collectives::event, rows_of(event_places_));
        collectives.add(&Collectives::rank, ranks());
        collectives.add_as_they_are(&Collectives::operation, &Collectives::phase);
    }

    void join_synchronizations() {
        const Places order = by_start_and_end(&Trace::synchronizations);
        const auto waits = columns(&Trace::synchronizations, order);
        waits.add(&Synchronizations::start, times());
        waits.add(&Synchronizations::end, times());
        waits.add(&Synchronizations::call, rows_of(call_places_));
        waits.add(&Synchronizations::stream, rows_of(stream_places_));
        waits.add(&Synchronizations::rank, ranks());
        waits.add_as_they_are(&Synchronizations::type);
    }

    void join_memory() {
        const Places events_order = by_time(&Trace::memory);
        const auto events = columns(&Trace::memory, events_order);
        events.add(&MemoryEvents::time, times());
        events.add_as_they_are(&MemoryEvents::bytes, &MemoryEvents::address);
        events.add(&MemoryEvents::unit, units());
        events.add(&MemoryEvents::module, modules());
        events.add(&MemoryEvents::name, texts());
        events.add(&MemoryEvents::rank, ranks());
        events.add_as_they_are(&MemoryEvents::category, &MemoryEvents::space, &MemoryEvents::phase);
        events.add_if_any(&MemoryEvents::annotation, texts(), StringId::empty);
        events.add_if_any(&MemoryEvents::stack, texts(), StringId::empty);
        events.add_if_any(
            &MemoryEvents::device, [](std::size_t, std::uint16_t device) { return device; }, 0);
        events.add_if_any(
            &MemoryEvents::stream, [](std::size_t, std::int32_t stream) { return stream; }, -1);

        const Places segments_order = by_time(&Trace::segments);
        const auto segments = columns(&Trace::segments, segments_order);
        segments.add(&Segments::time, times());
        segments.add_as_they_are(&Segments::bytes, &Segments::address, &Segments::stream);
        segments.add(&Segments::rank, ranks());
    }

    void join_counters() {
        const Places order = by_time(&Trace::counters);
        const auto counters = columns(&Trace::counters, order);
        counters.add(&Counters::time, times());
        counters.add_as_they_are(&Counters::value);
        counters.add(&Counters::name, texts());
        counters.add(&Counters::rank, ranks());
    }

    const Parts& parts_;
    const JoinIds& ids_;
    Trace& out_;
    Places thread_places_, stream_places_, range_places_, call_places_, event_places_, collective_places_;
};

}  // namespace

void join_columns(const Parts& parts, const JoinIds& ids, Trace& out) {
    ColumnJoin(parts, ids, out).run();
}

}  // namespace shardscope::traces
