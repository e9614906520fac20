// See event_fields.h.
#include "viewer/timeline/event_fields.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/communication/collectives.h"
#include "traces/schema/json_text.h"
#include "traces/store/columns/names.h"
#include "viewer/draw/format.h"
#include "viewer/timeline/measure.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {
namespace {

using traces::store::Trace;

class Fields {
  public:
    explicit Fields(std::vector<Detail>& rows) : rows_(rows) {}
    void put(std::string label, std::string value) {
        if (value.empty() || has(label)) return;
        rows_.push_back({std::move(label), std::move(value)});
    }
    // Inserts a field after the one with that label, if there is one.
    void put_after(std::string_view before, std::string label, std::string value) {
        const auto at =
            std::find_if(rows_.begin(), rows_.end(), [&](const Detail& d) { return d.label == before; });
        if (at == rows_.end()) return put(std::move(label), std::move(value));
        if (!value.empty() && !has(label)) rows_.insert(at + 1, {std::move(label), std::move(value)});
    }

  private:
    bool has(std::string_view label) const {
        return std::any_of(rows_.begin(), rows_.end(), [&](const Detail& d) { return d.label == label; });
    }
    std::vector<Detail>& rows_;
};

std::string duration_text(std::int64_t ns) {
    return draw::format_duration(static_cast<double>(ns));
}

std::string name_of(const Trace& trace, traces::schema::StringId id) {
    return std::string(trace.strings[id]);
}

void put_unit(const Trace& trace, const FieldSources& sources, std::int32_t range, std::int64_t time,
              Fields& fields) {
    if (sources.units == nullptr) return;
    const traces::analysis::UnitRanges::Place place = sources.units->at(trace, range, time);
    if (place.unit.at() < sources.units->names.size())
        fields.put("unit", sources.units->names[place.unit.at()]);
    if (place.phase != traces::schema::Phase::none)
        fields.put("phase", std::string(traces::schema::name(place.phase)));
}

void put_collective(const Trace& trace, std::size_t event, const CollectiveIndex& index, Fields& fields) {
    const traces::analysis::CollectiveMatch* match = index.match_of(static_cast<std::int64_t>(event));
    if (match == nullptr) return;
    const traces::store::DeviceEvents& d = trace.device;
    const std::int64_t ns = d.end[event] - d.start[event];
    const auto parts = index.communications.of(*match);
    if (match->transfer_ns >= 0) {
        fields.put("wait for other ranks", duration_text(std::max<std::int64_t>(0, ns - match->transfer_ns)));
        fields.put("transfer", duration_text(match->transfer_ns));
    }
    const std::int32_t row = d.collective[event];
    if (row >= 0 && static_cast<std::size_t>(row) < trace.collectives.size()) {
        const auto c = static_cast<std::size_t>(row);
        const double bytes = static_cast<double>(trace.collectives.bytes[c]);
        const int ranks = trace.collectives.group_size[c] > 0 ? trace.collectives.group_size[c]
                                                              : static_cast<int>(parts.size());
        const double factor = traces::analysis::bus_factor(trace.collectives.operation[c], ranks);
        fields.put("bus bandwidth", bandwidth(bytes, ns, factor));
        fields.put("bus bandwidth of the transfer", bandwidth(bytes, match->transfer_ns, factor));
    }
    std::int64_t latest = INT64_MIN;
    int rank = -1;
    for (const traces::analysis::Communication& part : parts) {
        if (part.event < 0 || d.start[static_cast<std::size_t>(part.event)] <= latest) continue;
        latest = d.start[static_cast<std::size_t>(part.event)];
        rank = part.rank;
    }
    if (rank >= 0 && parts.size() > 1) {
        fields.put("last to arrive",
                   fmt::format("rank {}", trace.ranks[static_cast<std::size_t>(rank)].number));
    }
    if (match->unmatched) fields.put("other ranks' parts", "missing in this trace");
    if (match->bytes_differ) fields.put("bytes between ranks", "differ");
}

// --- waits ------------------------------------------------------------------------------------------------

using traces::analysis::Wait;

// "all_gather blocks.3 1.2 ms, start of gemm 4.1 us": by name, in order of time, without what takes less than
// a twentieth.
std::string waits_text(const std::vector<Wait>& waits, const std::function<std::string(const Wait&)>& name) {
    constexpr std::size_t kMost = 4;
    std::vector<std::pair<std::string, std::int64_t>> sums;
    std::int64_t all = 0;
    for (const Wait& wait : waits) {
        std::string text = name(wait);
        const auto same =
            std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first == text; });
        if (same == sums.end()) {
            sums.emplace_back(std::move(text), wait.length());
        } else {
            same->second += wait.length();
        }
        all += wait.length();
    }
    sums.erase(
        std::remove_if(sums.begin(), sums.end(), [all](const auto& sum) { return sum.second * 20 < all; }),
        sums.end());
    std::string text;
    for (std::size_t k = 0; k < std::min(sums.size(), kMost); ++k)
        text += fmt::format("{}{} {}", k > 0 ? ", " : "", sums[k].first, duration_text(sums[k].second));
    return sums.size() > kMost ? fmt::format("{} and {} more", text, sums.size() - kMost) : text;
}

