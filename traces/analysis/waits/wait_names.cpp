// See wait_names.h.
#include "traces/analysis/waits/wait_names.h"

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

using store::RangeKind;

struct Words {
    std::string_view title, meaning;
};

constexpr std::array<Words, kWaitsFor> kWaits = {{
    {"Host", "The host had not launched the work: CPU bound."},
    {"Data loader", "The host had not launched the work, because it waited for the next batch."},
    {"Host waits", "The host had not launched the work, because it waited for work of the device."},
    {"Late rank", "A collective waited for the rank that came last to it."},
    {"Collective", "Communication of another stream had not ended."},
    {"Copy", "A copy or fill of another stream had not ended."},
    {"Kernel", "A kernel of another stream had not ended."},
    {"Queue", "Its communicator was busy with an earlier collective."},
    {"Start", "The device starts launched work for which nothing else is to be waited for."},
    {"Unknown", "The trace does not say what was waited for."},
}};

constexpr std::array<Words, kExposureCauses> kCauses = {{
    {"late rank", "A rank of the collective had not arrived."},
    {"queued", "Compute ran while it waited behind other communication or copies, and could have hidden it."},
    {"host waited",
     "Compute ran while the host waited for the device before it launched this, and could have "
     "hidden it."},
    {"issued late", "Compute ran before the host launched this, and could have hidden it."},
    {"longer than compute", "It is longer than the compute that ran, or could have run, beside it."},
    {"nothing to hide it", "No compute of the rank could run beside it."},
}};

std::string_view copy_text(int kind) {
    switch (kind) {
        case 1:
            return "copy to device";
        case 2:
            return "copy to host";
        case 8:
            return "copy on device";
        case 10:
            return "copy between devices";
        case schema::kCopyDiskToHost:
            return "read of a file";
        case schema::kCopyHostToDisk:
            return "write of a file";
        default:
            return {};
    }
}

}  // namespace

std::string_view title(WaitFor what) {
    return kWaits[static_cast<std::size_t>(what)].title;
}
std::string_view meaning(WaitFor what) {
    return kWaits[static_cast<std::size_t>(what)].meaning;
}
std::string_view title(ExposureCause cause) {
    return kCauses[static_cast<std::size_t>(cause)].title;
}
std::string_view meaning(ExposureCause cause) {
    return kCauses[static_cast<std::size_t>(cause)].meaning;
}

WaitNames::WaitNames(const store::Trace& trace)
    : trace_(trace), units_(find_units(trace)), operations_(trace) {}

std::string WaitNames::rank(store::RankIndex rank) const {
    return fmt::format("rank {}", trace_.ranks[rank.at()].number);
}

std::string WaitNames::unit_of(std::size_t event) const {
    if (const std::int32_t row = trace_.device.collective[event]; row >= 0) {
        const store::UnitIndex unit =
            trace_.unit_of_id(trace_.collectives.unit[static_cast<std::size_t>(row)]);
        if (unit.known()) return trace_.units[unit.at()].name;
        if (!trace_.units.empty()) return {};
    }
    const UnitRanges::Place place =
        units_.at(trace_, launching_range(trace_, event), launched_at(trace_, event));
    return place.unit.known() && place.unit.at() < units_.names.size() ? units_.names[place.unit.at()]
                                                                       : std::string();
}

std::string WaitNames::kind_of(std::size_t event) const {
    const store::DeviceEvents& device = trace_.device;
    if (device.kind[event] == store::DeviceKind::communication) {
        schema::Operation operation = schema::Operation::other;
        if (const std::int32_t row = device.collective[event]; row >= 0)
            operation = trace_.collectives.operation[static_cast<std::size_t>(row)];
        if (operation == schema::Operation::other) operation = operations_.of_event(event);
        if (operation != schema::Operation::other) return std::string(schema::name(operation));
    } else if (device.kind[event] == store::DeviceKind::memcpy) {
        if (const std::string_view text = copy_text(device.copy_kind[event]); !text.empty())
            return std::string(text);
    }
    return std::string(trace_.strings[device.name[event]]);
}

