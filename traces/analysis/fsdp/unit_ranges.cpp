// Three passes over the ranges: interpret their names, assign units to unnamed hooks, and resolve nesting;
// see unit_ranges.h.
#include "traces/analysis/fsdp/unit_ranges.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "traces/analysis/fsdp/hook_order.h"
#include "traces/analysis/fsdp/unit_names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// By module id: the unit that gathers the module, its own or its nearest ancestor's. Ids beyond the end have
// no unit.
std::vector<store::UnitIndex> units_of_modules(const store::Trace& trace) {
    std::int32_t size = 0;
    for (const schema::ModuleRow& module : trace.modules) size = std::max(size, module.id + 1);
    std::vector<store::UnitIndex> unit(static_cast<std::size_t>(size));
    std::vector<std::int32_t> parent(unit.size(), -1);
    const auto known = [&](int module) { return module >= 0 && module < size; };
    for (const schema::ModuleRow& module : trace.modules) {
        if (!known(module.id)) continue;
        if (known(module.parent)) parent[static_cast<std::size_t>(module.id)] = module.parent;
        unit[static_cast<std::size_t>(module.id)] = trace.unit_of_id(module.unit);
    }
    for (std::size_t u = 0; u < trace.units.size(); ++u) {
        if (known(trace.units[u].module))
            unit[static_cast<std::size_t>(trace.units[u].module)] = store::UnitIndex(u);
    }
    std::vector<store::UnitIndex> result(unit);
    for (std::size_t m = 0; m < unit.size(); ++m) {
        std::int32_t at = static_cast<std::int32_t>(m);
        for (std::int32_t levels = 0; at >= 0 && levels <= size; ++levels) {  // damaged trees may have cycles
            if (unit[static_cast<std::size_t>(at)].known()) break;
            at = parent[static_cast<std::size_t>(at)];
        }
        result[m] = at >= 0 ? unit[static_cast<std::size_t>(at)] : store::UnitIndex();
    }
    return result;
}

// The units that hooks entered and did not leave on a thread.
struct HookStack {
    struct Entry {
        store::UnitIndex unit;
        schema::Phase phase;
        std::int64_t since;
    };
    std::vector<Entry> entries;

    void leave(store::UnitIndex unit) {
        const auto it =
            std::find_if(entries.rbegin(), entries.rend(), [&](const Entry& e) { return e.unit == unit; });
        if (it != entries.rend()) entries.erase(std::next(it).base());
    }
    void enter(store::UnitIndex unit, schema::Phase phase, std::int64_t since) {
        leave(unit);
        if (entries.size() >= kMostOpenUnits) entries.erase(entries.begin());
        entries.push_back({unit, phase, since});
    }
};

class Finder {
  public:
    explicit Finder(const store::Trace& trace)
        : trace_(trace),
          ours_(!trace.units.empty()),
          modules_(ours_ ? units_of_modules(trace) : std::vector<store::UnitIndex>{}),
          known_(trace.strings.size(), -1) {}

    UnitRanges find() {
        const std::size_t size = trace_.ranges.size();
        result_.unit.resize(size);
        result_.phase.assign(size, schema::Phase::none);
        result_.changes.resize(trace_.threads.size());
        result_.changes_inside.assign(size, false);
        for (const schema::UnitRow& unit : trace_.units) result_.names.push_back(unit.name);
        read_names();
        if (!ours_) {
            if (marks_.empty()) return std::move(result_);
            name_hooks();
        }
        place();
        return std::move(result_);
    }

  private:
    // Interprets each name once.
    const UnitName& name_of(std::size_t range) {
        const schema::StringId id = trace_.ranges.name[range];
        std::int32_t& known = known_[static_cast<std::size_t>(id)];
        if (known < 0) {
            UnitName name = unit_name(trace_.strings[id]);
            known = name.mark == UnitMark::none ? 0 : static_cast<std::int32_t>(names_.size());
            if (known > 0) names_.push_back(std::move(name));
        }
        return names_[static_cast<std::size_t>(known)];
    }

    bool in_autograd(std::size_t range) {
        for (std::int32_t at = trace_.ranges.parent[range]; at >= 0;
             at = trace_.ranges.parent[static_cast<std::size_t>(at)]) {
            if (name_of(static_cast<std::size_t>(at)).mark == UnitMark::autograd) return true;
        }
        return false;
    }

