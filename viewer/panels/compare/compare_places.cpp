// See compare_places.h.
#include "viewer/panels/compare/compare_places.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/modules/module_join.h"
#include "traces/analysis/modules/modules.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::CompareBy;
using traces::store::DeviceKind;
using traces::store::Trace;

std::string unit_name(const Trace& trace, std::int32_t id) {
    const traces::store::UnitIndex unit = trace.unit_of_id(id);
    return unit.known() ? trace.units[unit.at()].name : std::string();
}

class Longest {
  public:
    void take(model::TimeRange time, traces::store::RankIndex rank, model::SelectedEvent event,
              int module = -1) {
        if (place_.found && time.length() <= place_.time.length()) return;
        place_ = {true, time, rank, event, module};
    }
    PartPlace place() const { return place_; }

  private:
    PartPlace place_;
};

template <typename Matches>
PartPlace longest_device_event(const Trace& trace, const traces::analysis::Selection& selection,
                               const Matches& matches) {
    const traces::store::DeviceEvents& device = trace.device;
    const std::vector<bool> selected =
        traces::analysis::selected_events(trace, traces::analysis::find_steps(trace), selection);
    Longest longest;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (selected[i] && matches(i))
            longest.take({device.start[i], device.end[i]}, traces::store::RankIndex(device.rank[i]),
                         {model::EventKind::device, static_cast<std::int64_t>(i)});
    }
    return longest.place();
}

PartPlace longest_operator(const Trace& trace, const std::string& name,
                           const traces::analysis::Selection& selection) {
    const traces::analysis::Interval time = traces::analysis::selected_time(selection);
    const traces::store::HostRanges& ranges = trace.ranges;
    Longest longest;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        if (ranges.start[i] < time.start || ranges.start[i] >= time.end) continue;
        const std::string_view text = trace.strings[ranges.name[i]];
        // PyTorch's NVTX ranges append to the name: "aten::mm, seq = 3".
        if (!text.starts_with(name) || (text.size() > name.size() && text[name.size()] != ',')) continue;
        longest.take({ranges.start[i], ranges.end[i]}, trace.threads[ranges.thread[i]].rank,
                     {model::EventKind::range, static_cast<std::int64_t>(i)});
    }
    return longest.place();
}

// `name` is a joined path; a rank's rows are joined in the same way as in compare_parts().
PartPlace longest_module_call(const Trace& trace, const std::string& name,
                              const traces::analysis::Selection& selection) {
    Longest longest;
    const traces::analysis::ModuleView view = traces::analysis::module_view(trace, selection);
    std::size_t r = 0;
    for (const traces::analysis::RankModuleCalls& rank : traces::analysis::module_calls(trace, selection)) {
        const traces::analysis::JoinedPaths joined = traces::analysis::joined_paths(view.ranks[r++]);
        for (const traces::analysis::CallsOfModule& module : rank.modules) {
            const auto known = joined.find(module.path);
            if (known == joined.end() || known->second != name) continue;
            for (const traces::analysis::ModuleCall& call : module.calls) {
                const auto i = static_cast<std::size_t>(call.range);
                longest.take({trace.ranges.start[i], trace.ranges.end[i]},
                             trace.threads[trace.ranges.thread[i]].rank,
                             {model::EventKind::range, call.range}, module.module);
            }
        }
    }
    return longest.place();
}

}  // namespace

PartPlace longest_of_part(const Trace& trace, CompareBy by, const std::string& name,
                          const traces::analysis::Selection& selection) {
    const traces::store::DeviceEvents& device = trace.device;
    switch (by) {
        case CompareBy::module:
            return longest_module_call(trace, name, selection);
        case CompareBy::operation:
            return longest_operator(trace, name, selection);
        case CompareBy::kernel: {
            const auto id = trace.strings.find(name);
            if (!id) return {};
            return longest_device_event(trace, selection, [&](std::size_t i) {
                return device.name[i] == *id &&
                       (device.kind[i] == DeviceKind::kernel || device.kind[i] == DeviceKind::communication);
            });
        }
        case CompareBy::collective:
        case CompareBy::unit:
            break;
    }
    const traces::analysis::KernelOperations operations(trace);
    return longest_device_event(trace, selection, [&](std::size_t i) {
        if (device.kind[i] != DeviceKind::communication) return false;
        const std::int32_t row = device.collective[i];
        const auto at = static_cast<std::size_t>(row);
        const std::string unit = row >= 0 ? unit_name(trace, trace.collectives.unit[at]) : std::string();
        if (by == CompareBy::unit)
            return row >= 0 && name == fmt::format("{}, {}", unit.empty() ? "(no unit)" : unit,
                                                   traces::schema::name(trace.collectives.phase[at]));
        std::string own(
            traces::schema::name(row >= 0 ? trace.collectives.operation[at] : operations.of_event(i)));
        if (!unit.empty()) own += ", " + unit;
        return own == name;
    });
}

}  // namespace shardscope::viewer::panels
