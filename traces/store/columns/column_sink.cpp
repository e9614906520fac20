// Collects rows; the work of sorting and linking them is in build_columns.cpp.
#include "traces/store/columns/column_sink.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <tuple>
#include <utility>
#include <variant>

#include "traces/store/columns/append_rows.h"
#include "traces/store/columns/device_streams.h"
#include "traces/store/columns/name_facts.h"
#include "traces/store/columns/pending_rows.h"

namespace shardscope::traces::store {

namespace {

bool is_size(std::int64_t bytes) {
    return bytes >= 0 && bytes <= PendingRows::kLargest;
}

// Recently interned texts. Traces repeat the same few hundred, and comparing a text with the entry here costs
// less than hashing all of it.
class RecentTexts {
  public:
    schema::StringId id_of(std::string_view text, StringTable& strings) {
        if (text.size() < sizeof(std::uint64_t)) return strings.intern(text);
        std::uint64_t head = 0, tail = 0;
        std::memcpy(&head, text.data(), sizeof(head));
        std::memcpy(&tail, text.data() + text.size() - sizeof(tail), sizeof(tail));
        const std::uint64_t mixed = ((head ^ text.size()) * 0x9E3779B97F4A7C15 ^ tail) * 0x9E3779B97F4A7C15;
        Recent& recent = recent_[mixed >> (64 - kBits)];
        if (recent.text != text) {
            recent.id = strings.intern(text);
            recent.text = strings[recent.id];
        }
        return recent.id;
    }

  private:
    static constexpr unsigned kBits = 9;
    struct Recent {
        std::string_view text;  // owned by the table
        schema::StringId id = schema::StringId::empty;
    };
    std::array<Recent, std::size_t{1} << kBits> recent_;
};

}  // namespace

struct ColumnSink::Impl {
    explicit Impl(std::unique_ptr<Trace> begun = std::make_unique<Trace>()) : trace(std::move(begun)) {}

    std::unique_ptr<Trace> trace;
    RecentTexts recent;
    PendingRows rows;
    NameFacts names{trace->strings};

    bool accept_bytes(std::int64_t bytes, std::int64_t time) {
        return rows.accept_bytes(bytes) && rows.accept(time, time);
    }
};

ColumnSink::ColumnSink() : impl_(std::make_unique<Impl>()) {}
ColumnSink::ColumnSink(std::unique_ptr<Trace> begun) : impl_(std::make_unique<Impl>(std::move(begun))) {}
ColumnSink::~ColumnSink() = default;

schema::StringId ColumnSink::intern(std::string_view text) {
    return impl_->recent.id_of(text, impl_->trace->strings);
}
std::string_view ColumnSink::text(schema::StringId id) const {
    return impl_->trace->strings[id];
}

// How a trace keeps each kind: as columns, as rows, or not at all.
struct ColumnSink::Keeping {
    // Times of a row that is kept as it is do not extend the trace, unless its kind has a function below.
    template <typename Row>
    static void keep([[maybe_unused]] Impl& impl, [[maybe_unused]] const Row& row) {
        if constexpr (KeptRow<Row>) {
            if (impl.rows.has_possible_times(row)) impl.trace->template kept<Row>().push_back(row);
        }
    }

    static void keep(Impl& impl, const schema::KernelRow& row) {
        PendingRows& rows = impl.rows;
        if (!rows.accept(row.start, row.end)) return;
        const auto [name, kind] = impl.names.kernel(row.short_name, row.demangled_name);
        rows.add_device(row.start, row.end, rows.device.lane_of(row.global_pid, row.device, row.stream),
                        row.correlation, name, kind);
        rows.detail_device(row.external_id, row.blocks_per_sm, row.occupancy);
    }

    static void keep(Impl& impl, const schema::MemcpyRow& row) {
        PendingRows& rows = impl.rows;
        if (!rows.accept_moved(row.bytes) || !rows.accept(row.start, row.end)) return;
        rows.add_device(row.start, row.end, rows.device.lane_of(row.global_pid, row.device, row.stream),
                        row.correlation, impl.names.memcpy(row.copy_kind), DeviceKind::memcpy, row.bytes,
                        NameFacts::known_copy_kind(row.copy_kind));
        rows.detail_device(row.external_id, -1, -1);
    }

