// Finds events whose name or bar label contains a text, ignoring case, and that pass filters by kind, rank,
// duration, unit and module (find_query.h). Each name is searched once, then events by their names' numbers;
// ten million events take a fraction of a second. Pure; any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/step_windows.h"
#include "traces/store/columns/event_columns.h"
#include "viewer/model/latest_work.h"
#include "viewer/model/session.h"
#include "viewer/tables/table_model.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {

struct FoundEvents : traces::store::EventList {
    std::string wrong;  // one sentence if a filter cannot be read or names nothing of the trace; else empty
};

// Searches for a text with filters (parse_find): device events, host ranges, runtime calls, marks and, if
// there is no text, waiting. Stops early, with the matches so far, once `cancel` is set.
FoundEvents find_text(const traces::store::Trace& trace, std::string_view text,
                      const std::atomic<bool>& cancel);

// By the string's number: whether it contains `text`.
std::vector<bool> strings_with(const traces::store::StringTable& strings, std::string_view text,
                               const std::atomic<bool>& cancel);

// "" for an event without a name.
std::string_view name_of(const traces::store::Trace& trace, model::SelectedEvent event);

// The nearest event after (or before) this one with the same name, on the same rank; nullopt: there is none.
std::optional<model::SelectedEvent> same_name(const traces::store::Trace& trace, model::SelectedEvent event,
                                              bool forwards);

// --- A search in the background: a thread searches for the latest text, and the search for an earlier one is
// cancelled. Frame thread only (the worker is inside); no Dear ImGui.

class Finder {
  public:
    // Called every frame: the matches of this text in this trace; nullptr while the search runs and if the
    // text is empty.
    std::shared_ptr<const FoundEvents> of(const model::TracePtr& trace, const std::string& text);
    // The same for the trace that is to replace it.
    std::shared_ptr<const FoundEvents> ahead(const model::TracePtr& successor, const std::string& text);
    bool busy() const { return work_.busy(); }
    // Cancels the search in this trace and drops its matches; false: the search was in another trace.
    bool forget(const traces::store::Trace& trace) { return work_.forget(trace); }

  private:
    model::LatestWork<FoundEvents> work_;
};

// --- Found events as a table: rows are made on demand, so that millions of matches cost nothing until they
// are shown. No Dear ImGui; any thread.

class MatchTable final : public tables::LazyTable {
  public:
    // `tracks` name the rows, `steps` the steps; nullptr: the table has no such column.
    MatchTable(model::TracePtr trace, std::shared_ptr<const FoundEvents> found,
               std::shared_ptr<const Tracks> tracks = {},
               std::shared_ptr<const traces::analysis::TraceSteps> steps = {});
    model::SelectedEvent event(std::size_t row) const { return found_->event(row); }

  private:
    double step_of(model::SelectedEvent event) const;
    model::TracePtr trace_;
    std::shared_ptr<const FoundEvents> found_;
    std::shared_ptr<const Tracks> tracks_;
    std::shared_ptr<const traces::analysis::TraceSteps> steps_;
};

}  // namespace shardscope::viewer::timeline
