// See find_text.h.
#include "viewer/timeline/find_text.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/area/event_groups.h"
#include "traces/schema/text.h"
#include "traces/store/columns/event_columns.h"
#include "viewer/draw/format.h"
#include "viewer/timeline/details.h"
#include "viewer/timeline/find_query.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {
namespace {

using traces::schema::StringId;
using traces::store::Trace;

constexpr std::size_t kLookUp = 4096;  // strings or events between checks of `cancel`

// The number of events of a kind that has names; 0 for others.
std::size_t size_of(const Trace& trace, model::EventKind kind) {
    return with_columns(trace, kind, [](const auto& events) -> std::size_t {
        return requires {
            events.name;
        }
        ? events.size() : 0;
    });
}

constexpr std::array kSearched = {model::EventKind::device, model::EventKind::range,
                                  model::EventKind::runtime, model::EventKind::mark, model::EventKind::wait};

// One filter by group: whether an event belongs to a group whose name contains one of the texts.
class GroupFilter {
  public:
    // `what`: "unit", for the sentence about a text that no group's name contains.
    GroupFilter(const Trace& trace, traces::analysis::GroupBy by, const std::vector<std::string>& texts,
                std::string_view what, std::string& wrong)
        : groups_(trace, by), passes_(groups_.size()) {
        for (const std::string& text : texts) {
            bool any = false;
            for (std::size_t g = 0; g < groups_.size(); ++g) {
                if (!traces::schema::contains_but_for_case(groups_.name(static_cast<int>(g)), text)) continue;
                passes_[g] = any = true;
            }
            if (!any) wrong = fmt::format("No {} of this trace is called {}.", what, text);
        }
    }
    bool passes(model::SelectedEvent event) const {
        const int group = groups_.of(event);
        return group >= 0 && passes_[static_cast<std::size_t>(group)];
    }

  private:
    traces::analysis::EventGroups groups_;
    std::vector<bool> passes_;
};

// All filters of a query, the cheap ones first.
class Filters {
  public:
    Filters(const Trace& trace, const FindQuery& query, std::string& wrong)
        : trace_(trace), query_(query), ranks_(trace.ranks.size(), query.ranks.empty()) {
        using traces::analysis::GroupBy;
        for (const int number : query.ranks) {
            const traces::store::RankIndex rank = trace.rank_of_number(number);
            if (!rank.known()) {
                wrong = fmt::format("This trace has no rank {}.", number);
            } else {
                ranks_[rank.at()] = true;
            }
        }
        if (!query.kinds.empty())
            groups_.emplace_back(trace, GroupBy::kind, query.kinds, "kind of event", wrong);
        if (!query.modules.empty())
            groups_.emplace_back(trace, GroupBy::module, query.modules, "module", wrong);
        if (!query.units.empty()) groups_.emplace_back(trace, GroupBy::unit, query.units, "unit", wrong);
    }
    bool pass(model::SelectedEvent event) const {
        const EventTime time = time_of(trace_, event);
        const std::int64_t duration = time.end - time.start;
        if (duration < query_.shortest || duration > query_.longest) return false;
        if (!query_.ranks.empty()) {
            const traces::store::RankIndex rank = rank_of(trace_, event);
            if (rank.at() >= ranks_.size() || !ranks_[rank.at()]) return false;
        }
        return std::all_of(groups_.begin(), groups_.end(),
                           [&](const GroupFilter& filter) { return filter.passes(event); });
    }

  private:
    const Trace& trace_;
    const FindQuery& query_;
    std::vector<bool> ranks_;
    std::deque<GroupFilter> groups_;
};

}  // namespace

std::vector<bool> strings_with(const traces::store::StringTable& strings, std::string_view text,
                               const std::atomic<bool>& cancel) {
    std::vector<bool> found(strings.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (i % kLookUp == 0 && cancel) break;
        found[i] = traces::schema::contains_but_for_case(strings[static_cast<StringId>(i)], text);
    }
    return found;
}

FoundEvents find_text(const Trace& trace, std::string_view text, const std::atomic<bool>& cancel) {
    FoundEvents found;
    const FindQuery query = parse_find(text);
    found.wrong = query.wrong;
    if (!found.wrong.empty() || (query.text.empty() && !query.has_filters())) return found;
    const Filters filters(trace, query, found.wrong);
    if (!found.wrong.empty()) return found;
    const std::vector<bool> named = strings_with(trace.strings, query.text, cancel);
    const auto matches = [&](model::EventKind kind, std::size_t i) {
        if (query.text.empty()) return true;
        if (named[static_cast<std::size_t>(name_id_of(trace, {kind, static_cast<std::int64_t>(i)}))])
            return true;
        // A collective's bar shows its operation and its unit: "all_gather net.0".
        return kind == model::EventKind::device && trace.device.collective[i] >= 0 &&
               traces::schema::contains_but_for_case(bar_label(trace, {kind, static_cast<std::int64_t>(i)}),
                                                     query.text);
    };
    for (const model::EventKind kind : kSearched) {
        const std::size_t before = found.size();
        // Waiting has no name to search for.
        const std::size_t size = kind == model::EventKind::wait
                                     ? (query.text.empty() ? trace.synchronizations.size() : 0)
                                     : size_of(trace, kind);
        const std::size_t n = std::min(size, FoundEvents::kMostOfKind);
        for (std::size_t i = 0; i < n; ++i) {
            if (i % kLookUp == 0 && cancel) return found;
            const model::SelectedEvent event{kind, static_cast<std::int64_t>(i)};
            if (matches(kind, i) && (!query.has_filters() || filters.pass(event))) found.add(event);
        }
        found.merge_from(trace, before);
    }
    return found;
}

