// See color_modes.h.
#include "viewer/timeline/color_modes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/schema/sort_rows.h"
#include "traces/schema/text.h"

namespace shardscope::viewer::timeline {
namespace {

constexpr std::size_t kInLegend = 24;

std::string_view kind_name(Paint paint) {
    static constexpr std::array<std::string_view, traces::store::kRangeKinds> kRanges = {
        "range", "module", "backward", "step", "DataLoader", "NCCL call", "function", "operator"};
    if (paint < kFirstRangePaint) return traces::store::kDeviceKindNames[paint];
    if (paint < kRuntimePaint) return kRanges[static_cast<std::size_t>(paint - kFirstRangePaint)];
    switch (paint) {
        case kRuntimePaint:
            return "runtime call";
        case kWaitPaint:
            return "waiting";
        case kMarkPaint:
            return "mark";
        case kArrivalPaint:
            return "ranks arrive";
        default:
            return "transfer";
    }
}

// Maps an event to what colours it (a name, module or unit) by number, -1 none; and that to its hue.
class Naming {
  public:
    Naming(const traces::store::Trace& trace, model::ColorBy by) : trace_(trace), by_(by) {
        if (by == model::ColorBy::name) {
            names_.reserve(trace.strings.size());
            for (std::size_t s = 0; s < trace.strings.size(); ++s)
                add(std::string_view(trace.strings[static_cast<traces::schema::StringId>(s)]));
        } else if (by == model::ColorBy::module) {
            for (const traces::schema::ModuleRow& module : trace.modules) {
                module_at_[module.id] = static_cast<int>(hues_.size());
                add(module.path.empty() ? module.name : module.path);
            }
            modules_around();
        } else {
            units_ = traces::analysis::find_units(trace);
            for (const std::string& unit : units_.names) add(unit);
            tell_apart();
        }
    }

    int of(model::SelectedEvent event) const {
        const auto i = static_cast<std::size_t>(event.index);
        switch (event.kind) {
            case model::EventKind::device:
                if (by_ == model::ColorBy::name) return static_cast<int>(trace_.device.name[i]);
                if (const int unit = unit_of_collective(i); unit >= 0) return unit;
                return around(trace_.device.range[i], launched_at(i));
            case model::EventKind::range:
                if (by_ == model::ColorBy::name) return static_cast<int>(trace_.ranges.name[i]);
                return around(static_cast<std::int32_t>(i), trace_.ranges.start[i]);
            case model::EventKind::runtime:
                if (by_ == model::ColorBy::name) return static_cast<int>(trace_.runtime.name[i]);
                return around(trace_.runtime.range[i], trace_.runtime.start[i]);
            case model::EventKind::wait: {
                const std::int32_t call = trace_.synchronizations.call[i];
                return call < 0 ? -1 : of({model::EventKind::runtime, call});
            }
            case model::EventKind::mark:
                return by_ == model::ColorBy::name ? static_cast<int>(trace_.marks.name[i]) : -1;
            case model::EventKind::none:
                break;
        }
        return -1;
    }
    Paint hue(int thing) const { return thing < 0 ? kNoHue : hues_[static_cast<std::size_t>(thing)]; }
    std::string_view name(int thing) const { return names_[static_cast<std::size_t>(thing)]; }
    std::size_t size() const { return hues_.size(); }

  private:
    void add(std::string_view name) {
        names_.push_back(name);
        hues_.push_back(hue_of(name));
    }
    // While there are free hues, no two things share one: a later thing takes the next free hue.
    void tell_apart() {
        std::array<bool, kHues> taken{};
        for (std::size_t thing = 0; thing < std::min<std::size_t>(hues_.size(), kHues); ++thing) {
            auto hue = static_cast<std::size_t>(hues_[thing] - kFirstHue);
            while (taken[hue]) hue = (hue + 1) % kHues;
            taken[hue] = true;
            hues_[thing] = static_cast<Paint>(kFirstHue + hue);
        }
    }
    // The module of each range, or of the nearest range around it, which is stored before it.
    void modules_around() {
        const traces::store::HostRanges& ranges = trace_.ranges;
        module_around_.assign(ranges.size(), -1);
        for (std::size_t r = 0; r < ranges.size(); ++r) {
            const auto own = module_at_.find(ranges.module[r]);
            if (own != module_at_.end()) {
                module_around_[r] = own->second;
            } else if (ranges.parent[r] >= 0) {
                module_around_[r] = module_around_[static_cast<std::size_t>(ranges.parent[r])];
            }
        }
    }
    int around(std::int32_t range, std::int64_t time) const {
        if (by_ == model::ColorBy::module)
            return range < 0 ? -1 : module_around_[static_cast<std::size_t>(range)];
        return units_.at(trace_, range, time).unit.value;
    }
    int unit_of_collective(std::size_t event) const {
        const std::int32_t c = trace_.device.collective[event];
        if (by_ != model::ColorBy::unit || c < 0 || static_cast<std::size_t>(c) >= trace_.collectives.size())
            return -1;
        return trace_.unit_of_id(trace_.collectives.unit[static_cast<std::size_t>(c)]).value;
    }
    std::int64_t launched_at(std::size_t event) const {
        const std::int32_t launch = trace_.device.launch[event];
        return launch < 0 ? trace_.device.start[event]
                          : trace_.runtime.start[static_cast<std::size_t>(launch)];
    }

