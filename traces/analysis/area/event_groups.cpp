// See event_groups.h.
#include "traces/analysis/area/event_groups.h"

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// Kinds as numbers: device events, host ranges, then the rest.
constexpr int kFirstRange = store::kDeviceKinds, kRuntime = kFirstRange + store::kRangeKinds,
              kWait = kRuntime + 1, kMark = kWait + 1, kGroupedKinds = kMark + 1;

int kind_of(const store::Trace& trace, store::EventRef event) {
    const auto i = static_cast<std::size_t>(event.index);
    switch (event.kind) {
        case store::EventKind::device:
            return static_cast<int>(trace.device.kind[i]);
        case store::EventKind::range:
            return kFirstRange + static_cast<int>(trace.ranges.kind[i]);
        case store::EventKind::runtime:
            return kRuntime;
        case store::EventKind::wait:
            return kWait;
        case store::EventKind::mark:
            return kMark;
        case store::EventKind::none:
            break;
    }
    return -1;
}

std::string kind_name(int kind) {
    if (kind < kFirstRange) return std::string(store::kDeviceKindNames[static_cast<std::size_t>(kind)]);
    if (kind < kRuntime)
        return std::string(store::kRangeKindNames[static_cast<std::size_t>(kind - kFirstRange)]);
    return kind == kRuntime ? "runtime call" : kind == kWait ? "waiting" : "mark";
}

}  // namespace

EventGroups::EventGroups(const store::Trace& trace, GroupBy by) : trace_(trace), by_(by) {
    switch (by) {
        case GroupBy::name:
            size_ = trace.strings.size();
            break;
        case GroupBy::kind:
            size_ = kGroupedKinds;
            break;
        case GroupBy::module:
            find_modules();
            size_ = names_.size();
            break;
        case GroupBy::unit:
            units_ = find_units(trace);
            size_ = units_.names.size();
            break;
        case GroupBy::rank:
            size_ = trace.ranks.size();
            break;
    }
}

// The module of each range, or of the nearest range around it, which is stored before it. Without rows of
// modules, ranges of the same name are one module.
void EventGroups::find_modules() {
    std::unordered_map<std::int64_t, int> known;  // by ModuleRow::id, or by the name's number
    for (const schema::ModuleRow& module : trace_.modules) {
        known[module.id] = static_cast<int>(names_.size());
        names_.push_back(module.path.empty() ? module.name : module.path);
    }
    const bool by_name = trace_.modules.empty();
    const store::HostRanges& ranges = trace_.ranges;
    module_around_.assign(ranges.size(), -1);
    for (std::size_t r = 0; r < ranges.size(); ++r) {
        if (by_name && ranges.kind[r] == store::RangeKind::module) {
            const auto [it, is_new] =
                known.try_emplace(static_cast<std::int64_t>(ranges.name[r]), static_cast<int>(names_.size()));
            if (is_new) {
                std::string_view name = trace_.strings[ranges.name[r]];
                if (name.starts_with(store::kModulePrefix)) name.remove_prefix(store::kModulePrefix.size());
                names_.emplace_back(name);
            }
            module_around_[r] = it->second;
        } else if (const auto own = known.find(ranges.module[r]); !by_name && own != known.end()) {
            module_around_[r] = own->second;
        } else if (ranges.parent[r] >= 0) {
            module_around_[r] = module_around_[static_cast<std::size_t>(ranges.parent[r])];
        }
    }
}

int EventGroups::around(std::int32_t range, std::int64_t time) const {
    if (by_ == GroupBy::unit) return units_.at(trace_, range, time).unit.value;
    return range < 0 ? -1 : module_around_[static_cast<std::size_t>(range)];
}

int EventGroups::of(store::EventRef event) const {
    using store::EventKind;
    if (event.kind == EventKind::none) return -1;
    if (by_ == GroupBy::kind) return kind_of(trace_, event);
    if (by_ == GroupBy::rank) {
        const store::RankIndex rank = rank_of(trace_, event);
        return rank.at() < trace_.ranks.size() ? rank.value : -1;
    }
    const auto i = static_cast<std::size_t>(event.index);
    if (event.kind == EventKind::wait) {
        const std::int32_t call = trace_.synchronizations.call[i];
        return call < 0 ? -1 : of({EventKind::runtime, call});
    }
    if (by_ == GroupBy::name) return static_cast<int>(name_id_of(trace_, event));
    switch (event.kind) {
        case EventKind::device: {
            const std::int32_t c = trace_.device.collective[i];
            if (by_ == GroupBy::unit && c >= 0 && static_cast<std::size_t>(c) < trace_.collectives.size()) {
                const int unit =
                    trace_.unit_of_id(trace_.collectives.unit[static_cast<std::size_t>(c)]).value;
                if (unit >= 0) return unit;
            }
            return around(trace_.device.range[i], launched_at(trace_, i));
        }
        case EventKind::range:
            return around(static_cast<std::int32_t>(i), trace_.ranges.start[i]);
        case EventKind::runtime:
            return around(trace_.runtime.range[i], trace_.runtime.start[i]);
        default:
            return -1;
    }
}

std::string EventGroups::name(int group) const {
    if (group < 0) return "";
    switch (by_) {
        case GroupBy::name:
            return std::string(trace_.strings[static_cast<schema::StringId>(group)]);
        case GroupBy::kind:
            return kind_name(group);
        case GroupBy::module:
            return names_[static_cast<std::size_t>(group)];
        case GroupBy::unit:
            return units_.names[static_cast<std::size_t>(group)];
        case GroupBy::rank:
            break;
    }
    return fmt::format("{}", trace_.ranks[static_cast<std::size_t>(group)].number);
}

}  // namespace shardscope::traces::analysis
