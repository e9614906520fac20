#include "traces/import/join.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "traces/merge/run_facts.h"
#include "traces/store/error.h"

namespace shardscope::traces {

namespace {

// Rows of all parts in one order, and where each went.
struct Places {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> from;  // (part, row), in the new order
    std::vector<std::vector<std::int32_t>> to;                  // new row, by part and row

    std::int32_t moved(std::size_t part, std::int32_t row) const {
        return row < 0 ? -1 : to[part][static_cast<std::size_t>(row)];
    }
};

class Join {
  public:
    explicit Join(std::vector<std::unique_ptr<Trace>> parts)
        : parts_(std::move(parts)), result_(std::make_unique<Trace>()), out_(*result_) {}

    std::unique_ptr<Trace> run() {
        align();
        join_strings();
        join_ranks();
        join_model();
        join_actors();
        join_runtime_and_ranges();
        join_device();
        join_rest();
        join_facts();
        return std::move(result_);
    }

  private:
    const Trace& part(std::size_t p) const { return *parts_[p]; }

    void align() {
        alignment_ = align_clocks(clocks_of(parts_));
        std::int64_t first = std::numeric_limits<std::int64_t>::max();
        for (std::size_t p = 0; p < parts_.size(); ++p) first = std::min(first, alignment_.parts[p].clock(0));
        for (AlignedPart& aligned : alignment_.parts) aligned.clock.shift -= first;
        out_.start_utc_ns = part(0).start_utc_ns == 0 ? 0 : part(0).start_utc_ns + first;
    }
    std::int64_t time(std::size_t p, std::int64_t t) const { return alignment_.parts[p].clock(t); }

    void join_strings() {
        for (const auto& p : parts_) {
            auto& ids = strings_.emplace_back();
            ids.reserve(p->strings.size());
            for (std::size_t i = 0; i < p->strings.size(); ++i)
                ids.push_back(out_.strings.intern(p->strings[static_cast<StringId>(i)]));
        }
    }
    StringId text(std::size_t p, StringId id) const { return strings_[p][static_cast<std::size_t>(id)]; }

    static void check_size(std::size_t size, const char* what) {
        if (size < kNoRank) return;
        throw StoreError(
            fmt::format("the files have {} {} together, more than the {} that a trace can hold; open "
                        "fewer of them at once",
                        size, what, kNoRank - 1));
    }

    // Exports of Nsight Systems do not know ranks: the loader numbers what ran.
    static bool ranks_are_made_up(const Trace& trace) {
        return trace.schema_version == 0 &&
               std::none_of(trace.config.begin(), trace.config.end(),
                            [](const auto& fact) { return fact.first == "import.format"; });
    }

    // A rank's number in the joined trace. Two of one number are a mistake, but for numbers that nobody told.
    void join_ranks() {
        std::map<int, std::pair<std::size_t, std::size_t>> by_number;  // (part, index)
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            const bool made_up = ranks_are_made_up(part(p));
            for (std::size_t r = 0; r < part(p).ranks.size(); ++r) {
                int number = part(p).ranks[r].number;
                if (const auto other = by_number.find(number); other != by_number.end()) {
                    const Trace& owner = part(other->second.first);
                    if (!made_up && !ranks_are_made_up(owner)) {
                        throw StoreError(
                            fmt::format("{} and {} both hold rank {}; give one file for each rank of a job, "
                                        "or use compare for several runs",
                                        owner.path, part(p).path, number));
                    }
                    number = by_number.rbegin()->first + 1;
                    renumbered_.push_back(fmt::format(
                        "rank {} of {} is rank {} here, because {} has a rank {}, too",
                        part(p).ranks[r].number, part(p).path, number, owner.path, part(p).ranks[r].number));
                }
                by_number.emplace(number, std::pair(p, r));
            }
            ranks_.emplace_back(part(p).ranks.size());
        }
        check_size(by_number.size(), "ranks");
        for (const auto& [number, from] : by_number) {
            ranks_[from.first][from.second] = static_cast<std::uint16_t>(out_.ranks.size());
            out_.ranks.push_back(part(from.first).ranks[from.second]);
            out_.ranks.back().number = number;
        }
    }
    std::uint16_t rank(std::size_t p, std::uint16_t r) const { return r == kNoRank ? kNoRank : ranks_[p][r]; }
    int rank(std::size_t p, int r) const { return r < 0 ? -1 : ranks_[p][static_cast<std::size_t>(r)]; }