std::string_view name_of(const Trace& trace, model::SelectedEvent event) {
    if (event.index < 0 || static_cast<std::size_t>(event.index) >= size_of(trace, event.kind)) return {};
    return trace.strings[name_id_of(trace, event)];
}

std::optional<model::SelectedEvent> same_name(const Trace& trace, model::SelectedEvent event, bool forwards) {
    const auto n = static_cast<std::int64_t>(size_of(trace, event.kind));
    if (event.index < 0 || event.index >= n) return std::nullopt;
    const StringId name = name_id_of(trace, event);
    const traces::store::RankIndex rank = rank_of(trace, event);
    for (model::SelectedEvent next = event;;) {
        next.index += forwards ? 1 : -1;
        if (next.index < 0 || next.index >= n) return std::nullopt;
        if (name_id_of(trace, next) == name && rank_of(trace, next) == rank) return next;
    }
}

std::shared_ptr<const FoundEvents> Finder::of(const model::TracePtr& trace, const std::string& text) {
    if (text.empty()) {  // no search runs in the trace
        work_.drop();
        return nullptr;
    }
    return work_.of(trace, text, [text](const Trace& in, const std::atomic<bool>& cancel) {
        return find_text(in, text, cancel);
    });
}

std::shared_ptr<const FoundEvents> Finder::ahead(const model::TracePtr& successor, const std::string& text) {
    return work_.ahead(successor, text, [text](const Trace& in, const std::atomic<bool>& cancel) {
        return find_text(in, text, cancel);
    });
}

MatchTable::MatchTable(model::TracePtr trace, std::shared_ptr<const FoundEvents> found,
                       std::shared_ptr<const Tracks> tracks,
                       std::shared_ptr<const traces::analysis::TraceSteps> steps)
    : tables::LazyTable(found->size()),
      trace_(std::move(trace)),
      found_(std::move(found)),
      tracks_(std::move(tracks)),
      steps_(std::move(steps)) {
    tables::TableColumn name = tables::text_column("name", "Event", 0);
    name.least = 7;
    cells_.add(std::move(name), [this](std::size_t row) { return bar_label(*trace_, event(row)); });
    cells_.add(tables::number_column("rank", "Rank", "", 2.8F, 7), 0, [this](std::size_t row) {
        const traces::store::RankIndex rank = rank_of(*trace_, event(row));
        if (rank.at() >= trace_->ranks.size()) return tables::kNoNumber;
        return static_cast<double>(trace_->ranks[rank.at()].number);
    });
    cells_.add(tables::number_column("start_ms", "Start", "ms", 5.6F, 8), 3, [this](std::size_t row) {
        return static_cast<double>(time_of(*trace_, event(row)).start) / 1e6;
    });
    cells_.add(tables::number_column("duration_us", "Duration", tables::kMicro, 5.4F, 9), 3,
               [this](std::size_t row) {
                   const EventTime time = time_of(*trace_, event(row));
                   return static_cast<double>(time.end - time.start) / 1e3;
               });
    if (steps_ != nullptr && !trace_->steps.empty()) {
        cells_.add(tables::number_column(
                       "step", "Step", "", 2.8F, 6, 0,
                       "The step in which it was launched; of a host event that in which it begins."),
                   0, [this](std::size_t row) { return step_of(event(row)); });
    }
    if (tracks_ != nullptr) {
        cells_.add(tables::text_column("row", "Row", 5.0F, 5), [this](std::size_t row) {
            const auto place = find_event(*trace_, *tracks_, event(row));
            return place ? tracks_->tracks[static_cast<std::size_t>(place->track)].label : std::string("-");
        });
    }
}

double MatchTable::step_of(model::SelectedEvent event) const {
    const traces::store::RankIndex rank = rank_of(*trace_, event);
    if (rank.at() >= steps_->ranks.size()) return tables::kNoNumber;
    const traces::analysis::RankSteps& steps = steps_->ranks[rank.at()];
    const int at = event.kind == model::EventKind::device
                       ? steps_->event[static_cast<std::size_t>(event.index)]
                       : steps.step_at(time_of(*trace_, event).start);
    return at < 0 ? tables::kNoNumber : static_cast<double>(steps.steps[static_cast<std::size_t>(at)].number);
}

}  // namespace shardscope::viewer::timeline
