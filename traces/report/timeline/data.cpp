// See data.h.
#include "traces/report/timeline/data.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "traces/report/text_table.h"
#include "traces/report/timeline/folds.h"
#include "traces/report/timeline/html_timeline.h"
#include "traces/report/timeline/packing.h"
#include "traces/schema/json_text.h"
#include "traces/store/columns/event_columns.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestName = 400;     // columns of text
constexpr std::size_t kFrequentNames = 5000;  // that are listed although no event of theirs is shown
constexpr std::size_t kWaitNames = 16;        // their numbers follow those of the trace's strings

std::size_t name_of(const store::Trace& trace, store::EventRef event) {
    if (event.kind != store::EventKind::wait) return static_cast<std::size_t>(name_id_of(trace, event));
    const auto type = trace.synchronizations.type[static_cast<std::size_t>(event.index)];
    return trace.strings.size() + std::min<std::size_t>(type, kWaitNames - 1);
}

std::string_view text_of_name(const store::Trace& trace, std::size_t name) {
    return name < trace.strings.size() ? trace.strings[static_cast<schema::StringId>(name)]
                                       : store::wait_name(static_cast<int>(name - trace.strings.size()));
}

const char* kind_of(lanes::Track::Kind kind) {
    switch (kind) {
        case lanes::Track::Kind::collectives:
            return "collectives";
        case lanes::Track::Kind::stream:
            return "stream";
        case lanes::Track::Kind::thread:
            return "thread";
        case lanes::Track::Kind::waits:
            return "waits";
        case lanes::Track::Kind::marks:
            return "marks";
        case lanes::Track::Kind::result:
            break;
    }
    return "result";
}

// What the tooltip of an event says besides its time and its row.
struct Look {
    std::size_t name = 0;
    int paint = 0, module = -1, unit = -1, operation = -1;
    std::int64_t bytes = 0;
    bool operator==(const Look&) const = default;
};

struct LookHash {
    std::size_t operator()(const Look& look) const {
        std::size_t hash = look.name;
        for (const std::int64_t part :
             {std::int64_t{look.paint}, std::int64_t{look.module}, std::int64_t{look.unit}, look.bytes})
            hash = hash * 0x9E3779B97F4A7C15 + static_cast<std::size_t>(part);
        return hash ^ hash >> 29;
    }
};

// The numbers of some texts, in the order in which they were first used.
class Texts {
  public:
    int operator()(int text) {
        if (text < 0) return -1;
        const auto [it, is_new] = number_.try_emplace(text, static_cast<int>(used_.size()));
        if (is_new) used_.push_back(text);
        return it->second;
    }
    const std::vector<int>& used() const { return used_; }

  private:
    std::unordered_map<int, int> number_;
    std::vector<int> used_;
};

// Points that are close together become one, with the lowest and the highest value that applied.
Json curve_json(const TimelineCurve& curve, const analysis::Interval& time, std::int64_t shorter) {
    Json times = Json::array(), lowest = Json::array(), highest = Json::array();
    std::int64_t previous = time.start;
    const auto put = [&](std::size_t point, double low, double high) {
        const auto number = [&](double value) {
            constexpr double kMost = 9e18;  // a number of bytes beyond it is a fault of the trace
            return curve.is_bytes && std::abs(value) < kMost ? Json(static_cast<std::int64_t>(value))
                                                             : Json(value);
        };
        times.push_back(curve.time[point] - previous);
        lowest.push_back(number(low));
        highest.push_back(number(high));
        previous = curve.time[point];
    };
    const auto first = std::upper_bound(curve.time.begin(), curve.time.end(), time.start);
    std::size_t i =
        first == curve.time.begin() ? 0 : static_cast<std::size_t>(first - curve.time.begin()) - 1;
    while (i < curve.time.size() && curve.time[i] < time.end) {
        std::size_t next = i + 1;
        while (next < curve.time.size() && curve.time[next] < time.end &&
               curve.time[next] - curve.time[next - 1] < std::max<std::int64_t>(shorter, 1) &&
               curve.time[next] - curve.time[i] <= kWidestFold * shorter)
            ++next;
        const auto [low, high] = std::minmax_element(curve.value.begin() + static_cast<std::ptrdiff_t>(i),
                                                     curve.value.begin() + static_cast<std::ptrdiff_t>(next));
        put(i, *low, *high);
        // The last value alone applies from its time until the next point.
        if (*low != *high) put(next - 1, curve.value[next - 1], curve.value[next - 1]);
        i = next;
    }
    return Json{{"times", std::move(times)}, {"lowest", std::move(lowest)}, {"highest", std::move(highest)}};
}

}  // namespace