    // Parts of one run describe the same modules under the same ids; another run's get ids of their own.
    void join_model() {
        std::map<int, const ModuleRow*> modules;
        std::map<int, const UnitRow*> units;
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            const Trace& trace = part(p);
            const bool same = std::all_of(trace.modules.begin(), trace.modules.end(),
                                          [&](const ModuleRow& m) {
                                              const auto it = modules.find(m.id);
                                              return it == modules.end() || (it->second->name == m.name &&
                                                                             it->second->parent == m.parent);
                                          }) &&
                              std::all_of(trace.units.begin(), trace.units.end(), [&](const UnitRow& u) {
                                  const auto it = units.find(u.id);
                                  return it == units.end() || it->second->name == u.name;
                              });
            model_.push_back({});
            if (!same) {
                model_.back() = {modules.empty() ? 0 : modules.rbegin()->first + 1,
                                 units.empty() ? 0 : units.rbegin()->first + 1};
            }
            for (const ModuleRow& m : trace.modules) modules.try_emplace(module(p, m.id), &m);
            for (const UnitRow& u : trace.units) units.try_emplace(unit(p, u.id), &u);
            for (const ModuleRow& m : trace.modules) {
                if (modules.at(module(p, m.id)) != &m) continue;
                ModuleRow& row = out_.modules.emplace_back(m);
                row.id = module(p, m.id);
                row.parent = module(p, m.parent);
                row.unit = unit(p, m.unit);
            }
            for (const UnitRow& u : trace.units) {
                if (units.at(unit(p, u.id)) != &u) continue;
                UnitRow& row = out_.units.emplace_back(u);
                row.id = unit(p, u.id);
                row.module = module(p, u.module);
            }
        }
        const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
        std::sort(out_.modules.begin(), out_.modules.end(), by_id);
        std::sort(out_.units.begin(), out_.units.end(), by_id);
    }
    int module(std::size_t p, int id) const { return id < 0 ? id : id + model_[p].modules; }
    int unit(std::size_t p, int id) const { return id < 0 ? id : id + model_[p].units; }

    // Sorted by `less` over (part, row), ties in the order of the parts.
    template <typename Size, typename Less>
    Places places(Size size, Less less) const {
        Places places;
        std::size_t sum = 0;
        for (std::size_t p = 0; p < parts_.size(); ++p) sum += size(part(p));
        if (sum > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
            throw StoreError(
                fmt::format("the files have {} events of a kind together, more than a trace can hold; "
                            "open fewer of them at once",
                            sum));
        places.from.reserve(sum);
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            const std::size_t rows = size(part(p));
            places.to.emplace_back(rows);
            for (std::size_t i = 0; i < rows; ++i)
                places.from.emplace_back(static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(i));
        }
        std::stable_sort(places.from.begin(), places.from.end(),
                         [&](const auto& a, const auto& b) { return less(a, b); });
        for (std::size_t i = 0; i < places.from.size(); ++i)
            places.to[places.from[i].first][places.from[i].second] = static_cast<std::int32_t>(i);
        return places;
    }

    // One column of all parts in the new order: get(trace) is the column, map(part, value) the new value.
    template <typename Column, typename Get, typename Map>
    void gather(Column& into, const Places& places, Get get, Map map) const {
        into.reserve(places.from.size());
        for (const auto& [p, row] : places.from) into.push_back(map(p, get(part(p))[row]));
    }
    template <typename Column, typename Get>
    void gather(Column& into, const Places& places, Get get) const {
        gather(into, places, get, [](std::size_t, auto value) { return value; });
    }
    // A column that a part may lack.
    template <typename Column, typename Get, typename Map>
    void gather_some(Column& into, const Places& places, Get get, Map map,
                     typename Column::value_type none) const {
        const bool any =
            std::any_of(parts_.begin(), parts_.end(), [&](const auto& p) { return !get(*p).empty(); });
        if (!any) return;
        into.reserve(places.from.size());
        for (const auto& [p, row] : places.from)
            into.push_back(get(part(p)).empty() ? none : map(p, get(part(p))[row]));
    }

    auto mapped_time() const {
        return [this](std::size_t p, std::int64_t t) { return time(p, t); };
    }
    auto mapped_text() const {
        return [this](std::size_t p, StringId id) { return text(p, id); };
    }
    auto mapped_rank() const {
        return [this](std::size_t p, std::uint16_t r) { return rank(p, r); };
    }

