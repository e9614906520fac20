// See launch_view.h.
#include "viewer/panels/work/launch_view.h"

#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/query/query_table.h"

namespace shardscope::viewer::panels {
namespace {

constexpr std::string_view kHint = "A double-click shows the longest on the timeline.";

}  // namespace

void LaunchView::draw_launches(model::Session& session) {
    if (!ready(session, launches)) return;
    const traces::store::RankIndex rank = session.rank;
    const auto model = launches_model_.of(launches_, fmt::format("{}", rank.value),
                                          [&] { return launch_table(*launches_, rank); });
    if (model->rows() == 0)
        return draw::note("The database contains no kernel of this rank in the current selection.");
    draw::note(kHint);
    const tables::TableEvents events =
        draw_table("kernels.launches", model, launches_state_, {.name = "launches"});
    if (!events.opened) return;
    const Launches& row = (*launches_)[rows_of(*launches_, rank)[*events.opened]];
    go_to(session, rank, row.longest_start, row.longest_ns);
}

void LaunchView::draw_copies(model::Session& session, const char* id, const char* name) {
    if (!ready(session, copies)) return;
    const traces::store::RankIndex rank = session.rank;
    const auto model =
        copies_model_.of(copies_, fmt::format("{}", rank.value), [&] { return copy_table(*copies_, rank); });
    if (model->rows() == 0) return draw::note("This rank copies nothing in the current selection.");
    draw::note(kHint);
    const tables::TableEvents events = draw_table(id, model, copies_state_, {.filter = false, .name = name});
    if (!events.opened) return;
    const Copies& row = (*copies_)[rows_of(*copies_, rank)[*events.opened]];
    go_to(session, rank, row.longest_start, row.longest_ns);
}

bool LaunchView::ready(model::Session& session, Part part) {
    const model::TracePtr trace = session.trace();
    const std::optional<model::TimeRange> limit = session.current()->limit;
    runner_.poll();
    if (!runner_.running() && pending_) take_answer();
    Asked& asked = asked_[part];
    if (asked.there && asked.of.lock() == trace && asked.limit == limit) {
        if (!asked.error.empty()) draw::note(asked.error);
        return asked.error.empty();
    }
    const TraceFiles files = session.current()->files();
    // Of a trace that has grown, the rows that were read before stay until the new ones are there.
    const bool any = part == launches ? launches_ != nullptr : copies_ != nullptr;
    const bool kept = any && asked.error.empty() && asked.files == files && asked.limit == limit &&
                      asked.ranks == trace->ranks.size();
    if (!runner_.running()) {
        if (!may_ask(session, files)) return false;
        LaunchRange range;
        if (limit) range = {limit->from, limit->to};
        asked = {trace, limit, files, trace->ranks.size(), false, {}};
        pending_ = part;
        runner_.run(files, part == launches ? launches_sql(range) : copies_sql(range), {});
    }
    session.note_work();
    if (kept) return true;
    draw::note("Querying the database ...");
    return false;
}

// A database is queried immediately; other traces must be imported first, when the user agrees.
bool LaunchView::may_ask(model::Session& session, const TraceFiles& files) {
    if (seen_.lock() != session.trace()) {
        seen_ = session.trace();
        database_ = files.size() == 1 && traces::query::is_database(files.front());
        if (std::exchange(seen_files_, files) != files) allowed_ = false;
    }
    if (database_ || allowed_) return true;
    draw::note(
        "Launch sizes and kinds of memory are not loaded, and the trace is not a database: they are queried "
        "after an import into a temporary one, which may take a while.");
    if (draw::named_button("Import and query", import_)) allowed_ = true;
    return allowed_;
}

void LaunchView::take_answer() {
    const Part part = *pending_;
    pending_.reset();
    Asked& asked = asked_[part];
    const model::TracePtr trace = asked.of.lock();
    const auto answer = runner_.answer();
    if (trace == nullptr || answer == nullptr) return;
    asked.there = true;
    asked.error = answer->error;
    if (!answer->error.empty() || answer->results.empty()) return;
    const traces::store::QueryResult& result = answer->results.front();
    if (part == launches) {
        launches_ = std::make_shared<const std::vector<Launches>>(launches_of(result, *trace));
    } else {
        copies_ = std::make_shared<const std::vector<Copies>>(copies_of(result, *trace));
    }
}

void LaunchView::go_to(model::Session& session, traces::store::RankIndex rank, std::int64_t start,
                       std::int64_t length) {
    const traces::store::Trace& trace = *session.trace();
    const RowPlace place{start, start + length, trace.ranks[rank.at()].number};
    const std::int64_t event = device_event_at(trace, place);
    session.go_to(
        {place.from, place.to}, rank,
        event >= 0 ? model::SelectedEvent{model::EventKind::device, event} : model::SelectedEvent{});
}

}  // namespace shardscope::viewer::panels
