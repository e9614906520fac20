// Loads the events of devices and host threads. These tables have most of a trace's rows: each value goes
// straight from SQLite into its column.
#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_set>

#include <fmt/core.h>

#include "traces/schema/enums.h"
#include "traces/store/columns/name_facts.h"
#include "traces/store/columns/nvtx_names.h"
#include "traces/store/load/load_source.h"
#include "traces/store/nccl/nccl_collectives.h"

namespace shardscope::traces::store {

namespace {

// --- devices ---------------------------------------------------------------------------------------------

// Facts for which the device tables have no column, looked up by the event's start, device, stream and
// launch.
class Details {
  public:
    struct Row {
        std::int64_t start = 0, device = 0, stream = 0, correlation = 0, external_id = 0;
        float blocks_per_sm = -1, occupancy = -1;
        std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t> place() const {
            return {start, device, stream, correlation};
        }
    };

    explicit Details(LoadSource& source) {
        source.scan_fast(
            "SHARD_DEVICE_DETAILS",
            {"start", "deviceId", "streamId", "correlationId", "externalId", "blocksPerSm", "occupancy"},
            [&](const FastRow& r) {
                rows_.push_back({r.integer(0), r.integer(1), r.integer(2), r.integer(3), r.integer(4),
                                 static_cast<float>(r.is_null(5) ? -1 : r.real(5)),
                                 static_cast<float>(r.is_null(6) ? -1 : r.real(6))});
            });
        const auto less = [](const Row& a, const Row& b) { return a.place() < b.place(); };
        if (!std::is_sorted(rows_.begin(), rows_.end(), less))
            std::stable_sort(rows_.begin(), rows_.end(), less);
    }

    const std::vector<Row>& rows() const { return rows_; }

  private:
    std::vector<Row> rows_;
};

// Looks details up for events in their order.
class NextDetail {
  public:
    explicit NextDetail(const Details& details) : rows_(details.rows()) {}

    // Adds the details of the event that was added last.
    void add_to(PendingRows& into, std::int64_t start, std::int64_t device, std::int64_t stream,
                std::int64_t correlation) {
        if (rows_.empty()) return;
        const Details::Row sought = {start, device, stream, correlation};
        // Events arrive in the same order, so that the next detail mostly matches.
        if (next_ >= rows_.size() || rows_[next_].place() != sought.place()) {
            next_ =
                static_cast<std::size_t>(std::lower_bound(rows_.begin(), rows_.end(), sought,
                                                          [](const Details::Row& a, const Details::Row& b) {
                                                              return a.place() < b.place();
                                                          }) -
                                         rows_.begin());
            if (next_ == rows_.size() || rows_[next_].place() != sought.place()) return;
        }
        const Details::Row& found = rows_[next_++];
        into.detail_device(found.external_id, found.blocks_per_sm, found.occupancy);
    }

  private:
    const std::vector<Details::Row>& rows_;
    std::size_t next_ = 0;
};

class DeviceLoader {
  public:
    DeviceLoader(LoadSource& source, const Details& details)
        : source_(source), rows_(source.sink.pending()), names_(source.sink.names()), details_(details) {
        std::int64_t room = 0;
        for (const char* table : kDeviceTables) room += source.rows_at_most(table);
        PendingDevice& d = rows_.device;
        const auto reserve = [&](auto&... columns) {
            (columns.reserve(static_cast<std::size_t>(room)), ...);
        };
        reserve(d.start, d.end, d.correlation, d.bytes, d.name, d.lane, d.kind, d.copy_kind);
    }