// One encoding: the columns, and which looks and texts they use.
class TimelineEncoder::Encoding {
  public:
    Encoding(const TimelineEncoder& all, std::int64_t shorter) : all_(all), shorter_(shorter) {}

    TimelineData take() {
        Json rows = Json::array();
        for (const TimelineTrack& row : all_.rows_.rows) {
            const lanes::Track& track = all_.rows_.tracks.tracks[row.track];
            Json lanes = Json::array();
            // Joined collectives show events again that stand in the rows of their ranks.
            const bool counts = track.kind != lanes::Track::Kind::collectives;
            for (const lanes::Lane& lane : track.lanes) lanes.push_back(put(lane, counts));
            rows.push_back({{"group", row.group},
                            {"kind", kind_of(track.kind)},
                            {"label", all_.shown_(track.label)},
                            {"lanes", std::move(lanes)}});
        }
        append_block(data_.bytes, schema::dump_json(head(std::move(rows))));
        for (const NumberColumn* column : {&gap_, &length_, &look_, &events_, &busy_})
            data_.bytes += column->bytes();
        return std::move(data_);
    }

  private:
    std::size_t put(const lanes::Lane& lane, bool counts) {
        std::size_t items = 0;
        std::int64_t end = all_.base_;
        fold_events(lane, shorter_, all_.rows_.time, [&](const TimelineItem& item) {
            ++items;
            const std::int64_t start = lane.start(item.first);
            gap_.add(static_cast<std::uint64_t>(start - end));
            end = lane.end(item.last - 1);
            length_.add(static_cast<std::uint64_t>(end - start));
            if (item.events() == 1) {
                look_.add(lanes::kKindPaints + look(lane.event(item.first), lane.paint(item.first)));
            } else {
                look_.add(lane.dominant(item.first, item.last));
                events_.add(item.events());
                busy_.add(static_cast<std::uint64_t>(lane.busy(item.first, item.last)));
                if (!counts) return;
                data_.folded += static_cast<std::int64_t>(item.events());
                ++data_.folds;
            }
        });
        return items;
    }

    std::size_t look(store::EventRef event, lanes::Paint paint) {
        const store::Trace& trace = all_.trace_;
        Look look{.name = name_of(trace, event),
                  .paint = paint,
                  .module = all_.modules_.of(event),
                  .unit = all_.units_.of(event)};
        if (event.kind == store::EventKind::device) {
            const auto i = static_cast<std::size_t>(event.index);
            const std::int32_t collective = trace.device.collective[i];
            look.bytes = trace.device.bytes[i];
            if (collective >= 0 && static_cast<std::size_t>(collective) < trace.collectives.size())
                look.operation =
                    static_cast<int>(trace.collectives.operation[static_cast<std::size_t>(collective)]);
        }
        const auto [it, is_new] = number_.try_emplace(look, looks_.size());
        if (is_new) looks_.push_back(look);
        return it->second;
    }

    Json head(Json rows) {
        const TimelineRows& all = all_.rows_;
        Texts names, modules, units;
        Json look = Json{{"name", Json::array()}, {"paint", Json::array()},     {"module", Json::array()},
                         {"unit", Json::array()}, {"operation", Json::array()}, {"bytes", Json::array()}};
        for (const Look& one : looks_) {
            look["name"].push_back(names(static_cast<int>(one.name)));
            look["paint"].push_back(one.paint);
            look["module"].push_back(modules(one.module));
            look["unit"].push_back(units(one.unit));
            look["operation"].push_back(one.operation);
            look["bytes"].push_back(one.bytes);
        }
        for (const std::size_t name : all_.frequent_) names(static_cast<int>(name));
        Json texts = Json::array(), counts = Json::array(), module_names = Json::array(),
             unit_names = Json::array(), operations = Json::array(), paints = Json::array(),
             colors = Json::array();
        for (const int name : names.used()) {
            texts.push_back(shown(text_of_name(all_.trace_, static_cast<std::size_t>(name))));
            counts.push_back(all_.events_of_name_[static_cast<std::size_t>(name)]);
        }
        for (const int module : modules.used()) module_names.push_back(shown(all_.modules_.name(module)));
        for (const int unit : units.used()) unit_names.push_back(shown(all_.units_.name(unit)));
        for (int operation = 0; operation < schema::kOperations; ++operation)
            operations.push_back(std::string(schema::name(static_cast<schema::Operation>(operation))));
        for (int paint = 0; paint < lanes::kKindPaints; ++paint) {
            paints.push_back(std::string(lanes::paint_name(static_cast<lanes::Paint>(paint))));
            colors.push_back(kTimelineColors[static_cast<std::size_t>(paint)]);
        }
        Json curves = Json::array();
        for (const TimelineCurve& curve : all.curves) {
            Json one{{"group", curve.group},
                     {"label", shown(curve.label)},
                     {"unit", curve.unit},
                     {"bytes", curve.is_bytes},
                     {"counter", curve.is_counter}};
            one.update(curve_json(curve, all.time, shorter_));
            curves.push_back(std::move(one));
        }
        return Json{{"from", all.time.start},
                    {"to", all.time.end},
                    {"base", all_.base_},
                    {"shorter", shorter_},
                    {"paints", std::move(paints)},
                    {"colors", std::move(colors)},
                    {"names", std::move(texts)},
                    {"counts", std::move(counts)},
                    {"modules", std::move(module_names)},
                    {"units", std::move(unit_names)},
                    {"operations", std::move(operations)},
                    {"looks", std::move(look)},
                    {"groups", groups()},
                    {"rows", std::move(rows)},
                    {"curves", std::move(curves)}};
    }