    const traces::store::Trace& trace_;
    model::ColorBy by_;
    std::vector<std::string_view> names_;
    std::vector<Paint> hues_;
    std::unordered_map<int, int> module_at_;
    std::vector<int> module_around_;
    traces::analysis::UnitRanges units_;
};

void sort_legend(std::vector<PaintName>& legend) {
    traces::schema::sort_rows(legend,
                              [](const PaintName& a, const PaintName& b) { return a.busy_ns > b.busy_ns; });
    if (legend.size() > kInLegend) legend.resize(kInLegend);
}

std::vector<PaintName> kinds_of(const Tracks& tracks) {
    PaintTimes times{};
    std::array<bool, kPaints> seen{};
    for (const Track& track : tracks.tracks) {
        for (const Lane& lane : track.lanes) {
            lane.paints().add_times(lane, 0, lane.size(), times);
            for (const Paint paint : lane.paints().used()) seen[paint] = true;
        }
    }
    std::vector<PaintName> legend;
    for (Paint paint = 0; paint < kKindPaints; ++paint) {
        if (seen[paint]) legend.push_back({paint, std::string(kind_name(paint)), times[paint]});
    }
    return legend;
}

}  // namespace

theme::Color paint_color(Paint paint) {
    if (paint < kFirstRangePaint) return theme::kind_color(static_cast<traces::store::DeviceKind>(paint));
    if (paint < kRuntimePaint)
        return theme::range_color(static_cast<traces::store::RangeKind>(paint - kFirstRangePaint));
    switch (paint) {
        case kRuntimePaint:
            return theme::runtime_color();
        case kWaitPaint:
            return theme::waiting_color();
        case kMarkPaint:
            return theme::peak();
        case kArrivalPaint:
            return theme::waiting_color();
        case kTransferPaint:
            return theme::transfer_color();
        case kNoHue:
            return theme::no_hue_color();
        default:
            return theme::hue_color(paint - kFirstHue);
    }
}

Paint hue_of(std::string_view name) {
    const std::uint64_t hash = traces::schema::hash_of(name);
    return static_cast<Paint>(kFirstHue + (hash ^ hash >> 32) % kHues);
}

TrackPaints::TrackPaints(const traces::store::Trace& trace, const Tracks& tracks, model::ColorBy by) {
    if (by == model::ColorBy::kind) {
        legend_ = kinds_of(tracks);
        return;
    }
    const Naming naming(trace, by);
    std::vector<std::int64_t> busy(naming.size());
    std::int64_t unnamed = -1;
    paints_.resize(tracks.tracks.size());
    for (std::size_t t = 0; t < tracks.tracks.size(); ++t) {
        for (const Lane& lane : tracks.tracks[t].lanes) {
            LanePaints& paints = paints_[t].emplace_back();
            paints.reserve(lane.size());
            // A collective's events count where they ran, not again on the joined row.
            const bool counts = tracks.tracks[t].kind != Track::Kind::collectives;
            for (std::size_t i = 0; i < lane.size(); ++i) {
                const int thing = naming.of(lane.event(i));
                // The time that ranks waited for each other stays visible.
                paints.add(lane.paint(i) == kArrivalPaint ? kArrivalPaint : naming.hue(thing));
                if (!counts) continue;
                if (thing >= 0) {
                    busy[static_cast<std::size_t>(thing)] += lane.length(i);
                } else {
                    unnamed = std::max<std::int64_t>(unnamed, 0) + lane.length(i);
                }
            }
            paints.finish(lane);
        }
    }
    for (std::size_t thing = 0; thing < busy.size(); ++thing) {
        if (busy[thing] > 0)
            legend_.push_back({naming.hue(static_cast<int>(thing)),
                               std::string(naming.name(static_cast<int>(thing)).substr(0, 200)),
                               busy[thing]});
    }
    sort_legend(legend_);
    if (unnamed >= 0)
        legend_.push_back({kNoHue, by == model::ColorBy::unit ? "no unit" : "no module", unnamed});
}

const LanePaints& TrackPaints::of(const Tracks& tracks, int track, int lane) const {
    const auto t = static_cast<std::size_t>(track), l = static_cast<std::size_t>(lane);
    return paints_.empty() ? tracks.tracks[t].lanes[l].paints() : paints_[t][l];
}

std::size_t TrackPaints::memory() const {
    std::size_t bytes = 0;
    for (const auto& track : paints_) {
        for (const LanePaints& lane : track) bytes += sizeof(LanePaints) + lane.memory();
    }
    return bytes;
}

}  // namespace shardscope::viewer::timeline