    void load_kernels() {
        source_.scan_fast(kDeviceTables[0],
                          {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "shortName",
                           "demangledName"},
                          [&](const FastRow& r) {
                              const auto [name, kind] =
                                  names_.kernel(source_.string_or_empty(r, 6), source_.string_or_empty(r, 7));
                              add(r, name, kind, 0, 0);
                          });
    }
    void load_copies() {
        source_.scan_fast(
            kDeviceTables[1],
            {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind"},
            [&](const FastRow& r) {
                add(r, names_.memcpy(narrow(r.integer(7))), DeviceKind::memcpy, r.integer(6),
                    NameFacts::known_copy_kind(r.integer(7)));
            });
    }
    void load_others() {
        source_.scan_fast(
            kDeviceTables[2], {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes"},
            [&](const FastRow& r) { add(r, names_.memset(), DeviceKind::memset, r.integer(6), 0); });
        load_graphs();
    }

  private:
    // Adds a row that begins with the six columns that these tables share.
    void add(const FastRow& r, schema::StringId name, DeviceKind kind, std::int64_t bytes,
             std::uint8_t copy_kind) {
        const std::int64_t start = r.integer(0), end = r.integer(1);
        if (!rows_.accept_moved(bytes) || !rows_.accept(start, end)) return;
        const int device = narrow(r.integer(2)), stream = narrow(r.integer(3));
        const std::int64_t correlation = r.integer(4);
        rows_.add_device(start, end, rows_.device.lane_of(r.integer(5), device, stream), correlation, name,
                         kind, bytes, copy_kind);
        details_.add_to(rows_, start, device, stream, correlation);
    }

    // A whole graph stands for its kernels if they were not traced individually.
    void load_graphs() {
        constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
        if (source_.rows_at_most(kTable) == 0) return;
        std::unordered_set<std::int64_t> traced;  // launches whose kernels were traced
        const PendingDevice& d = rows_.device;
        for (std::size_t i = 0; i < d.size(); ++i) traced.insert(d.correlation[i] ^ pid_of_lane(d.lane[i]));
        source_.scan_fast(kTable,
                          {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId"},
                          [&](const FastRow& r) {
                              if (r.integer(4) != 0 && traced.contains(r.integer(4) ^ r.integer(5))) return;
                              add(r, source_.sink.intern(fmt::format("CUDA graph {}", r.integer(6))),
                                  DeviceKind::kernel, 0, 0);
                          });
    }
    std::int64_t pid_of_lane(std::uint32_t lane) const { return rows_.device.lanes[lane].a; }

    LoadSource& source_;
    PendingRows& rows_;
    NameFacts& names_;
    NextDetail details_;
};

void load_collectives(LoadSource& source) {
    PendingRows& rows = source.sink.pending();
    rows.collectives.reserve(static_cast<std::size_t>(source.rows_at_most("SHARD_COLLECTIVES")));
    source.scan_rows<schema::CollectiveRow>([&](const schema::CollectiveRow& row) {
        if (rows.accept(row)) rows.collectives.push_back(row);
    });
}

// --- host ------------------------------------------------------------------------------------------------

class RangeLoader {
  public:
    explicit RangeLoader(LoadSource& source) : source_(source), rows_(source.sink.pending()) {
        PendingRanges& p = rows_.ranges;
        const auto room = static_cast<std::size_t>(source.rows_at_most("NVTX_EVENTS"));
        const auto reserve = [&](auto&... columns) { (columns.reserve(room), ...); };
        reserve(p.start, p.end, p.name, p.module, p.thread, p.domain);
    }

    void load() {
        source_.scan_fast("NVTX_EVENTS",
                          {"start", "end", "eventType", "globalTid", "domainId", "textId|text", "int64Value",
                           "uint64Value", "jsonTextId|jsonText"},
                          [&](const FastRow& r) { add(r); });
    }

  private:
    void add(const FastRow& r) {
        const std::int64_t type = r.integer(2);
        if (type == schema::kNvtxDomainCreate) {
            rows_.name_domain(domain(r), source_.id_or_text(r, 5));
            return;
        }
        if (type != schema::kNvtxPushPop && type != schema::kNvtxStartEnd && type != schema::kNvtxMark)
            return;
        const std::int64_t start = r.integer(0), end = r.integer_or(1, start);
        const bool ended = end != start || !r.is_null(1);
        if (!rows_.accept(start, end)) return;
        schema::StringId name = source_.id_or_text(r, 5);
        if (!ended) {
            if (type == schema::kNvtxMark) rows_.add_mark(start, r.integer(3), name);
            return;
        }
        schema::StringId detail = r.is_null(8) ? schema::StringId::empty : source_.id_or_text(r, 8);
        std::uint32_t in = domain(r);
        if (source_.reads_names && r.integer(4) == 0) {
            const Reading& reading = reading_of(name);
            name = reading.name;
            if (detail == schema::StringId::empty) detail = reading.detail;
            if (reading.domain) in = *reading.domain;
        }
        // A payload that does not name a module is the program's own; 0 may mean none.
        const std::int64_t module = source_.modules.empty() ? -1 : r.integer_or(6, -1);
        const bool known = module >= 0 && source_.modules.contains(module);
        rows_.add_range(start, end, r.integer(3), name, in, known ? narrow(module) : -1, r.integer(7),
                        detail);
    }

    // Domain numbers are unique within a process; 0 is the default domain.
    std::uint32_t domain(const FastRow& r) {
        const std::int64_t number = r.integer(4);
        return number == 0 ? rows_.domains.of(0, 0)
                           : rows_.domains.of(r.integer(3) & schema::kPidMask, number);
    }

    // The interpretation of a text of the default domain in other programs' exports.
    struct Reading {
        bool known = false;
        schema::StringId name = schema::StringId::empty, detail = schema::StringId::empty;
        std::optional<std::uint32_t> domain;
    };
    const Reading& reading_of(schema::StringId text) {
        const auto index = static_cast<std::size_t>(text);
        if (index >= readings_.size()) readings_.resize(std::max(index + 1, 2 * readings_.size()));
        Reading& reading = readings_[index];
        if (reading.known) return reading;
        // The text may move when others are interned.
        const std::string whole(source_.sink.text(text));
        const NvtxName name = read_nvtx_name(whole);
        reading.known = true;
        reading.name = name.name.size() == whole.size() ? text : source_.sink.intern(name.name);
        if (!name.detail.empty()) reading.detail = source_.sink.intern(name.detail);
        if (name.is_operator) reading.domain = named_domain(kOperatorDomain);
        if (name.is_module) reading.domain = named_domain(kModuleDomain);
        return reading;
    }
    std::uint32_t named_domain(std::string_view name) {
        const schema::StringId id = source_.sink.intern(name);
        const std::uint32_t slot = rows_.domains.of(-1, static_cast<std::int64_t>(id));
        rows_.name_domain(slot, id);
        return slot;
    }

    LoadSource& source_;
    PendingRows& rows_;
    std::vector<Reading> readings_;  // by the text's id
};

void load_links(LoadSource& source) {
    source.scan_fast("SHARD_LINKS", {"kind", "fromTid", "fromTime", "toTid", "toTime"},
                     [&](const FastRow& r) {
                         // Skips kinds that this version does not know.
                         if (r.integer(0) < 0 || r.integer(0) >= schema::kLinkKinds) return;
                         source.sink.add(schema::LinkRow{.kind = static_cast<schema::LinkKind>(r.integer(0)),
                                                         .from_tid = r.integer(1),
                                                         .from_time = r.integer(2),
                                                         .to_tid = r.integer(3),
                                                         .to_time = r.integer(4)});
                     });
}

}  // namespace

void load_device_events(LoadSource& source) {
    const Details details(source);
    load_in_parts(source, kDeviceTables[0],
                  [&](LoadSource& part) { DeviceLoader(part, details).load_kernels(); });
    load_in_parts(source, kDeviceTables[1],
                  [&](LoadSource& part) { DeviceLoader(part, details).load_copies(); });
    DeviceLoader(source, details).load_others();
    load_collectives(source);
}

void load_nccl_calls(LoadSource& source) {
    if (source.ours || !source.sink.pending().collectives.empty()) return;
    for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS",
                              "NVTX_PAYLOAD_SCHEMA_ENTRIES", "SHARD_RANKS", "SHARD_NCCL_OPERATIONS",
                              "SHARD_NCCL_COMMUNICATORS"}) {
        (void)source.has(table);  // refuses anything but a plain table
    }
    const NcclCollectives found = find_nccl_collectives(source.db);
    for (const schema::CollectiveRow& row : found.rows) source.sink.add(row);
    for (const schema::DiagnosticRow& note : found.notes) source.sink.add(note);
}

namespace {

void load_calls(LoadSource& source) {
    PendingRows& rows = source.sink.pending();
    NameFacts& names = source.sink.names();
    PendingCalls& c = rows.runtime;
    const auto room = static_cast<std::size_t>(source.rows_at_most("CUPTI_ACTIVITY_KIND_RUNTIME"));
    const auto reserve = [&](auto&... columns) { (columns.reserve(room), ...); };
    reserve(c.start, c.end, c.correlation, c.name, c.thread);
    source.scan_fast("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId", "nameId"},
                     [&](const FastRow& r) {
                         const std::int64_t start = r.integer(0), end = r.integer(1);
                         if (!rows.accept(start, end)) return;
                         rows.add_call(start, end, r.integer(2), r.integer(3),
                                       names.call(source.string(r.integer(4))));
                     });
}

}  // namespace

void load_host_events(LoadSource& source) {
    load_in_parts(source, "CUPTI_ACTIVITY_KIND_RUNTIME", load_calls);
    source.scan_fast("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                     {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "syncType"},
                     [&](const FastRow& r) {
                         schema::SynchronizationRow row{
                             .start = r.integer(0), .end = r.integer(1), .device = narrow(r.integer(2))};
                         row.stream = r.integer(3) == schema::kNotApplicable ? -1 : narrow(r.integer(3));
                         row.correlation = r.integer(4);
                         row.global_pid = r.integer(5);
                         row.sync_type = narrow(r.integer(6));
                         source.sink.add(row);
                     });
    load_in_parts(source, "NVTX_EVENTS", [](LoadSource& part) { RangeLoader(part).load(); });
    load_links(source);
}

}  // namespace shardscope::traces::store