    // Threads by rank, those of no rank last; streams by (rank, id).
    void join_actors() {
        thread_places_ =
            places([](const Trace& t) { return t.threads.size(); },
                   [this](const auto& a, const auto& b) {
                       const auto key = [this](const auto& x) {
                           return static_cast<unsigned>(rank(x.first, part(x.first).threads[x.second].rank));
                       };
                       return key(a) < key(b);
                   });
        check_size(thread_places_.from.size(), "threads");
        for (const auto& [p, row] : thread_places_.from) {
            HostThread& thread = out_.threads.emplace_back(part(p).threads[row]);
            thread.rank = rank(p, thread.rank);
        }
        stream_places_ = places([](const Trace& t) { return t.streams.size(); },
                                [this](const auto& a, const auto& b) {
                                    const auto key = [this](const auto& x) {
                                        const DeviceStream& s = part(x.first).streams[x.second];
                                        return std::pair(rank(x.first, s.rank), s.id);
                                    };
                                    return key(a) < key(b);
                                });
        check_size(stream_places_.from.size(), "streams");
        for (const auto& [p, row] : stream_places_.from) {
            DeviceStream& stream = out_.streams.emplace_back(part(p).streams[row]);
            stream.rank = rank(p, stream.rank);
        }
    }
    std::uint16_t thread(std::size_t p, std::uint16_t t) const {
        return static_cast<std::uint16_t>(thread_places_.to[p][t]);
    }

    // Starts first, of equal ones the longer.
    template <typename Columns>
    Places outer_first(Columns columns) const {
        return places([&](const Trace& t) { return columns(t).size(); },
                      [this, columns](const auto& a, const auto& b) {
                          const auto key = [&](const auto& x) {
                              const auto& c = columns(part(x.first));
                              return std::pair(time(x.first, c.start[x.second]),
                                               -time(x.first, c.end[x.second]));
                          };
                          return key(a) < key(b);
                      });
    }

    void join_runtime_and_ranges() {
        const auto ranges = [](const Trace& t) -> const HostRanges& { return t.ranges; };
        const auto calls = [](const Trace& t) -> const RuntimeCalls& { return t.runtime; };
        range_places_ = outer_first(ranges);
        call_places_ = outer_first(calls);
        const auto mapped_thread = [this](std::size_t p, std::uint16_t t) { return thread(p, t); };
        const auto mapped_range = [this](std::size_t p, std::int32_t r) { return range_places_.moved(p, r); };

        HostRanges& h = out_.ranges;
        const Places& r = range_places_;
        gather(
            h.start, r, [](const Trace& t) -> auto& { return t.ranges.start; }, mapped_time());
        gather(
            h.end, r, [](const Trace& t) -> auto& { return t.ranges.end; }, mapped_time());
        gather(
            h.name, r, [](const Trace& t) -> auto& { return t.ranges.name; }, mapped_text());
        gather(
            h.module, r, [](const Trace& t) -> auto& { return t.ranges.module; },
            [this](std::size_t p, std::int32_t id) { return module(p, id); });
        gather(
            h.parent, r, [](const Trace& t) -> auto& { return t.ranges.parent; }, mapped_range);
        gather(
            h.thread, r, [](const Trace& t) -> auto& { return t.ranges.thread; }, mapped_thread);
        gather(
            h.depth, r, [](const Trace& t) -> auto& { return t.ranges.depth; });
        gather(
            h.kind, r, [](const Trace& t) -> auto& { return t.ranges.kind; });
        gather_some(
            h.detail, r, [](const Trace& t) -> auto& { return t.ranges.detail; }, mapped_text(),
            StringId::empty);
        gather_some(
            h.forward, r, [](const Trace& t) -> auto& { return t.ranges.forward; }, mapped_range, -1);

        RuntimeCalls& c = out_.runtime;
        const Places& k = call_places_;
        gather(
            c.start, k, [](const Trace& t) -> auto& { return t.runtime.start; }, mapped_time());
        gather(
            c.end, k, [](const Trace& t) -> auto& { return t.runtime.end; }, mapped_time());
        gather(
            c.correlation, k, [](const Trace& t) -> auto& { return t.runtime.correlation; });
        gather(
            c.name, k, [](const Trace& t) -> auto& { return t.runtime.name; }, mapped_text());
        gather(
            c.thread, k, [](const Trace& t) -> auto& { return t.runtime.thread; }, mapped_thread);
        gather(
            c.range, k, [](const Trace& t) -> auto& { return t.runtime.range; }, mapped_range);

        const Places marks = by_time([](const Trace& t) -> auto& { return t.marks.time; });
        gather(
            out_.marks.time, marks, [](const Trace& t) -> auto& { return t.marks.time; }, mapped_time());
        gather(
            out_.marks.name, marks, [](const Trace& t) -> auto& { return t.marks.name; }, mapped_text());
        gather(
            out_.marks.thread, marks, [](const Trace& t) -> auto& { return t.marks.thread; }, mapped_thread);
    }

