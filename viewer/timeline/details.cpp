// See details.h.
#include "viewer/timeline/details.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "traces/store/columns/event_columns.h"
#include "traces/store/columns/names.h"
#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/model/rank_steps.h"
#include "viewer/timeline/measure.h"

namespace shardscope::viewer::timeline {
namespace {

class DetailList {
  public:
    explicit DetailList(std::vector<Detail>& rows) : rows_(rows) {}
    void put(std::string label, std::string value) {
        if (!value.empty()) rows_.push_back({std::move(label), std::move(value)});
    }

  private:
    std::vector<Detail>& rows_;
};

// 52,428,800 bytes: shown as a size for reading and as a count for comparing.
std::string both_sizes(std::int64_t bytes) {
    if (bytes < 1024) return fmt::format("{} B", draw::format_count(bytes));
    return fmt::format("{} ({} B)", draw::format_size(bytes), draw::format_count(bytes));
}

std::string rank_text(const traces::store::Trace& trace, traces::store::RankIndex rank) {
    if (rank.at() >= trace.ranks.size()) return {};
    const traces::store::Rank& r = trace.ranks[rank.at()];
    return r.device_name.empty() ? fmt::format("{}", r.number)
                                 : fmt::format("{} ({})", r.number, r.device_name);
}

std::string thread_text(const traces::store::Trace& trace, std::size_t index) {
    if (index >= trace.threads.size()) return {};
    const traces::store::HostThread& thread = trace.threads[index];
    const auto tid = thread.global_tid & 0xFFFFFF;
    const std::string number = fmt::format("{}", tid);
    if (thread.name.find(number) != std::string::npos) return thread.name;  // as in Kineto's names
    return thread.name.empty() ? number : fmt::format("{} ({})", thread.name, number);
}

const traces::schema::ModuleRow* find_module(const traces::store::Trace& trace, int id) {
    const auto it = std::find_if(trace.modules.begin(), trace.modules.end(),
                                 [id](const traces::schema::ModuleRow& m) { return m.id == id; });
    return id >= 0 && it != trace.modules.end() ? &*it : nullptr;
}

std::string module_text(const traces::store::Trace& trace, int id) {
    const traces::schema::ModuleRow* module = find_module(trace, id);
    if (module == nullptr) return {};
    return module->path.empty() ? module->name : fmt::format("{} ({})", module->name, module->path);
}

std::string unit_text(const traces::store::Trace& trace, int id) {
    const traces::store::UnitIndex unit = trace.unit_of_id(id);
    return unit.known() ? trace.units[unit.at()].name : std::string();
}

std::string step_text(const traces::store::Trace& trace, traces::store::RankIndex rank, std::int64_t time) {
    const traces::store::Step* step = model::step_at(trace, rank, time);
    return step != nullptr ? fmt::format("{}", step->number) : std::string();
}

void describe_collective(const traces::store::Trace& trace, std::size_t i, std::int64_t ns,
                         DetailList& rows) {
    const traces::store::Collectives& c = trace.collectives;
    rows.put("operation", std::string(traces::schema::name(c.operation[i])));
    if (c.bytes[i] > 0) rows.put("bytes", both_sizes(c.bytes[i]));  // 0: unknown, or a barrier
    if (c.padding[i] > 0) rows.put("of that padding", both_sizes(c.padding[i]));
    rows.put("bytes / duration", bandwidth(static_cast<double>(c.bytes[i]), ns));
    if (c.sequence[i] >= 0) rows.put("sequence number", fmt::format("{}", c.sequence[i]));
    rows.put("group", c.group_size[i] > 0
                          ? fmt::format("{} ({})", c.group[i],
                                        traces::store::counted(c.group_size[i], "rank", "ranks"))
                          : fmt::format("{}", c.group[i]));
    rows.put("unit", unit_text(trace, c.unit[i]));
    if (c.phase[i] != traces::schema::Phase::none)
        rows.put("phase", std::string(traces::schema::name(c.phase[i])));
}

std::string_view kind_text(const traces::store::Trace& trace, model::SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    switch (event.kind) {
        case model::EventKind::device:
            return traces::store::kDeviceKindNames[static_cast<std::size_t>(trace.device.kind[i])];
        case model::EventKind::runtime:
            return "Runtime call";
        case model::EventKind::wait:
            return "Synchronization";
        case model::EventKind::mark:
            return "Mark";
        case model::EventKind::range:
        case model::EventKind::none:
            break;
    }
    switch (trace.ranges.kind[i]) {
        case traces::store::RangeKind::module:
            return "Module forward";
        case traces::store::RangeKind::backward:
            return "Module backward";
        case traces::store::RangeKind::step:
            return "Step";
        case traces::store::RangeKind::data_loader:
            return "DataLoader";
        case traces::store::RangeKind::communication:
            return "Communication (host)";
        case traces::store::RangeKind::function:
            return "Function";
        case traces::store::RangeKind::operation:
            return "operator";
        case traces::store::RangeKind::annotation:
            break;
    }
    return "Range";
}

std::string stream_text(const traces::store::Trace& trace, std::int64_t index) {
    if (index < 0 || static_cast<std::size_t>(index) >= trace.streams.size()) return {};
    const traces::store::DeviceStream& stream = trace.streams[static_cast<std::size_t>(index)];
    return stream.name.empty() ? fmt::format("{}", stream.id)
                               : fmt::format("{} ({})", stream.name, stream.id);
}

// The name of a row of the columns; empty for -1.
template <class Columns>
std::string name_in(const traces::store::Trace& trace, const Columns& columns, std::int32_t row) {
    return row < 0 ? std::string() : std::string(trace.strings[columns.name[static_cast<std::size_t>(row)]]);
}

// The innermost module around a range.
int module_around(const traces::store::Trace& trace, std::int32_t range) {
    for (; range >= 0; range = trace.ranges.parent[static_cast<std::size_t>(range)]) {
        const std::int32_t module = trace.ranges.module[static_cast<std::size_t>(range)];
        if (module >= 0) return module;
    }
    return -1;
}

}  // namespace

// The fields of all kinds in one order; those that a kind does not have are omitted.
// Bytes per nanosecond are 10^9 bytes a second.
std::string bandwidth(double bytes, std::int64_t ns, double factor) {
    if (bytes <= 0 || ns <= 0) return {};
    return draw::format_decimal(bytes / static_cast<double>(ns) * factor, 2) + " GB/s";
}

EventDetails describe(const traces::store::Trace& trace, model::SelectedEvent event) {
    EventDetails out;
    if (event.kind == model::EventKind::none) return out;
    const auto i = static_cast<std::size_t>(event.index);
    const traces::store::DeviceEvents& d = trace.device;
    const bool device = event.kind == model::EventKind::device, range = event.kind == model::EventKind::range,
               call = event.kind == model::EventKind::runtime, wait = event.kind == model::EventKind::wait,
               mark = event.kind == model::EventKind::mark;
    const traces::store::EventTime time = time_of(trace, event);
    const std::int64_t ns = time.end - time.start;
    const traces::store::RankIndex rank = rank_of(trace, event);
    const std::int32_t launch = device ? d.launch[i] : -1;
    out.title = wait ? traces::store::wait_name(trace.synchronizations.type[i])
                     : trace.strings[name_id_of(trace, event)];
    DetailList rows(out.rows);
    rows.put("kind", std::string(kind_text(trace, event)));
    rows.put(mark ? "time" : "start", instant_text(time.start));
    if (!mark) rows.put("duration", draw::format_duration(static_cast<double>(ns)));
    if (range) rows.put("thread", thread_text(trace, trace.ranges.thread[i]));
    if (call) rows.put("thread", thread_text(trace, trace.runtime.thread[i]));
    if (mark) rows.put("thread", thread_text(trace, trace.marks.thread[i]));
    rows.put("rank", rank_text(trace, rank));
    if (device) rows.put("stream", stream_text(trace, d.stream[i]));
    if (wait) rows.put("stream", stream_text(trace, trace.synchronizations.stream[i]));
    if (device && d.collective[i] >= 0 &&
        static_cast<std::size_t>(d.collective[i]) < trace.collectives.size()) {
        describe_collective(trace, static_cast<std::size_t>(d.collective[i]), ns, rows);
    } else if (device && d.bytes[i] > 0) {
        rows.put("bytes", both_sizes(d.bytes[i]));
        rows.put("bytes / duration", bandwidth(static_cast<double>(d.bytes[i]), ns));
    }
    if (device || call) rows.put("module", module_text(trace, module_of(trace, event)));
    if (range) rows.put("module", module_text(trace, trace.ranges.module[i]));
    if (range) rows.put("inside", name_in(trace, trace.ranges, trace.ranges.parent[i]));
    if (call) rows.put("inside", name_in(trace, trace.ranges, trace.runtime.range[i]));
    if (wait) rows.put("call", name_in(trace, trace.runtime, trace.synchronizations.call[i]));
    rows.put("step",
             step_text(trace, rank,
                       launch >= 0 ? trace.runtime.start[static_cast<std::size_t>(launch)] : time.start));
    if (launch >= 0) {
        rows.put("launched by", name_in(trace, trace.runtime, launch));
        const std::int64_t delay = d.start[i] - trace.runtime.end[static_cast<std::size_t>(launch)];
        rows.put("launch to start",
                 draw::format_duration(static_cast<double>(std::max<std::int64_t>(0, delay))));
    }
    if (device && d.correlation[i] != 0) rows.put("correlation", fmt::format("{}", d.correlation[i]));
    if (call && trace.runtime.correlation[i] != 0)
        rows.put("correlation", fmt::format("{}", trace.runtime.correlation[i]));
    return out;
}

std::string bar_label(const traces::store::Trace& trace, model::SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    switch (event.kind) {
        case model::EventKind::device: {
            const std::int32_t collective = trace.device.collective[i];
            if (collective < 0 || static_cast<std::size_t>(collective) >= trace.collectives.size()) {
                return std::string(trace.strings[trace.device.name[i]]);
            }
            const auto c = static_cast<std::size_t>(collective);
            const std::string unit = unit_text(trace, trace.collectives.unit[c]);
            const std::string_view operation = traces::schema::name(trace.collectives.operation[c]);
            return unit.empty() ? std::string(operation) : fmt::format("{} {}", operation, unit);
        }
        case model::EventKind::range: {
            constexpr std::string_view kModule = "nn.Module: ";
            std::string_view text = trace.strings[trace.ranges.name[i]];
            if (text.starts_with(kModule)) text.remove_prefix(kModule.size());
            return std::string(text);
        }
        case model::EventKind::wait:
            return std::string(traces::store::wait_name(trace.synchronizations.type[i]));
        case model::EventKind::runtime:
        case model::EventKind::mark:
        case model::EventKind::none:
            break;
    }
    return std::string(trace.strings[name_id_of(trace, event)]);
}

int module_of(const traces::store::Trace& trace, model::SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    switch (event.kind) {
        case model::EventKind::device: {
            const std::int32_t launch = trace.device.launch[i];
            return launch < 0 ? -1
                              : module_around(trace, trace.runtime.range[static_cast<std::size_t>(launch)]);
        }
        case model::EventKind::range:
            return module_around(trace, static_cast<std::int32_t>(i));
        case model::EventKind::runtime:
            return module_around(trace, trace.runtime.range[i]);
        case model::EventKind::wait: {
            const std::int32_t call = trace.synchronizations.call[i];
            return call < 0 ? -1 : module_around(trace, trace.runtime.range[static_cast<std::size_t>(call)]);
        }
        case model::EventKind::mark:
        case model::EventKind::none:
            break;
    }
    return -1;
}

}  // namespace shardscope::viewer::timeline