// "late rank 1.1 ms (rank 3), queued 0.2 ms (behind reduce_scatter blocks.4)", the longest first.
std::string causes_text(const traces::analysis::Exposure& exposure,
                        const traces::analysis::WaitNames& names) {
    std::vector<std::pair<std::int64_t, traces::analysis::ExposureCause>> causes;
    for (std::size_t c = 0; c < exposure.causes.size(); ++c) {
        if (exposure.causes[c] * 20 >= exposure.ns)
            causes.emplace_back(exposure.causes[c], static_cast<traces::analysis::ExposureCause>(c));
    }
    std::stable_sort(causes.begin(), causes.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (const auto& [ns, cause] : causes) {
        if (!text.empty()) text += ", ";
        text += traces::analysis::title(cause);
        if (causes.size() > 1) text += " " + duration_text(ns);
        if (const std::string about = names.of_cause(exposure, cause); !about.empty())
            text += fmt::format(" ({})", about);
    }
    return text;
}

void put_waits(const Trace& trace, std::size_t i, const traces::analysis::TraceWaits& waits, Fields& fields) {
    const traces::analysis::WaitNames& names = waits.names;
    const auto named = [&](const Wait& wait) { return names.wait(wait); };
    const std::int64_t ns = trace.device.end[i] - trace.device.start[i];
    std::string last = "duration";
    const auto put = [&](const char* label, std::string value) {
        if (value.empty()) return;
        fields.put_after(last, label, std::move(value));
        last = label;
    };
    if (trace.device.kind[i] != traces::store::DeviceKind::kernel) {
        const traces::analysis::Exposure exposure = waits.finder.exposure(i);
        put("exposed",
            exposure.ns == 0
                ? std::string("nothing: compute hides it")
                : fmt::format("{} ({})", duration_text(exposure.ns),
                              draw::format_percent(100 * static_cast<double>(exposure.ns) /
                                                   static_cast<double>(std::max<std::int64_t>(1, ns)))));
        if (exposure.ns > 0) put("cause of exposure", causes_text(exposure, names));
    }
    put("waited for", waits_text(waits.finder.gap_before(i), named));
    put("waiting for it",
        waits_text(waits.finder.waiting_for(i), [&](const Wait& w) { return names.waiter(w); }));
}

void put_device(const Trace& trace, std::size_t i, const FieldSources& sources, Fields& fields) {
    const traces::store::DeviceEvents& d = trace.device;
    fields.put_after("start", "end", instant_text(d.end[i]));
    if (sources.waits != nullptr) put_waits(trace, i, *sources.waits, fields);
    if (d.copy_kind[i] != 0) fields.put("copy", std::string(traces::store::memcpy_name(d.copy_kind[i])));
    const std::int32_t launch = d.launch[i];
    if (launch >= 0) {
        const auto call = static_cast<std::size_t>(launch);
        fields.put("launched by", name_of(trace, trace.runtime.name[call]));
        fields.put("launched at", instant_text(trace.runtime.start[call]));
    }
    if (d.range[i] >= 0)
        fields.put("inside", name_of(trace, trace.ranges.name[static_cast<std::size_t>(d.range[i])]));
    if (sources.collectives != nullptr) put_collective(trace, i, *sources.collectives, fields);
    if (!d.blocks_per_sm.empty() && d.blocks_per_sm[i] >= 0)
        fields.put("blocks / SM", draw::format_decimal(static_cast<double>(d.blocks_per_sm[i]), 2));
    if (!d.occupancy.empty() && d.occupancy[i] >= 0)
        fields.put("occupancy", draw::format_percent(static_cast<double>(d.occupancy[i])));
    const std::int64_t launched =
        launch >= 0 ? trace.runtime.start[static_cast<std::size_t>(launch)] : d.start[i];
    if (d.range[i] >= 0) put_unit(trace, sources, d.range[i], launched, fields);
    if (d.correlation[i] != 0) fields.put("correlation", fmt::format("{}", d.correlation[i]));
}

// {"Input Dims":[[2,3]]}: a field for each key.
void put_source_fields(std::string_view detail, Fields& fields) {
    if (detail.empty()) return;
    auto members = traces::schema::json_members(detail);
    if (!members) return fields.put("detail", std::string(detail));
    for (auto& [key, value] : *members) fields.put(key, std::move(value));
}

void put_range(const Trace& trace, std::size_t i, const FieldSources& sources, const Links& links,
               Fields& fields) {
    const traces::store::HostRanges& r = trace.ranges;
    fields.put_after("start", "end", instant_text(r.end[i]));
    put_unit(trace, sources, static_cast<std::int32_t>(i), r.start[i], fields);
    fields.put("depth", fmt::format("{}", r.depth[i]));
    if (links.forward.kind == model::EventKind::range &&
        links.forward.index != static_cast<std::int64_t>(i)) {
        const auto f = static_cast<std::size_t>(links.forward.index);
        fields.put("backward of",
                   fmt::format("{} at {}", name_of(trace, r.name[f]), instant_text(r.start[f])));
    }
    if (!r.detail.empty()) put_source_fields(trace.strings[r.detail[i]], fields);
}

// Of a call in which the host waits for the device.
void put_host_wait(std::size_t call, const FieldSources& sources, Fields& fields) {
    if (sources.waits == nullptr) return;
    const Wait wait = sources.waits->finder.host_wait(call);
    if (wait.on >= 0)
        fields.put_after("duration", "waits for",
                         sources.waits->names.event(static_cast<std::size_t>(wait.on)));
}

void put_call(const Trace& trace, std::size_t i, const FieldSources& sources, const Links& links,
              Fields& fields) {
    const traces::store::RuntimeCalls& c = trace.runtime;
    fields.put_after("start", "end", instant_text(c.end[i]));
    if (!links.launched.empty()) {
        const auto first = static_cast<std::size_t>(links.launched.front().index);
        std::string what = name_of(trace, trace.device.name[first]);
        if (links.launched.size() > 1)
            what += fmt::format(" and {} more",
                                draw::format_count(static_cast<std::int64_t>(links.launched.size()) - 1));
        fields.put("launched", what);
        fields.put("launch delay",
                   duration_text(std::max<std::int64_t>(0, trace.device.start[first] - c.end[i])));
    }
    put_host_wait(i, sources, fields);
    if (c.range[i] >= 0) put_unit(trace, sources, c.range[i], c.start[i], fields);
}

}  // namespace

EventDetails all_fields(const Trace& trace, model::SelectedEvent event, const FieldSources& sources) {
    EventDetails details = describe(trace, event);
    if (event.index < 0) return details;
    Fields fields(details.rows);
    const auto i = static_cast<std::size_t>(event.index);
    if (event.kind == model::EventKind::device) {
        put_device(trace, i, sources, fields);
    } else if (event.kind == model::EventKind::range || event.kind == model::EventKind::runtime) {
        const Links links = find_links(trace, event, nullptr);
        if (event.kind == model::EventKind::range) put_range(trace, i, sources, links, fields);
        if (event.kind == model::EventKind::runtime) put_call(trace, i, sources, links, fields);
    } else if (event.kind == model::EventKind::wait && trace.synchronizations.call[i] >= 0) {
        put_host_wait(static_cast<std::size_t>(trace.synchronizations.call[i]), sources, fields);
    }
    return details;
}

std::string fields_text(const EventDetails& details) {
    std::string text = details.title + "\n";
    for (const Detail& detail : details.rows) text += fmt::format("{}: {}\n", detail.label, detail.value);
    return text;
}

}  // namespace shardscope::viewer::timeline