    template <typename Get>
    Places by_time(Get get) const {
        return places([&](const Trace& t) { return get(t).size(); },
                      [this, get](const auto& a, const auto& b) {
                          return time(a.first, get(part(a.first))[a.second]) <
                                 time(b.first, get(part(b.first))[b.second]);
                      });
    }
    template <typename Columns>
    Places by_start_and_end(Columns columns) const {
        return places([&](const Trace& t) { return columns(t).size(); },
                      [this, columns](const auto& a, const auto& b) {
                          const auto key = [&](const auto& x) {
                              const auto& c = columns(part(x.first));
                              return std::pair(time(x.first, c.start[x.second]),
                                               time(x.first, c.end[x.second]));
                          };
                          return key(a) < key(b);
                      });
    }

    void join_device() {
        const Places events =
            by_start_and_end([](const Trace& t) -> const DeviceEvents& { return t.device; });
        const Places collectives = places([](const Trace& t) { return t.collectives.size(); },
                                          [](const auto&, const auto&) { return false; });
        const auto mapped_stream = [this](std::size_t p, std::uint16_t s) {
            return static_cast<std::uint16_t>(stream_places_.to[p][s]);
        };
        DeviceEvents& d = out_.device;
        gather(
            d.start, events, [](const Trace& t) -> auto& { return t.device.start; }, mapped_time());
        gather(
            d.end, events, [](const Trace& t) -> auto& { return t.device.end; }, mapped_time());
        gather(
            d.correlation, events, [](const Trace& t) -> auto& { return t.device.correlation; });
        gather(
            d.bytes, events, [](const Trace& t) -> auto& { return t.device.bytes; });
        gather(
            d.name, events, [](const Trace& t) -> auto& { return t.device.name; }, mapped_text());
        gather(
            d.launch, events, [](const Trace& t) -> auto& { return t.device.launch; },
            [this](std::size_t p, std::int32_t i) { return call_places_.moved(p, i); });
        gather(
            d.collective, events, [](const Trace& t) -> auto& { return t.device.collective; },
            [&](std::size_t p, std::int32_t i) { return collectives.moved(p, i); });
        gather(
            d.rank, events, [](const Trace& t) -> auto& { return t.device.rank; }, mapped_rank());
        gather(
            d.stream, events, [](const Trace& t) -> auto& { return t.device.stream; }, mapped_stream);
        gather(
            d.kind, events, [](const Trace& t) -> auto& { return t.device.kind; });
        gather(
            d.copy_kind, events, [](const Trace& t) -> auto& { return t.device.copy_kind; });
        gather_some(
            d.range, events, [](const Trace& t) -> auto& { return t.device.range; },
            [this](std::size_t p, std::int32_t i) { return range_places_.moved(p, i); }, -1);
        const auto same = [](std::size_t, float value) { return value; };
        gather_some(
            d.blocks_per_sm, events, [](const Trace& t) -> auto& { return t.device.blocks_per_sm; }, same,
            -1.0F);
        gather_some(
            d.occupancy, events, [](const Trace& t) -> auto& { return t.device.occupancy; }, same, -1.0F);

        Collectives& c = out_.collectives;
        gather(
            c.correlation, collectives, [](const Trace& t) -> auto& { return t.collectives.correlation; });
        gather(
            c.bytes, collectives, [](const Trace& t) -> auto& { return t.collectives.bytes; });
        gather(
            c.padding, collectives, [](const Trace& t) -> auto& { return t.collectives.padding; });
        gather(
            c.group, collectives, [](const Trace& t) -> auto& { return t.collectives.group; });
        gather(
            c.sequence, collectives, [](const Trace& t) -> auto& { return t.collectives.sequence; });
        gather(
            c.group_size, collectives, [](const Trace& t) -> auto& { return t.collectives.group_size; });
        gather(
            c.unit, collectives, [](const Trace& t) -> auto& { return t.collectives.unit; },
            [this](std::size_t p, std::int32_t u) { return unit(p, u); });
        gather(
            c.event, collectives, [](const Trace& t) -> auto& { return t.collectives.event; },
            [&](std::size_t p, std::int32_t i) { return events.moved(p, i); });
        gather(
            c.rank, collectives, [](const Trace& t) -> auto& { return t.collectives.rank; }, mapped_rank());
        gather(
            c.operation, collectives, [](const Trace& t) -> auto& { return t.collectives.operation; });
        gather(
            c.phase, collectives, [](const Trace& t) -> auto& { return t.collectives.phase; });

        const Places waits =
            by_start_and_end([](const Trace& t) -> const Synchronizations& { return t.synchronizations; });
        Synchronizations& s = out_.synchronizations;
        gather(
            s.start, waits, [](const Trace& t) -> auto& { return t.synchronizations.start; }, mapped_time());
        gather(
            s.end, waits, [](const Trace& t) -> auto& { return t.synchronizations.end; }, mapped_time());
        gather(
            s.call, waits, [](const Trace& t) -> auto& { return t.synchronizations.call; },
            [this](std::size_t p, std::int32_t i) { return call_places_.moved(p, i); });
        gather(
            s.stream, waits, [](const Trace& t) -> auto& { return t.synchronizations.stream; },
            [this](std::size_t p, std::int32_t i) { return stream_places_.moved(p, i); });
        gather(
            s.rank, waits, [](const Trace& t) -> auto& { return t.synchronizations.rank; }, mapped_rank());
        gather(
            s.type, waits, [](const Trace& t) -> auto& { return t.synchronizations.type; });
    }