// Whether the only operators around a copy's launch in the step convert or copy: then it is no module's, but
// moves the step's input.
bool WaitNames::is_batch(std::size_t event) const {
    bool in_step = false, copies = false;
    for (std::int32_t r = launching_range(trace_, event); r >= 0;
         r = trace_.ranges.parent[static_cast<std::size_t>(r)]) {
        const auto range = static_cast<std::size_t>(r);
        const RangeKind kind = trace_.ranges.kind[range];
        const std::string_view name = trace_.strings[trace_.ranges.name[range]];
        if (kind == RangeKind::function) continue;
        if (kind == RangeKind::step) {
            in_step = true;
        } else if (name == "aten::to" || name == "aten::_to_copy" || name == "aten::copy_") {
            copies = true;
        } else {
            return false;
        }
    }
    return in_step && copies;
}

std::string WaitNames::event(std::size_t event) const {
    const store::DeviceKind kind = trace_.device.kind[event];
    std::string text = kind_of(event);
    if (kind == store::DeviceKind::communication) {
        if (const std::string unit = unit_of(event); !unit.empty()) text += " " + unit;
    } else if (kind == store::DeviceKind::memcpy && trace_.device.copy_kind[event] == 1 && is_batch(event)) {
        text += " of batch";
    }
    return text;
}

// The range around a call, else the call: "FullyShardedDataParallel.rate_limiter".
std::string WaitNames::host_in(std::int32_t call) const {
    const auto c = static_cast<std::size_t>(call);
    const std::int32_t range = trace_.runtime.range[c];
    if (range >= 0 && trace_.ranges.kind[static_cast<std::size_t>(range)] != RangeKind::step)
        return std::string(trace_.strings[trace_.ranges.name[static_cast<std::size_t>(range)]]);
    return std::string(trace_.strings[trace_.runtime.name[c]]);
}

std::string WaitNames::wait(const Wait& wait) const {
    const auto on = [&] { return event(static_cast<std::size_t>(wait.on)); };
    const auto work = [&] { return event(static_cast<std::size_t>(wait.event)); };
    switch (wait.what) {
        case WaitFor::host:
            return fmt::format("launch of {} (CPU bound)", work());
        case WaitFor::data:
            return "next batch of the data loader";
        case WaitFor::device:
            return fmt::format("{} (the host waits for it in {})", on(), host_in(wait.call));
        case WaitFor::rank:
            return fmt::format("{} in {}", rank(wait.rank), on());
        case WaitFor::collective:
        case WaitFor::copy:
        case WaitFor::kernel:
            return on();
        case WaitFor::queue:
            return "behind " + on();
        case WaitFor::start:
            return fmt::format("start of {}", work());
        case WaitFor::unknown:
            break;
    }
    return fmt::format("unknown, before {}", work());
}

std::string WaitNames::waiter(const Wait& wait) const {
    if (wait.event < 0) return fmt::format("the host in {}", host_in(wait.call));
    const auto at = static_cast<std::size_t>(wait.event);
    const std::string text = event(at);
    return wait.on >= 0 && trace_.device.rank[static_cast<std::size_t>(wait.on)] != trace_.device.rank[at]
               ? fmt::format("{}: {}", rank(store::RankIndex(trace_.device.rank[at])), text)
               : text;
}

std::string WaitNames::of_cause(const Exposure& exposure, ExposureCause cause) const {
    switch (cause) {
        case ExposureCause::late_rank:
            return exposure.late.known() ? rank(exposure.late) : std::string();
        case ExposureCause::queued:
            return exposure.behind < 0 ? std::string()
                                       : "behind " + event(static_cast<std::size_t>(exposure.behind));
        case ExposureCause::host_waited:
            return exposure.call < 0 ? std::string()
                                     : fmt::format("in {} for {}", host_in(exposure.call),
                                                   event(static_cast<std::size_t>(exposure.waited)));
        case ExposureCause::issued_late:
        case ExposureCause::too_long:
        case ExposureCause::nothing:
            break;
    }
    return {};
}

}  // namespace shardscope::traces::analysis