    void read_names() {
        UnitTable units(result_.names);
        bool frames = false;
        for (std::size_t i = 0; i < trace_.ranges.size(); ++i) {
            const UnitName& name = name_of(i);
            if (name.mark == UnitMark::none) continue;
            if (name.mark == UnitMark::limiter) result_.limiters.push_back(static_cast<std::int32_t>(i));
            if (ours_ || name.mark == UnitMark::limiter || name.mark == UnitMark::autograd ||
                name.mark == UnitMark::outside || name.mark == UnitMark::recompute ||
                name.mark == UnitMark::unshard)
                continue;
            frames = frames || name.mark == UnitMark::module_frame;
            second_ = second_ || name.mark == UnitMark::pre_forward || name.mark == UnitMark::copy_out ||
                      name.mark == UnitMark::other;
            MarkedRange mark{.range = i, .kind = name.mark};
            if (!name.unit.empty()) mark.unit = units[name.unit];
            named_ = named_ || (!name.unit.empty() && name.mark != UnitMark::module_frame);
            marks_.push_back(mark);
        }
        // A unit's forward lies inside its module's frame and does not count as another unit.
        if (frames) std::erase_if(marks_, [](const MarkedRange& m) { return m.kind == UnitMark::forward; });
        for (MarkedRange& mark : marks_) {
            if (mark.kind == UnitMark::forward || mark.kind == UnitMark::pre_forward ||
                mark.kind == UnitMark::module_frame)
                mark.again = in_autograd(mark.range);
        }
    }

    void name_hooks() {
        UnitTable units(result_.names);
        if (second_ && named_) {  // only the root module has no name
            bool used = false;
            for (const MarkedRange& mark : marks_) used = used || mark.unit == kUnnamed;
            const store::UnitIndex root = used ? units["(root)"] : kUnnamed;
            for (MarkedRange& mark : marks_) {
                if (mark.unit == kUnnamed) mark.unit = root;
            }
            return;
        }
        std::unordered_map<store::RankIndex, std::vector<MarkedRange*>> by_rank;
        for (MarkedRange& mark : marks_)
            by_rank[trace_.threads[trace_.ranges.thread[mark.range]].rank].push_back(&mark);
        for (auto& [rank, marks] : by_rank) {
            HookOrder order(trace_, units, second_);
            for (MarkedRange* mark : marks) order.add(*mark);
            order.finish();
        }
    }

