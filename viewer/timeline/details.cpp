// See details.h.
#include "viewer/timeline/details.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/model/rank_steps.h"

namespace shardscope::viewer {
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
    if (bytes < 1024) return fmt::format("{} B", format_count(bytes));
    return fmt::format("{} ({} B)", format_size(bytes), format_count(bytes));
}

// Times as on the ruler: milliseconds since the start of the capture, to the nanosecond.
std::string instant(std::int64_t ns) {
    return format_decimal(static_cast<double>(ns) / 1e6, 6) + " ms";
}

std::string rank_text(const traces::Trace& trace, int rank) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= trace.ranks.size()) return {};
    const traces::Rank& r = trace.ranks[static_cast<std::size_t>(rank)];
    return r.device_name.empty() ? fmt::format("{}", r.number)
                                 : fmt::format("{} ({})", r.number, r.device_name);
}

std::string thread_text(const traces::Trace& trace, std::size_t index) {
    if (index >= trace.threads.size()) return {};
    const traces::HostThread& thread = trace.threads[index];
    const auto tid = thread.global_tid & 0xFFFFFF;
    const std::string number = fmt::format("{}", tid);
    if (thread.name.find(number) != std::string::npos) return thread.name;  // as in Kineto's names
    return thread.name.empty() ? number : fmt::format("{} ({})", thread.name, number);
}

const traces::ModuleRow* find_module(const traces::Trace& trace, int id) {
    const auto it = std::find_if(trace.modules.begin(), trace.modules.end(),
                                 [id](const traces::ModuleRow& m) { return m.id == id; });
    return id >= 0 && it != trace.modules.end() ? &*it : nullptr;
}

const traces::UnitRow* find_unit(const traces::Trace& trace, int id) {
    const auto it = std::find_if(trace.units.begin(), trace.units.end(),
                                 [id](const traces::UnitRow& u) { return u.id == id; });
    return id >= 0 && it != trace.units.end() ? &*it : nullptr;
}

std::string module_text(const traces::Trace& trace, int id) {
    const traces::ModuleRow* module = find_module(trace, id);
    if (module == nullptr) return {};
    return module->path.empty() ? module->name : fmt::format("{} ({})", module->name, module->path);
}

std::string unit_text(const traces::Trace& trace, int id) {
    const traces::UnitRow* unit = find_unit(trace, id);
    return unit == nullptr ? std::string() : unit->name;
}

std::string step_text(const traces::Trace& trace, int rank, std::int64_t time) {
    const traces::Step* step = step_at(trace, rank, time);
    return step != nullptr ? fmt::format("{}", step->number) : std::string();
}

std::string copy_rate(std::int64_t bytes, std::int64_t ns) {
    if (bytes <= 0 || ns <= 0) return {};
    return format_decimal(static_cast<double>(bytes) / static_cast<double>(ns), 2) + " GB/s";
}

void describe_collective(const traces::Trace& trace, std::size_t i, std::int64_t ns, DetailList& rows) {
    const traces::Collectives& c = trace.collectives;
    rows.put("operation", std::string(traces::name(c.operation[i])));
    if (c.bytes[i] > 0) rows.put("bytes", both_sizes(c.bytes[i]));  // 0: unknown, or a barrier
    if (c.padding[i] > 0) rows.put("of that padding", both_sizes(c.padding[i]));
    rows.put("bytes / duration", copy_rate(c.bytes[i], ns));
    if (c.sequence[i] >= 0) rows.put("sequence number", fmt::format("{}", c.sequence[i]));
    rows.put("group", c.group_size[i] > 0 ? fmt::format("{} ({})", c.group[i],
                                                        traces::counted(c.group_size[i], "rank", "ranks"))
                                          : fmt::format("{}", c.group[i]));
    rows.put("unit", unit_text(trace, c.unit[i]));
    if (c.phase[i] != traces::Phase::none) rows.put("phase", std::string(traces::name(c.phase[i])));
}