    static void keep(Impl& impl, const schema::MemsetRow& row) {
        PendingRows& rows = impl.rows;
        if (!rows.accept_moved(row.bytes) || !rows.accept(row.start, row.end)) return;
        rows.add_device(row.start, row.end, rows.device.lane_of(row.global_pid, row.device, row.stream),
                        row.correlation, impl.names.memset(), DeviceKind::memset, row.bytes);
        rows.detail_device(row.external_id, -1, -1);
    }

    static void keep(Impl& impl, const schema::RuntimeRow& row) {
        if (!impl.rows.accept(row.start, row.end)) return;
        impl.rows.add_call(row.start, row.end, row.global_tid, row.correlation, impl.names.call(row.name));
    }

    static void keep(Impl& impl, const schema::SynchronizationRow& row) {
        if (impl.rows.accept(row.start, row.end)) impl.rows.synchronizations.push_back(row);
    }

    static void keep(Impl& impl, const schema::RangeRow& row) {
        PendingRows& rows = impl.rows;
        if (!rows.accept(row.start, row.end.value_or(row.start))) return;
        if (row.end) {
            const std::uint32_t domain = rows.domains.of(-1, static_cast<std::int64_t>(row.domain));
            rows.name_domain(domain, row.domain);
            rows.add_range(row.start, *row.end, row.global_tid, row.text, domain, row.module, row.external_id,
                           row.detail);
        } else if (row.event_type == schema::kNvtxMark) {
            rows.add_mark(row.start, row.global_tid, row.text);
        }
    }

    static void keep(Impl& impl, const schema::CollectiveRow& row) {
        if (impl.rows.accept(row)) impl.rows.collectives.push_back(row);
    }

    static void keep(Impl& impl, const schema::MemoryRow& row) {
        if (!impl.accept_bytes(row.bytes, row.time)) return;
        PendingMemory& m = impl.rows.memory;
        const std::size_t at = m.size();
        m.time.push_back(row.time);
        m.bytes.push_back(row.bytes);
        m.address.push_back(row.address);
        m.unit.push_back(row.unit);
        m.module.push_back(row.module);
        m.name.push_back(row.name);
        m.rank_slot.push_back(impl.rows.memory_ranks.of(row.rank));
        m.category.push_back(row.category);
        m.space.push_back(row.space);
        m.phase.push_back(row.phase);
        put_rare(m.global_tid, at, row.global_tid, std::int64_t{0});
        put_rare(m.total, at, PendingRows::known_total(row.total), std::int64_t{-1});
        put_rare(m.reserved, at, PendingRows::known_total(row.reserved), std::int64_t{-1});
        put_rare(m.annotation, at, row.annotation, schema::StringId::empty);
        put_rare(m.stack, at, row.stack, schema::StringId::empty);
        put_rare(m.device, at, device_of_stream(row.stream), std::uint16_t{0});
        put_rare(m.stream, at, row.stream, -1);
    }

    static void keep(Impl& impl, const schema::CounterRow& row) {
        if (impl.rows.accept(row.time, row.time)) impl.rows.counters.push_back(row);
    }

    static void keep(Impl& impl, const schema::SampleRow& row) {
        if (!impl.rows.accept_moved(row.weight) || !impl.rows.accept(row.time, row.time)) return;
        impl.rows.threads.of(row.global_tid);
        impl.rows.samples.push_back(row);
    }

    static void keep(Impl& impl, const schema::StepRow& row) {
        if (impl.rows.accept(row.start, row.end)) impl.rows.steps.push_back(row);
    }

    static void keep(Impl& impl, const schema::LinkRow& row) { impl.rows.links.push_back(row); }

    static void keep(Impl& impl, const schema::SegmentRow& row) {
        if (impl.accept_bytes(row.bytes, row.time)) impl.rows.segments.push_back(row);
    }

    static void keep(Impl& impl, const schema::FlightRow& row) {
        if (impl.rows.accept(row.created, row.completed.value_or(row.created)))
            impl.trace->flight.push_back(row);
    }

    static void keep(Impl& impl, const schema::ClockRow& row) {
        if (!impl.rows.accept(row.at_ns, row.at_ns)) return;
        constexpr std::int64_t kMost = PendingRows::kLatest;
        if (row.offset_ns < -kMost || row.offset_ns > kMost || row.uncertainty_ns < 0 ||
            row.uncertainty_ns > kMost) {
            ++impl.rows.refused;
        } else {
            impl.trace->clocks.push_back(row);
        }
    }

    static void keep(Impl& impl, const schema::StopRow& row) {
        if (impl.rows.accept(row.at_ns, row.at_ns)) impl.trace->stops.push_back(row);
    }

