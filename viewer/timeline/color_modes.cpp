// See color_modes.h.
#include "viewer/timeline/color_modes.h"

#include <algorithm>
#include <array>

#include "traces/analysis/area/event_groups.h"
#include "traces/analysis/waits/wait_names.h"
#include "traces/schema/sort_rows.h"
#include "traces/schema/text.h"
#include "traces/store/columns/names.h"

namespace shardscope::viewer::timeline {
namespace {

constexpr std::size_t kInLegend = 24;

// Causes of exposure as things: 0 to kExposureCauses - 1; then what is hidden.
class CauseNaming {
  public:
    CauseNaming(const traces::store::Trace& trace, const traces::analysis::WaitFinder& waits)
        : trace_(trace), waits_(waits) {}
    int of(model::SelectedEvent event) const {
        if (event.kind != model::EventKind::device) return -1;
        const auto i = static_cast<std::size_t>(event.index);
        if (trace_.device.kind[i] == traces::store::DeviceKind::kernel) return -1;
        const traces::analysis::Exposure exposure = waits_.exposure(i);
        return exposure.ns > 0 ? static_cast<int>(exposure.main()) : traces::analysis::kExposureCauses;
    }
    Paint hue(int thing) const { return thing < 0 ? kNoHue : static_cast<Paint>(kFirstCause + thing); }
    std::string name(int thing) const {
        return std::string(thing < traces::analysis::kExposureCauses
                               ? title(static_cast<traces::analysis::ExposureCause>(thing))
                               : std::string_view("hidden"));
    }
    std::size_t size() const { return traces::analysis::kExposureCauses + 1; }

  private:
    const traces::store::Trace& trace_;
    const traces::analysis::WaitFinder& waits_;
};

// The hue of each name, module or unit.
class Naming {
  public:
    Naming(const traces::store::Trace& trace, model::ColorBy by) : groups_(trace, group_by(by)) {
        hues_.reserve(groups_.size());
        for (int thing = 0; static_cast<std::size_t>(thing) < groups_.size(); ++thing)
            hues_.push_back(hue_of(groups_.name(thing)));
        if (by == model::ColorBy::unit) tell_apart();
    }

    int of(model::SelectedEvent event) const { return groups_.of(event); }
    Paint hue(int thing) const { return thing < 0 ? kNoHue : hues_[static_cast<std::size_t>(thing)]; }
    std::string name(int thing) const { return groups_.name(thing); }
    std::size_t size() const { return hues_.size(); }

  private:
    static traces::analysis::GroupBy group_by(model::ColorBy by) {
        return by == model::ColorBy::name     ? traces::analysis::GroupBy::name
               : by == model::ColorBy::module ? traces::analysis::GroupBy::module
                                              : traces::analysis::GroupBy::unit;
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

    traces::analysis::EventGroups groups_;
    std::vector<Paint> hues_;
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
        if (track.kind == Track::Kind::result) continue;  // its events are in other rows, too
        for (const Lane& lane : track.lanes) {
            lane.paints().add_times(lane, 0, lane.size(), times);
            for (const Paint paint : lane.paints().used()) seen[paint] = true;
        }
    }
    std::vector<PaintName> legend;
    for (Paint paint = 0; paint < kKindPaints; ++paint) {
        if (seen[paint]) legend.push_back({paint, std::string(paint_name(paint)), times[paint]});
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
        case kHiddenPaint:
            return theme::overlapped_color();
        default:
            break;
    }
    if (paint >= kFirstCause)
        return theme::exposure_color(static_cast<traces::analysis::ExposureCause>(paint - kFirstCause));
    return theme::hue_color(paint - kFirstHue);
}

Paint hue_of(std::string_view name) {
    const std::uint64_t hash = traces::schema::hash_of(name);
    return static_cast<Paint>(kFirstHue + (hash ^ hash >> 32) % kHues);
}

TrackPaints::TrackPaints(const traces::store::Trace& trace, const Tracks& tracks, model::ColorBy by,
                         const traces::analysis::WaitFinder* waits) {
    if (by == model::ColorBy::kind) {
        legend_ = kinds_of(tracks);
    } else if (by == model::ColorBy::cause) {
        if (waits != nullptr) paint(tracks, CauseNaming(trace, *waits), "kernels, host");
    } else {
        paint(tracks, Naming(trace, by), by == model::ColorBy::unit ? "no unit" : "no module");
    }
}

template <class Things>
void TrackPaints::paint(const Tracks& tracks, const Things& naming, const char* none) {
    std::vector<std::int64_t> busy(naming.size());
    std::int64_t unnamed = -1;
    paints_.resize(tracks.tracks.size());
    for (std::size_t t = 0; t < tracks.tracks.size(); ++t) {
        for (const Lane& lane : tracks.tracks[t].lanes) {
            LanePaints& paints = paints_[t].emplace_back();
            paints.reserve(lane.size());
            // The events of a collective and of a result count where they ran, not again.
            const bool counts = tracks.tracks[t].kind != Track::Kind::collectives &&
                                tracks.tracks[t].kind != Track::Kind::result;
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
                               naming.name(static_cast<int>(thing)).substr(0, 200), busy[thing]});
    }
    sort_legend(legend_);
    if (unnamed >= 0) legend_.push_back({kNoHue, none, unnamed});
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