    void join_rest() {
        const Places memory = by_time([](const Trace& t) -> auto& { return t.memory.time; });
        MemoryEvents& m = out_.memory;
        gather(
            m.time, memory, [](const Trace& t) -> auto& { return t.memory.time; }, mapped_time());
        gather(
            m.bytes, memory, [](const Trace& t) -> auto& { return t.memory.bytes; });
        gather(
            m.address, memory, [](const Trace& t) -> auto& { return t.memory.address; });
        gather(
            m.unit, memory, [](const Trace& t) -> auto& { return t.memory.unit; },
            [this](std::size_t p, std::int32_t u) { return unit(p, u); });
        gather(
            m.module, memory, [](const Trace& t) -> auto& { return t.memory.module; },
            [this](std::size_t p, std::int32_t i) { return module(p, i); });
        gather(
            m.name, memory, [](const Trace& t) -> auto& { return t.memory.name; }, mapped_text());
        gather(
            m.rank, memory, [](const Trace& t) -> auto& { return t.memory.rank; }, mapped_rank());
        gather(
            m.category, memory, [](const Trace& t) -> auto& { return t.memory.category; });
        gather(
            m.space, memory, [](const Trace& t) -> auto& { return t.memory.space; });
        gather(
            m.phase, memory, [](const Trace& t) -> auto& { return t.memory.phase; });
        gather_some(
            m.annotation, memory, [](const Trace& t) -> auto& { return t.memory.annotation; }, mapped_text(),
            StringId::empty);
        gather_some(
            m.stack, memory, [](const Trace& t) -> auto& { return t.memory.stack; }, mapped_text(),
            StringId::empty);

        const Places segments = by_time([](const Trace& t) -> auto& { return t.segments.time; });
        Segments& g = out_.segments;
        gather(
            g.time, segments, [](const Trace& t) -> auto& { return t.segments.time; }, mapped_time());
        gather(
            g.bytes, segments, [](const Trace& t) -> auto& { return t.segments.bytes; });
        gather(
            g.address, segments, [](const Trace& t) -> auto& { return t.segments.address; });
        gather(
            g.stream, segments, [](const Trace& t) -> auto& { return t.segments.stream; });
        gather(
            g.rank, segments, [](const Trace& t) -> auto& { return t.segments.rank; }, mapped_rank());

        const Places counters = by_time([](const Trace& t) -> auto& { return t.counters.time; });
        gather(
            out_.counters.time, counters, [](const Trace& t) -> auto& { return t.counters.time; },
            mapped_time());
        gather(
            out_.counters.value, counters, [](const Trace& t) -> auto& { return t.counters.value; });
        gather(
            out_.counters.name, counters, [](const Trace& t) -> auto& { return t.counters.name; },
            mapped_text());
        gather(
            out_.counters.rank, counters, [](const Trace& t) -> auto& { return t.counters.rank; },
            mapped_rank());
    }

