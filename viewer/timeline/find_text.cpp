// See find_text.h.
#include "viewer/timeline/find_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <utility>

#include "traces/schema/text.h"
#include "traces/store/columns/event_columns.h"
#include "viewer/draw/format.h"
#include "viewer/timeline/details.h"
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
                                  model::EventKind::runtime, model::EventKind::mark};

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
    if (text.empty()) return found;
    const std::vector<bool> named = strings_with(trace.strings, text, cancel);
    const auto matches = [&](model::EventKind kind, std::size_t i) {
        if (named[static_cast<std::size_t>(name_id_of(trace, {kind, static_cast<std::int64_t>(i)}))])
            return true;
        // A collective's bar shows its operation and its unit: "all_gather net.0".
        return kind == model::EventKind::device && trace.device.collective[i] >= 0 &&
               traces::schema::contains_but_for_case(bar_label(trace, {kind, static_cast<std::int64_t>(i)}),
                                                     text);
    };
    for (const model::EventKind kind : kSearched) {
        const std::size_t before = found.size();
        const std::size_t n = std::min(size_of(trace, kind), FoundEvents::kMostOfKind);
        for (std::size_t i = 0; i < n; ++i) {
            if (i % kLookUp == 0 && cancel) return found;
            if (matches(kind, i)) found.add({kind, static_cast<std::int64_t>(i)});
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

void Finder::stop() {
    if (!next_.valid()) return;
    cancel_ = true;
    next_.wait();
    next_ = {};
    cancel_ = false;
}

std::shared_ptr<const FoundEvents> Finder::of(const model::TracePtr& trace, const std::string& text) {
    if (trace != trace_ || text != text_) {
        stop();
        trace_ = trace;
        text_ = text;
        found_.reset();
        if (text.empty()) {
            trace_.reset();  // no search runs in it
        } else {
            next_ = std::async(std::launch::async,
                               [this, trace, text] { return find_text(*trace, text, cancel_); });
        }
    }
    if (next_.valid() && next_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
        found_ = std::make_shared<const FoundEvents>(next_.get());
    return found_;
}

bool Finder::forget(const traces::store::Trace& trace) {
    if (trace_.get() != &trace) return false;
    stop();
    trace_.reset();
    text_.clear();
    found_.reset();
    return true;
}

MatchTable::MatchTable(model::TracePtr trace, std::shared_ptr<const FoundEvents> found)
    : tables::LazyTable(found->size()), trace_(std::move(trace)), found_(std::move(found)) {
    cells_.add(tables::text_column("name", "Event", 8),
               [this](std::size_t row) { return bar_label(*trace_, event(row)); });
    cells_.add(tables::number_column("rank", "Rank", "", 3.5F, 5), 0, [this](std::size_t row) {
        const traces::store::RankIndex rank = rank_of(*trace_, event(row));
        if (rank.at() >= trace_->ranks.size()) return tables::kNoNumber;
        return static_cast<double>(trace_->ranks[rank.at()].number);
    });
    cells_.add(tables::number_column("start_ms", "Start", "ms", 6.5F, 8), 3, [this](std::size_t row) {
        return static_cast<double>(time_of(*trace_, event(row)).start) / 1e6;
    });
    cells_.add(tables::number_column("duration_us", "Duration", tables::kMicro, 6, 10), 3,
               [this](std::size_t row) {
                   const EventTime time = time_of(*trace_, event(row));
                   return static_cast<double>(time.end - time.start) / 1e3;
               });
}

}  // namespace shardscope::viewer::timeline