    static void keep(Impl& impl, const schema::LossRow& row) { impl.rows.losses.push_back(row); }
    static void keep(Impl& impl, const schema::RunInfoRow& row) {
        impl.trace->config.emplace_back(row.key, row.value);
    }
    static void keep(Impl& impl, const schema::RankRow& row) { impl.rows.ranks.push_back(row); }
    static void keep(Impl& impl, const schema::ThreadRow& row) { impl.rows.thread_rows.push_back(row); }
    static void keep(Impl& impl, const schema::StreamRow& row) { impl.rows.streams.push_back(row); }
    static void keep(Impl& impl, const schema::ModuleRow& row) { impl.trace->modules.push_back(row); }
    static void keep(Impl& impl, const schema::UnitRow& row) { impl.trace->units.push_back(row); }
    static void keep(Impl& impl, const schema::PredictionRow& row) {
        if (!is_size(row.peak_bytes) ||
            !std::all_of(std::begin(row.at_peak), std::end(row.at_peak), is_size)) {
            ++impl.rows.refused;
        } else {
            impl.trace->predictions.push_back(row);
        }
    }
    static void keep(Impl& impl, const schema::PredictionPartRow& row) {
        if (!is_size(row.bytes)) {
            ++impl.rows.refused;
        } else {
            impl.trace->prediction_parts.push_back(row);
        }
    }
    static void keep(Impl& impl, const schema::DiagnosticRow& row) { impl.trace->diagnostics.push_back(row); }
};

template <typename Row>
void ColumnSink::take(const Row& row) {
    Keeping::keep(*impl_, row);
}

namespace {

template <typename... Rows>
auto column_takes(const std::variant<Rows...>*) {
    return std::tuple(static_cast<void (ColumnSink::*)(const Rows&)>(&ColumnSink::take<Rows>)...);
}
// Instantiates take() for every kind: EachRow::add(), which is inlined elsewhere, needs them.
[[gnu::used]] const auto kColumnTakes = column_takes(static_cast<const schema::AnyRow*>(nullptr));

}  // namespace

void ColumnSink::set_path(std::string path) {
    impl_->trace->path = std::move(path);
}
void ColumnSink::set_schema_version(int version) {
    impl_->trace->schema_version = version;
}
void ColumnSink::set_start_utc_ns(std::int64_t ns) {
    impl_->trace->start_utc_ns = ns;
}
void ColumnSink::set_start_system_ns(std::int64_t ns) {
    impl_->trace->start_system_ns = ns;
}
void ColumnSink::set_ended(bool ended) {
    impl_->trace->ended = ended;
}
void ColumnSink::set_dropped(std::int64_t events) {
    impl_->trace->dropped = events;
}

PendingRows& ColumnSink::pending() {
    return impl_->rows;
}
NameFacts& ColumnSink::names() {
    return impl_->names;
}

void ColumnSink::begin_with_strings_of(const ColumnSink& whole) {
    const StringTable& strings = whole.impl_->trace->strings;
    for (std::size_t s = 0; s < strings.size(); ++s)
        impl_->trace->strings.intern(strings[schema::StringId(s)]);
}

std::size_t ColumnSink::strings() const {
    return impl_->trace->strings.size();
}

bool ColumnSink::append(ColumnSink& part, std::size_t common) {
    const auto from = std::exchange(part.impl_, std::make_unique<Impl>());
    return append_rows(std::move(from->rows), {from->trace->strings, common}, impl_->rows,
                       impl_->trace->strings);
}

std::unique_ptr<Trace> ColumnSink::take() {
    auto done = std::exchange(impl_, std::make_unique<Impl>());
    // Metrics are noted beside the work, and extend the trace only if there is none.
    if (done->rows.first > done->rows.last) {
        for (const schema::MetricRow& row : done->trace->metrics) done->rows.accept(row.time, row.time);
    }
    if (done->rows.first <= done->rows.last) {
        done->trace->first_ns = done->rows.first;
        done->trace->last_ns = done->rows.last;
    }
    done->trace->invalid_events = done->rows.refused;
    build_columns(std::move(done->rows), *done->trace);
    return std::move(done->trace);
}

std::unique_ptr<Trace> ColumnSink::take_begun() {
    auto done = std::exchange(impl_, std::make_unique<Impl>());
    put_kept_in_order(*done->trace);
    return std::move(done->trace);
}

}  // namespace shardscope::traces::store