    void join_facts() {
        std::vector<RunFacts> facts;
        std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
        std::set<int> versions;
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            const Trace& t = part(p);
            facts.push_back(t.config);
            versions.insert(t.schema_version);
            out_.ended = out_.ended && t.ended;
            out_.dropped += t.dropped;
            out_.invalid_events += t.invalid_events;
            if (t.first_ns < t.last_ns) {
                first = std::min(first, time(p, t.first_ns));
                last = std::max(last, time(p, t.last_ns));
            }
            for (Step step : t.steps) {
                step.rank = rank(p, step.rank);
                step.start = time(p, step.start);
                step.end = time(p, step.end);
                out_.steps.push_back(step);
            }
            for (const PredictionRow& row : t.predictions) out_.predictions.push_back(row);
            for (const PredictionPartRow& row : t.prediction_parts) out_.prediction_parts.push_back(row);
            for (DiagnosticRow row : t.diagnostics) {
                row.time = time(p, row.time);
                row.text = fmt::format("{}: {}", t.path, row.text);
                out_.diagnostics.push_back(std::move(row));
            }
            for (FlightRow row : t.flight) {
                for (StringId* id :
                     {&row.group, &row.group_description, &row.name, &row.data_type, &row.sizes, &row.stack})
                    *id = text(p, *id);
                row.created = time(p, row.created);
                if (row.started) row.started = time(p, *row.started);
                if (row.completed) row.completed = time(p, *row.completed);
                out_.flight.push_back(row);
            }
        }
        if (first <= last) {
            out_.first_ns = first;
            out_.last_ns = last;
        }
        for (std::string& text : renumbered_)
            out_.diagnostics.push_back(
                {.time = 0, .severity = Severity::information, .text = std::move(text)});
        out_.schema_version = versions.size() == 1 ? *versions.begin() : 0;
        out_.path = fmt::format("{} and {} more", part(0).path, parts_.size() - 1);
        std::stable_sort(out_.steps.begin(), out_.steps.end(), [](const Step& a, const Step& b) {
            return std::tie(a.rank, a.start) < std::tie(b.rank, b.start);
        });
        std::stable_sort(out_.flight.begin(), out_.flight.end(), [](const FlightRow& a, const FlightRow& b) {
            return std::tie(a.rank, a.id) < std::tie(b.rank, b.id);
        });
        out_.config = merge_run_facts(facts);
        const auto us = [](std::int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) * 1e-3); };
        out_.config.emplace_back("merge.parts", std::to_string(parts_.size()));
        out_.config.emplace_back("merge.collectives", std::to_string(alignment_.collectives));
        out_.config.emplace_back("merge.residual_us", us(alignment_.residual_ns));
        out_.config.emplace_back("merge.residual_worst_us", us(alignment_.worst_ns));
        out_.config.emplace_back("merge.residual_by_wall_clock_us", us(alignment_.residual_by_wall_ns));
    }

    struct ModelOffset {
        int modules = 0, units = 0;
    };

    std::vector<std::unique_ptr<Trace>> parts_;
    std::unique_ptr<Trace> result_;
    Trace& out_;
    Alignment alignment_;
    std::vector<std::vector<StringId>> strings_;
    std::vector<std::vector<std::uint16_t>> ranks_;
    std::vector<std::string> renumbered_;
    std::vector<ModelOffset> model_;
    Places thread_places_, stream_places_, range_places_, call_places_;
};

}  // namespace

std::vector<PartClock> clocks_of(const std::vector<std::unique_ptr<Trace>>& parts) {
    std::vector<PartClock> clocks;
    for (const auto& part : parts) {
        PartClock& clock = clocks.emplace_back();
        clock.utc_ns = part->start_utc_ns;
        if (!part->ranks.empty()) clock.host = part->ranks.front().host;
        const Collectives& c = part->collectives;
        for (std::size_t i = 0; i < c.size(); ++i) {
            if (c.event[i] < 0) continue;
            const auto event = static_cast<std::size_t>(c.event[i]);
            clock.add(c.operation[i], c.group[i], c.group_size[i], c.sequence[i], c.rank[i],
                      part->device.start[event], part->device.end[event]);
        }
    }
    return clocks;
}

std::unique_ptr<Trace> join_traces(std::vector<std::unique_ptr<Trace>> parts) {
    return Join(std::move(parts)).run();
}

}  // namespace shardscope::traces