    // Finds the unit and phase of each range from those before it: ranges are sorted, parents first.
    void place() {
        const store::HostRanges& ranges = trace_.ranges;
        std::vector<HookStack> stacks(trace_.threads.size());
        std::size_t next_mark = 0;
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            HookStack& stack = stacks[ranges.thread[i]];
            inherit(i, stack);
            const UnitMark kind = name_of(i).mark;
            if (kind == UnitMark::autograd) result_.phase[i] = schema::Phase::backward;
            if (kind == UnitMark::recompute) result_.phase[i] = schema::Phase::recompute;
            if (kind == UnitMark::outside || ranges.kind[i] == store::RangeKind::step) stack.entries.clear();
            if (ours_) continue;
            if (next_mark == marks_.size() || marks_[next_mark].range != i) continue;
            const MarkedRange& mark = marks_[next_mark++];
            obey(mark, stack);
            if (mark.kind == UnitMark::pre_forward || mark.kind == UnitMark::post_forward ||
                mark.kind == UnitMark::pre_backward || mark.kind == UnitMark::post_backward)
                note_change(i, stack);
        }
    }

    // Work directly in a range around a hook belongs to different units before and after the hook.
    void note_change(std::size_t hook, const HookStack& stack) {
        UnitRanges::Change change{.time = trace_.ranges.start[hook]};
        if (!stack.entries.empty()) {
            change.unit = stack.entries.back().unit;
            change.phase = stack.entries.back().phase;
        }
        result_.changes[trace_.ranges.thread[hook]].push_back(change);
        for (std::int32_t at = trace_.ranges.parent[hook];
             at >= 0 && !result_.changes_inside[static_cast<std::size_t>(at)];
             at = trace_.ranges.parent[static_cast<std::size_t>(at)])
            result_.changes_inside[static_cast<std::size_t>(at)] = true;
    }

    void inherit(std::size_t i, const HookStack& stack) {
        const store::HostRanges& ranges = trace_.ranges;
        const std::int32_t parent = ranges.parent[i];
        if (parent >= 0) {
            result_.unit[i] = result_.unit[static_cast<std::size_t>(parent)];
            result_.phase[i] = result_.phase[static_cast<std::size_t>(parent)];
        }
        if (ours_) {
            if (ranges.kind[i] == store::RangeKind::backward) result_.phase[i] = schema::Phase::backward;
            if (ranges.kind[i] == store::RangeKind::module && result_.phase[i] == schema::Phase::none)
                result_.phase[i] = schema::Phase::forward;
            const auto module = static_cast<std::size_t>(ranges.module[i]);
            if (ranges.module[i] >= 0 && module < modules_.size()) result_.unit[i] = modules_[module];
            return;
        }
        const bool younger =
            !stack.entries.empty() &&
            (parent < 0 || stack.entries.back().since >= ranges.start[static_cast<std::size_t>(parent)]);
        if (younger) {
            result_.unit[i] = stack.entries.back().unit;
            result_.phase[i] = stack.entries.back().phase;
        }
        const std::int32_t forward = ranges.forward.empty() ? -1 : ranges.forward[i];
        if (forward >= 0 && static_cast<std::size_t>(forward) < i &&
            result_.unit[static_cast<std::size_t>(forward)].known()) {
            result_.unit[i] = result_.unit[static_cast<std::size_t>(forward)];
            result_.phase[i] = schema::Phase::backward;
        }
    }

    void obey(const MarkedRange& mark, HookStack& stack) {
        const std::size_t i = mark.range;
        const std::int64_t start = trace_.ranges.start[i];
        if (mark.unit.known()) result_.unit[i] = mark.unit;
        switch (mark.kind) {
            case UnitMark::module_frame:
            case UnitMark::forward:
                result_.phase[i] = mark.again ? schema::Phase::recompute : schema::Phase::forward;
                break;
            case UnitMark::pre_forward:
                result_.phase[i] = mark.again ? schema::Phase::recompute : schema::Phase::forward;
                stack.enter(mark.unit, result_.phase[i], start);
                break;
            case UnitMark::post_forward:
                stack.leave(mark.unit);
                break;
            case UnitMark::pre_backward:
                result_.phase[i] = schema::Phase::backward;
                if (mark.unit.known()) stack.enter(mark.unit, schema::Phase::backward, start);
                break;
            case UnitMark::post_backward:
                result_.phase[i] = schema::Phase::backward;
                stack.leave(mark.unit);
                break;
            case UnitMark::forward_prefetch:
                result_.phase[i] = schema::Phase::forward;
                break;
            case UnitMark::backward_prefetch:
                result_.phase[i] = schema::Phase::backward;
                break;
            case UnitMark::copy_out:
            case UnitMark::other:
                if (result_.phase[i] == schema::Phase::none) {
                    const bool backward =
                        trace_.strings[trace_.ranges.name[i]].find("backward") != std::string_view::npos;
                    result_.phase[i] = backward ? schema::Phase::backward : schema::Phase::forward;
                }
                break;
            default:
                break;
        }
    }

    const store::Trace& trace_;
    const bool ours_;
    const std::vector<store::UnitIndex> modules_;
    std::vector<std::int32_t> known_;  // by StringId: index into names_, -1 not evaluated
    std::vector<UnitName> names_ = std::vector<UnitName>(1);
    std::vector<MarkedRange> marks_;
    bool second_ = false, named_ = false;  // FSDP2's names; some of them with a module's name
    UnitRanges result_;
};

}  // namespace

UnitRanges::Place UnitRanges::at(const store::Trace& trace, std::int32_t range, std::int64_t time) const {
    if (range < 0) return {};
    const auto r = static_cast<std::size_t>(range);
    if (changes_inside[r]) {
        const std::vector<Change>& all = changes[trace.ranges.thread[r]];
        const auto after =
            std::partition_point(all.begin(), all.end(), [&](const Change& c) { return c.time <= time; });
        if (after != all.begin() && (after - 1)->time > trace.ranges.start[r] && (after - 1)->unit.known())
            return {(after - 1)->unit, (after - 1)->phase};
    }
    return {unit[r], phase[r]};
}

UnitRanges find_units(const store::Trace& trace) {
    return Finder(trace).find();
}

}  // namespace shardscope::traces::analysis
