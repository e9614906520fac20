#include "traces/import/join/join_columns.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/owners.h"
#include "traces/store/error.h"

namespace shardscope::traces::importer {

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
    Columns(const Parts& parts, store::Trace& out, Rows store::Trace::*rows, const Places& places)
        : parts_(parts), out_(out), rows_(rows), places_(places) {}

    // `map(part, value)` returns the value in the joined trace.
    template <typename Column, typename Map>
    void add(Column Rows::*column, Map map) const {
        Column& into = (out_.*rows_).*column;
        into.reserve(places_.from.size());
        for (const PartRow& at : places_.from) into.push_back(map(at.part, of(at, column)[at.row]));
    }
    template <typename Map>
    void add(store::IndexColumn Rows::*column, Map map) const {
        store::IndexColumn& into = (out_.*rows_).*column;
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
    store::Trace& out_;
    Rows store::Trace::*rows_;
    const Places& places_;
};

class ColumnJoin {
  public:
    ColumnJoin(const Parts& parts, const JoinIds& ids, store::Trace& out)
        : parts_(parts), ids_(ids), out_(out) {}

    void run() {
        join_actors();
        join_host();
        join_device();
        join_collectives();
        join_synchronizations();
        join_memory();
        join_samples();
        join_counters();
    }

  private:
    const store::Trace& part(std::size_t p) const { return *parts_[p]; }

    // --- orders --------------------------------------------------------------------------------------------