    Json groups() {
        Json groups = Json::array();
        for (const TimelineGroup& group : all_.rows_.groups) {
            Json number = Json::array(), start = Json::array(), end = Json::array();
            for (const store::Step& step : all_.trace_.steps) {
                if (!group.rank.known() || step.rank != group.rank || step.end <= all_.rows_.time.start ||
                    step.start >= all_.rows_.time.end)
                    continue;
                number.push_back(step.number);
                start.push_back(step.start);
                end.push_back(step.end);
            }
            Json one{{"label", shown(group.label)}, {"note", shown(group.note)}};
            if (group.rank.known()) one["rank"] = all_.trace_.ranks[group.rank.at()].number;
            one["steps"] = Json{{"number", number}, {"start", start}, {"end", end}};
            groups.push_back(std::move(one));
        }
        return groups;
    }

    std::string shown(std::string_view text) { return shortened(all_.shown_(text), kLongestName); }

    const TimelineEncoder& all_;
    std::int64_t shorter_;
    TimelineData data_;
    NumberColumn gap_, length_, look_, events_, busy_;
    std::unordered_map<Look, std::size_t, LookHash> number_;
    std::vector<Look> looks_;
};

TimelineEncoder::TimelineEncoder(const store::Trace& trace, const TimelineRows& rows,
                                 std::function<std::string(std::string_view)> shown)
    : trace_(trace),
      rows_(rows),
      shown_(std::move(shown)),
      modules_(trace, analysis::GroupBy::module),
      units_(trace, analysis::GroupBy::unit),
      events_of_name_(trace.strings.size() + kWaitNames),
      base_(rows.time.start) {
    for (const TimelineTrack& row : rows.rows) {
        const lanes::Track& track = rows.tracks.tracks[row.track];
        for (const lanes::Lane& lane : track.lanes) {
            fold_events(lane, 0, rows.time, [&](const TimelineItem& item) {
                base_ = std::min(base_, lane.start(item.first));
                if (track.kind == lanes::Track::Kind::collectives) return;
                ++events_;
                ++events_of_name_[name_of(trace, lane.event(item.first))];
            });
        }
    }
    frequent_.resize(events_of_name_.size());
    std::iota(frequent_.begin(), frequent_.end(), std::size_t{0});
    std::erase_if(frequent_, [&](std::size_t name) { return events_of_name_[name] == 0; });
    std::stable_sort(frequent_.begin(), frequent_.end(),
                     [&](std::size_t a, std::size_t b) { return events_of_name_[a] > events_of_name_[b]; });
    if (frequent_.size() > kFrequentNames) frequent_.resize(kFrequentNames);
}

std::size_t TimelineEncoder::items(std::int64_t shorter, std::size_t most) const {
    std::size_t items = 0;
    for (const TimelineTrack& row : rows_.rows) {
        for (const lanes::Lane& lane : rows_.tracks.tracks[row.track].lanes) {
            if (items > most) return items;
            fold_events(lane, shorter, rows_.time, [&](const TimelineItem&) { ++items; });
        }
    }
    return items;
}

TimelineData TimelineEncoder::encode(std::int64_t shorter) const {
    return Encoding(*this, shorter).take();
}

}  // namespace shardscope::traces::report