void describe_device(const traces::Trace& trace, std::size_t i, EventDetails& out) {
    const traces::DeviceEvents& d = trace.device;
    const std::int64_t ns = d.end[i] - d.start[i];
    out.title = trace.strings[d.name[i]];
    DetailList rows(out.rows);
    rows.put("kind", std::string(traces::kDeviceKindNames[static_cast<std::size_t>(d.kind[i])]));
    rows.put("start", instant(d.start[i]));
    rows.put("duration", format_duration(static_cast<double>(ns)));
    rows.put("rank", rank_text(trace, d.rank[i]));
    if (d.stream[i] < trace.streams.size()) {
        const traces::DeviceStream& stream = trace.streams[d.stream[i]];
        rows.put("stream", stream.name.empty() ? fmt::format("{}", stream.id)
                                               : fmt::format("{} ({})", stream.name, stream.id));
    }
    const bool collective =
        d.collective[i] >= 0 && static_cast<std::size_t>(d.collective[i]) < trace.collectives.size();
    if (collective) {
        describe_collective(trace, static_cast<std::size_t>(d.collective[i]), ns, rows);
    } else if (d.bytes[i] > 0) {
        rows.put("bytes", both_sizes(d.bytes[i]));
        rows.put("bytes / duration", copy_rate(d.bytes[i], ns));
    }
    rows.put("module",
             module_text(trace, module_of(trace, {EventKind::device, static_cast<std::int64_t>(i)})));
    const std::int32_t launch = d.launch[i];
    rows.put("step",
             step_text(trace, d.rank[i],
                       launch >= 0 ? trace.runtime.start[static_cast<std::size_t>(launch)] : d.start[i]));
    if (launch >= 0) {
        const auto call = static_cast<std::size_t>(launch);
        rows.put("launched by", std::string(trace.strings[trace.runtime.name[call]]));
        const std::int64_t delay = std::max<std::int64_t>(0, d.start[i] - trace.runtime.end[call]);
        rows.put("launch to start", format_duration(static_cast<double>(delay)));
    }
    if (d.correlation[i] != 0) rows.put("correlation", fmt::format("{}", d.correlation[i]));
}

std::string_view range_kind_text(traces::RangeKind kind) {
    switch (kind) {
        case traces::RangeKind::module:
            return "Module forward";
        case traces::RangeKind::backward:
            return "Module backward";
        case traces::RangeKind::step:
            return "Step";
        case traces::RangeKind::data_loader:
            return "DataLoader";
        case traces::RangeKind::communication:
            return "Communication (host)";
        case traces::RangeKind::function:
            return "Function";
        case traces::RangeKind::operation:
            return "operator";
        case traces::RangeKind::annotation:
            break;
    }
    return "Range";
}

void describe_range(const traces::Trace& trace, std::size_t i, EventDetails& out) {
    const traces::HostRanges& r = trace.ranges;
    out.title = trace.strings[r.name[i]];
    DetailList rows(out.rows);
    rows.put("kind", std::string(range_kind_text(r.kind[i])));
    rows.put("start", instant(r.start[i]));
    rows.put("duration", format_duration(static_cast<double>(r.end[i] - r.start[i])));
    rows.put("thread", thread_text(trace, r.thread[i]));
    const int rank = r.thread[i] < trace.threads.size() ? trace.threads[r.thread[i]].rank : -1;
    rows.put("rank", rank_text(trace, rank));
    rows.put("module", module_text(trace, r.module[i]));
    if (r.parent[i] >= 0) {
        rows.put("inside", std::string(trace.strings[r.name[static_cast<std::size_t>(r.parent[i])]]));
    }
    rows.put("step", step_text(trace, rank, r.start[i]));
}

void describe_call(const traces::Trace& trace, std::size_t i, EventDetails& out) {
    const traces::RuntimeCalls& c = trace.runtime;
    out.title = trace.strings[c.name[i]];
    DetailList rows(out.rows);
    rows.put("kind", "Runtime call");
    rows.put("start", instant(c.start[i]));
    rows.put("duration", format_duration(static_cast<double>(c.end[i] - c.start[i])));
    rows.put("thread", thread_text(trace, c.thread[i]));
    const int rank = c.thread[i] < trace.threads.size() ? trace.threads[c.thread[i]].rank : -1;
    rows.put("rank", rank_text(trace, rank));
    rows.put("module",
             module_text(trace, module_of(trace, {EventKind::runtime, static_cast<std::int64_t>(i)})));
    if (c.range[i] >= 0) {
        rows.put("inside",
                 std::string(trace.strings[trace.ranges.name[static_cast<std::size_t>(c.range[i])]]));
    }
    rows.put("step", step_text(trace, rank, c.start[i]));
    if (c.correlation[i] != 0) rows.put("correlation", fmt::format("{}", c.correlation[i]));
}

// ENUM_CUPTI_SYNC_TYPE.
std::string_view wait_text(std::uint8_t type) {
    switch (type) {
        case traces::kSyncEvent:
            return "Wait for an event";
        case traces::kSyncStreamWait:
            return "Stream waits for an event";
        case traces::kSyncStream:
            return "Wait for a stream";
        case traces::kSyncContext:
            return "Wait for the device";
        default:
            return "Synchronization";
    }
}