    // `size(trace)` rows of each part, sorted by `key(row)`; ties in the order of the parts.
    template <typename Size, typename Key>
    Places places(Size size, Key key) const {
        Places places;
        std::size_t sum = 0;
        for (std::size_t p = 0; p < parts_.size(); ++p) sum += size(part(p));
        if (sum > store::kRowsAtMost)
            throw store::StoreError(
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
    Places by_time(Rows store::Trace::*rows) const {
        return places([&](const store::Trace& t) { return (t.*rows).size(); },
                      [&](const PartRow& x) { return ids_.time(x.part, (part(x.part).*rows).time[x.row]); });
    }
    template <typename Rows>
    Places by_start_and_end(Rows store::Trace::*rows, std::int64_t sign_of_end = 1) const {
        return places([&](const store::Trace& t) { return (t.*rows).size(); },
                      [&](const PartRow& x) {
                          const Rows& c = part(x.part).*rows;
                          return std::pair(ids_.time(x.part, c.start[x.row]),
                                           sign_of_end * ids_.time(x.part, c.end[x.row]));
                      });
    }
    // If starts are equal, the longer row comes first.
    template <typename Rows>
    Places outer_first(Rows store::Trace::*rows) const {
        return by_start_and_end(rows, -1);
    }

    // --- values --------------------------------------------------------------------------------------------

    auto times() const {
        return [this](std::size_t p, std::int64_t t) { return ids_.time(p, t); };
    }
    auto texts() const {
        return [this](std::size_t p, schema::StringId id) { return ids_.text(p, id); };
    }
    auto ranks() const {
        return [this](std::size_t p, std::uint16_t r) { return ids_.rank(p, store::RankIndex(r)).column(); };
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
    Columns<Rows> columns(Rows store::Trace::*rows, const Places& places) const {
        return {parts_, out_, rows, places};
    }

    // --- rows ----------------------------------------------------------------------------------------------

    // Threads by rank, those of no rank last; streams by (rank, id).
    void join_actors() {
        thread_places_ =
            places([](const store::Trace& t) { return t.threads.size(); },
                   [this](const PartRow& x) { return ids_.rank(x.part, part(x.part).threads[x.row].rank); });
        check_joined_size(thread_places_.from.size(), "threads");
        for (const auto& [p, row] : thread_places_.from) {
            store::HostThread& thread = out_.threads.emplace_back(part(p).threads[row]);
            thread.rank = ids_.rank(p, thread.rank);
        }
        stream_places_ = places([](const store::Trace& t) { return t.streams.size(); },
                                [this](const PartRow& x) {
                                    const store::DeviceStream& s = part(x.part).streams[x.row];
                                    return std::pair(ids_.rank(x.part, s.rank), s.id);
                                });
        check_joined_size(stream_places_.from.size(), "streams");
        for (const auto& [p, row] : stream_places_.from) {
            store::DeviceStream& stream = out_.streams.emplace_back(part(p).streams[row]);
            stream.rank = ids_.rank(p, stream.rank);
        }
    }

    void join_host() {
        range_places_ = outer_first(&store::Trace::ranges);
        call_places_ = outer_first(&store::Trace::runtime);

        const auto ranges = columns(&store::Trace::ranges, range_places_);
        ranges.add(&store::HostRanges::start, times());
        ranges.add(&store::HostRanges::end, times());
        ranges.add(&store::HostRanges::name, texts());
        ranges.add(&store::HostRanges::module, modules());
        ranges.add(&store::HostRanges::parent, rows_of(range_places_));
        ranges.add(&store::HostRanges::thread, threads());
        ranges.add_as_they_are(&store::HostRanges::depth, &store::HostRanges::kind);
        ranges.add_if_any(&store::HostRanges::detail, texts(), schema::StringId::empty);
        ranges.add_if_any(&store::HostRanges::forward, rows_of(range_places_), -1);

        const auto calls = columns(&store::Trace::runtime, call_places_);
        calls.add(&store::RuntimeCalls::start, times());
        calls.add(&store::RuntimeCalls::end, times());
        calls.add_as_they_are(&store::RuntimeCalls::correlation);
        calls.add(&store::RuntimeCalls::name, texts());
        calls.add(&store::RuntimeCalls::thread, threads());
        calls.add(&store::RuntimeCalls::range, rows_of(range_places_));

        const Places order = by_time(&store::Trace::marks);
        const auto marks = columns(&store::Trace::marks, order);
        marks.add(&store::Marks::time, times());
        marks.add(&store::Marks::name, texts());
        marks.add(&store::Marks::thread, threads());
    }

    void join_device() {
        event_places_ = by_start_and_end(&store::Trace::device);
        collective_places_ = places([](const store::Trace& t) { return t.collectives.size(); },
                                    [](const PartRow&) { return 0; });
        const auto events = columns(&store::Trace::device, event_places_);
        events.add(&store::DeviceEvents::start, times());
        events.add(&store::DeviceEvents::end, times());
        events.add_as_they_are(&store::DeviceEvents::correlation, &store::DeviceEvents::bytes);
        events.add(&store::DeviceEvents::name, texts());
        events.add(&store::DeviceEvents::launch, rows_of(call_places_));
        events.add(&store::DeviceEvents::collective, rows_of(collective_places_));
        events.add(&store::DeviceEvents::rank, ranks());
        events.add(&store::DeviceEvents::stream, [this](std::size_t p, std::uint16_t s) {
            return static_cast<std::uint16_t>(stream_places_.to[p][s]);
        });
        events.add_as_they_are(&store::DeviceEvents::kind, &store::DeviceEvents::copy_kind);
        events.add(&store::DeviceEvents::range, rows_of(range_places_));
        const auto same = [](std::size_t, float value) { return value; };
        events.add_if_any(&store::DeviceEvents::blocks_per_sm, same, -1.0F);
        events.add_if_any(&store::DeviceEvents::occupancy, same, -1.0F);
    }

    void join_collectives() {
        const auto collectives = columns(&store::Trace::collectives, collective_places_);
        collectives.add_as_they_are(&store::Collectives::correlation, &store::Collectives::bytes,
                                    &store::Collectives::padding, &store::Collectives::group,
                                    &store::Collectives::sequence, &store::Collectives::group_size);
        collectives.add(&store::Collectives::unit, units());
        collectives.add(&store::Collectives::event, rows_of(event_places_));
        collectives.add(&store::Collectives::rank, ranks());
        collectives.add_as_they_are(&store::Collectives::operation, &store::Collectives::phase);
    }

    void join_synchronizations() {
        const Places order = by_start_and_end(&store::Trace::synchronizations);
        const auto waits = columns(&store::Trace::synchronizations, order);
        waits.add(&store::Synchronizations::start, times());
        waits.add(&store::Synchronizations::end, times());
        waits.add(&store::Synchronizations::call, rows_of(call_places_));
        waits.add(&store::Synchronizations::stream, rows_of(stream_places_));
        waits.add(&store::Synchronizations::rank, ranks());
        waits.add_as_they_are(&store::Synchronizations::type);
    }

    void join_memory() {
        const Places events_order = by_time(&store::Trace::memory);
        const auto events = columns(&store::Trace::memory, events_order);
        events.add(&store::MemoryEvents::time, times());
        events.add_as_they_are(&store::MemoryEvents::bytes, &store::MemoryEvents::address);
        events.add(&store::MemoryEvents::unit, units());
        events.add(&store::MemoryEvents::module, modules());
        events.add(&store::MemoryEvents::name, texts());
        events.add(&store::MemoryEvents::rank, ranks());
        events.add_as_they_are(&store::MemoryEvents::category, &store::MemoryEvents::space,
                               &store::MemoryEvents::phase);
        events.add_if_any(&store::MemoryEvents::annotation, texts(), schema::StringId::empty);
        events.add_if_any(&store::MemoryEvents::stack, texts(), schema::StringId::empty);
        events.add_if_any(
            &store::MemoryEvents::device, [](std::size_t, std::uint16_t device) { return device; }, 0);
        events.add_if_any(
            &store::MemoryEvents::stream, [](std::size_t, std::int32_t stream) { return stream; }, -1);

        const Places segments_order = by_time(&store::Trace::segments);
        const auto segments = columns(&store::Trace::segments, segments_order);
        segments.add(&store::Segments::time, times());
        segments.add_as_they_are(&store::Segments::bytes, &store::Segments::address,
                                 &store::Segments::stream);
        segments.add(&store::Segments::rank, ranks());
    }

    void join_samples() {
        const Places order = by_time(&store::Trace::samples);
        const auto samples = columns(&store::Trace::samples, order);
        samples.add(&store::Samples::time, times());
        samples.add_as_they_are(&store::Samples::weight);
        samples.add(&store::Samples::event, texts());
        samples.add(&store::Samples::stack, texts());
        samples.add_as_they_are(&store::Samples::cpu);
        samples.add(&store::Samples::thread, threads());
    }

    void join_counters() {
        const Places order = by_time(&store::Trace::counters);
        const auto counters = columns(&store::Trace::counters, order);
        counters.add(&store::Counters::time, times());
        counters.add_as_they_are(&store::Counters::value);
        counters.add(&store::Counters::name, texts());
        counters.add(&store::Counters::rank, ranks());
        counters.add(&store::Counters::host, texts());
        counters.add_as_they_are(&store::Counters::device);
    }

    const Parts& parts_;
    const JoinIds& ids_;
    store::Trace& out_;
    Places thread_places_, stream_places_, range_places_, call_places_, event_places_, collective_places_;
};

}  // namespace

void join_columns(const Parts& parts, const JoinIds& ids, store::Trace& out) {
    ColumnJoin(parts, ids, out).run();
}

}  // namespace shardscope::traces::importer