void describe_wait(const traces::Trace& trace, std::size_t i, EventDetails& out) {
    const traces::Synchronizations& s = trace.synchronizations;
    out.title = wait_text(s.type[i]);
    DetailList rows(out.rows);
    rows.put("kind", "Synchronization");
    rows.put("start", instant(s.start[i]));
    rows.put("duration", format_duration(static_cast<double>(s.end[i] - s.start[i])));
    rows.put("rank", rank_text(trace, s.rank[i]));
    if (s.stream[i] >= 0 && static_cast<std::size_t>(s.stream[i]) < trace.streams.size()) {
        const traces::DeviceStream& stream = trace.streams[static_cast<std::size_t>(s.stream[i])];
        rows.put("stream", stream.name.empty() ? fmt::format("{}", stream.id)
                                               : fmt::format("{} ({})", stream.name, stream.id));
    }
    if (s.call[i] >= 0) {
        rows.put("call", std::string(trace.strings[trace.runtime.name[static_cast<std::size_t>(s.call[i])]]));
    }
    rows.put("step", step_text(trace, s.rank[i], s.start[i]));
}

void describe_mark(const traces::Trace& trace, std::size_t i, EventDetails& out) {
    const traces::Marks& m = trace.marks;
    out.title = trace.strings[m.name[i]];
    DetailList rows(out.rows);
    rows.put("kind", "Mark");
    rows.put("time", instant(m.time[i]));
    rows.put("thread", thread_text(trace, m.thread[i]));
    const int rank = m.thread[i] < trace.threads.size() ? trace.threads[m.thread[i]].rank : -1;
    rows.put("rank", rank_text(trace, rank));
    rows.put("step", step_text(trace, rank, m.time[i]));
}

// The innermost module around a range.
int module_around(const traces::Trace& trace, std::int32_t range) {
    for (; range >= 0; range = trace.ranges.parent[static_cast<std::size_t>(range)]) {
        const std::int32_t module = trace.ranges.module[static_cast<std::size_t>(range)];
        if (module >= 0) return module;
    }
    return -1;
}

}  // namespace

EventDetails describe(const traces::Trace& trace, SelectedEvent event) {
    EventDetails out;
    const auto i = static_cast<std::size_t>(event.index);
    switch (event.kind) {
        case EventKind::device:
            describe_device(trace, i, out);
            break;
        case EventKind::range:
            describe_range(trace, i, out);
            break;
        case EventKind::runtime:
            describe_call(trace, i, out);
            break;
        case EventKind::wait:
            describe_wait(trace, i, out);
            break;
        case EventKind::mark:
            describe_mark(trace, i, out);
            break;
        case EventKind::none:
            break;
    }
    return out;
}

std::string bar_label(const traces::Trace& trace, SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    switch (event.kind) {
        case EventKind::device: {
            const std::int32_t collective = trace.device.collective[i];
            if (collective < 0 || static_cast<std::size_t>(collective) >= trace.collectives.size()) {
                return std::string(trace.strings[trace.device.name[i]]);
            }
            const auto c = static_cast<std::size_t>(collective);
            const std::string unit = unit_text(trace, trace.collectives.unit[c]);
            const std::string_view operation = traces::name(trace.collectives.operation[c]);
            return unit.empty() ? std::string(operation) : fmt::format("{} {}", operation, unit);
        }
        case EventKind::range: {
            constexpr std::string_view kModule = "nn.Module: ";
            std::string_view text = trace.strings[trace.ranges.name[i]];
            if (text.starts_with(kModule)) text.remove_prefix(kModule.size());
            return std::string(text);
        }
        case EventKind::runtime:
            return std::string(trace.strings[trace.runtime.name[i]]);
        case EventKind::wait:
            return std::string(wait_text(trace.synchronizations.type[i]));
        case EventKind::mark:
            return std::string(trace.strings[trace.marks.name[i]]);
        case EventKind::none:
            break;
    }
    return {};
}

int module_of(const traces::Trace& trace, SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    switch (event.kind) {
        case EventKind::device: {
            const std::int32_t launch = trace.device.launch[i];
            return launch < 0 ? -1
                              : module_around(trace, trace.runtime.range[static_cast<std::size_t>(launch)]);
        }
        case EventKind::range:
            return module_around(trace, static_cast<std::int32_t>(i));
        case EventKind::runtime:
            return module_around(trace, trace.runtime.range[i]);
        case EventKind::wait: {
            const std::int32_t call = trace.synchronizations.call[i];
            return call < 0 ? -1 : module_around(trace, trace.runtime.range[static_cast<std::size_t>(call)]);
        }
        case EventKind::mark:
        case EventKind::none:
            break;
    }
    return -1;
}

}  // namespace shardscope::viewer
