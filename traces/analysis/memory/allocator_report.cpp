#include "traces/analysis/memory/allocator_report.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/allocator_history.h"
#include "traces/analysis/memory/allocator_replay.h"
#include "traces/analysis/memory/memory_curves.h"
#include "traces/analysis/memory/peak_search.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

// What people try first when memory is cached but does not fit.
constexpr std::string_view kCommonChoices[] = {"expandable_segments:True",
                                               "max_split_size_mb:128",
                                               "max_split_size_mb:512",
                                               "roundup_power2_divisions:8",
                                               "garbage_collection_threshold:0.8",
                                               "empty_cache:True"};

constexpr std::string_view kRecorded = "recorded", kReplayed = "replayed";

struct NamedSettings {
    std::string name;
    AllocatorSettings settings;
};

std::vector<NamedSettings> what_ifs(const AllocatorChoices& choices, const AllocatorSettings& recorded) {
    std::vector<NamedSettings> all;
    for (const std::string& text : choices.settings) all.push_back({text, parse_allocator_settings(text)});
    if (!all.empty()) return all;
    if (recorded != AllocatorSettings()) all.push_back({"defaults", {}});
    for (const std::string_view text : kCommonChoices) {
        const AllocatorSettings settings = parse_allocator_settings(text);
        if (settings != recorded) all.push_back({std::string(text), settings});
    }
    return all;
}

class RankReport {
  public:
    RankReport(const store::Trace& trace, store::RankIndex rank, const std::vector<std::uint32_t>& rows,
               const IntervalSet* selected, const AllocatorChoices& choices)
        : trace_(trace),
          rank_(rank),
          selected_(selected),
          choices_(choices),
          history_(allocator_history(trace, rank, rows)) {
        if (choices.limit > 0) set_limit(choices.limit);
    }

    RankAllocator make() {
        result_.rank = trace_.ranks[rank_.at()].number;
        result_.settings = to_text(history_.settings);
        result_.limit = history_.limit;
        result_.assumptions = history_.assumptions;
        if (!history_.limit_reason.empty()) result_.assumptions.push_back(history_.limit_reason);
        const auto& events = history_.events;
        result_.requests = std::count_if(events.begin(), events.end(), [](const AllocatorEvent& e) {
            return e.kind == AllocatorEvent::Kind::allocate;
        });
        if (result_.requests == 0) return std::move(result_);
        const AllocatorReplay replay =
            replay_allocator(history_, history_.settings, history_.limit, selected_);
        add_recorded();
        add(std::string(kReplayed), replay);
        if (history_.has_segments) check(replay);
        for (const NamedSettings& choice : what_ifs(choices_, history_.settings)) try_settings(choice);
        // The first failures come first with all settings: tables show only so many rows.
        std::stable_sort(result_.failures.begin(), result_.failures.end(),
                         [](const FailedRequest& a, const FailedRequest& b) { return a.time < b.time; });
        add_accounts(replay);
        return std::move(result_);
    }

  private:
    void set_limit(std::int64_t limit) {
        history_.limit = limit;
        history_.limit_reason.clear();
        for (AllocatorEvent& event : history_.events) {
            if (event.kind == AllocatorEvent::Kind::fail) event.limit = limit;
        }
    }

    bool selects(std::int64_t time) const {
        return selected_ == nullptr ||
               std::any_of(selected_->begin(), selected_->end(),
                           [&](const Interval& i) { return time >= i.start && time < i.end; });
    }

    // Segments or, without them, the recorder's counter.
    void add_recorded() {
        ReservedRow row{.settings = std::string(kRecorded)};
        const CounterCurve curve(trace_, rank_, kReservedCounter);
        if (!curve.empty()) {
            CounterCurve::Extreme most{-1, 0};
            const Interval whole{0, std::numeric_limits<std::int64_t>::max()};
            for (const Interval& interval : selected_ != nullptr ? *selected_ : IntervalSet{whole}) {
                const CounterCurve::Extreme here = curve.most(interval);
                if (here.value > most.value) most = here;
            }
            if (most.value >= 0) {
                row.reserved = counter_bytes(most.value);
                row.time = most.time;
            }
        }
        if (!row.reserved) row.note = "reserved memory was not recorded";
        result_.reserved.push_back(std::move(row));
    }

    void add(const std::string& name, const AllocatorReplay& replay) {
        const AllocatorState& peak = replay.peak;
        ReservedRow row{.settings = name};
        row.reserved = peak.reserved;
        row.time = replay.peak_time;
        row.allocated = peak.allocated;
        row.cached = peak.cached();
        row.largest_free = peak.largest_free;
        row.free_blocks = peak.free_blocks;
        row.segments = peak.segments;
        if (peak.cached() > 0) {
            row.fragmentation =
                100.0 * (1.0 - static_cast<double>(peak.largest_free) / static_cast<double>(peak.cached()));
        }
        row.retries = replay.retries;
        row.failed = replay.failed;
        if (name != kReplayed) row.difference = peak.reserved - *result_.reserved[1].reserved;
        result_.reserved.push_back(std::move(row));
        add_failures(name, replay);
    }

    void add_failures(const std::string& name, const AllocatorReplay& replay) {
        auto outcome = replay.failures.begin();
        for (const AllocatorEvent& event : history_.events) {
            if (event.kind != AllocatorEvent::Kind::fail) continue;
            const auto& found = *outcome++;
            if (!selects(event.time)) continue;
            FailedRequest request{.time = event.time, .bytes = event.bytes, .settings = name};
            if (found) {
                request.fits = found->fits;
                request.left = found->left;
                request.reserved = found->state.reserved;
                request.cached = found->state.cached();
                request.largest_free = found->state.largest_free;
            }
            result_.failures.push_back(std::move(request));
        }
    }

    void try_settings(const NamedSettings& choice) {
        ReservedRow row{.settings = choice.name};
        const bool collects = choice.settings.garbage_collection > 0;
        std::int64_t limit = history_.limit;
        if (collects && limit == 0) limit = trace_.ranks[rank_.at()].device_memory;
        if (collects && limit <= 0) {
            row.note = "the threshold is a share of the device's memory, which is unknown: use --limit MiB";
        } else if (choice.settings.empty_cache && trace_.steps.empty()) {
            row.note = "the trace has no steps at whose end the cache could be emptied";
        } else {
            add(choice.name, replay_allocator(history_, choice.settings, limit, selected_));
            return;
        }
        result_.reserved.push_back(std::move(row));
    }

    void check(const AllocatorReplay& replay) {
        SegmentCheck check;
        check.recorded_peak = history_.reserved_peak;
        std::int64_t reserved = 0;
        for (const InitialSegment& segment : history_.initial) {
            for (const AllocatorPiece& piece : segment.pieces)
                reserved += piece.state != AllocatorPiece::State::unmapped ? piece.bytes : 0;
        }
        check.replayed_peak = reserved;
        for (const TimedChange& c : replay.changes)
            check.replayed_peak = std::max(check.replayed_peak, reserved += c.change.bytes);
        std::set<std::pair<std::uint64_t, std::int64_t>> recorded;
        for (const SegmentChange& segment : history_.last_segments)
            recorded.emplace(segment.address, segment.bytes);
        for (const ReservedSegment& segment : replay.segments)
            check.equal_segments +=
                static_cast<std::int64_t>(recorded.count({segment.address, segment.bytes}));
        check.recorded_segments = static_cast<std::int64_t>(history_.last_segments.size());
        check.replayed_segments = static_cast<std::int64_t>(replay.segments.size());
        check.allocations = replay.allocations;
        check.at_recorded_address = replay.at_recorded_address;
        compare_changes(replay, check);
        result_.check = std::move(check);
    }

    static std::string in_words(const TimedChange& c) {
        return fmt::format("{} {} bytes for stream {} at {} ms", c.change.bytes > 0 ? "took" : "returned",
                           store::grouped(std::abs(c.change.bytes)), c.change.stream,
                           store::grouped(static_cast<double>(c.time) * 1e-6, 3));
    }

    // The order in which cached segments are returned is that of their sizes in the allocator's lists; only
    // the sizes of a series of returns are compared.
    void compare_changes(const AllocatorReplay& replay, SegmentCheck& check) const {
        std::vector<TimedChange> recorded, replayed = replay.changes;
        for (const AllocatorEvent& e : history_.events) {
            if (e.kind == AllocatorEvent::Kind::segment)
                recorded.push_back({e.time, {e.address, e.bytes, std::max(e.stream, 0)}});
        }
        for (std::vector<TimedChange>* list : {&recorded, &replayed}) sort_returns(*list);
        check.recorded_changes = static_cast<std::int64_t>(recorded.size());
        const auto same = [](const TimedChange& a, const TimedChange& b) {
            return a.change.bytes == b.change.bytes && a.change.stream == b.change.stream;
        };
        const auto [a, b] =
            std::mismatch(recorded.begin(), recorded.end(), replayed.begin(), replayed.end(), same);
        check.equal_changes = a - recorded.begin();
        if (a == recorded.end() && b == replayed.end()) return;
        check.difference = fmt::format("The first difference: the recording {}; the replay {}.",
                                       a != recorded.end() ? in_words(*a) : "took and returned nothing more",
                                       b != replayed.end() ? in_words(*b) : "took and returned nothing more");
    }

    static void sort_returns(std::vector<TimedChange>& changes) {
        const auto returns = [](const TimedChange& c) { return c.change.bytes < 0; };
        for (auto from = changes.begin(); from != changes.end();) {
            const auto first = std::find_if(from, changes.end(), returns);
            const auto last = std::find_if_not(first, changes.end(), returns);
            std::stable_sort(first, last, [](const TimedChange& x, const TimedChange& y) {
                return std::pair(x.change.stream, x.change.bytes) <
                       std::pair(y.change.stream, y.change.bytes);
            });
            from = last;
        }
    }

    void add_accounts(const AllocatorReplay& replay) {
        const ReservedRow& recorded = result_.reserved[0];
        const ReservedRow& replayed = result_.reserved[1];
        // The allocator's own numbers if it is PyTorch's, else the recorder's counters.
        if (history_.has_segments) {
            DeviceAccount account =
                device_account(trace_, rank_, "peak of reserved", replayed.time.value_or(0));
            account.allocated = replayed.allocated;
            account.cached = replayed.cached;
            account.close();
            result_.account.push_back(std::move(account));
        } else if (recorded.reserved && *recorded.reserved > 0) {
            DeviceAccount account =
                device_account(trace_, rank_, "peak of reserved", recorded.time.value_or(0));
            const ByteCurve live = allocated_curve(trace_, rank_);
            const auto after = std::upper_bound(live.time.begin(), live.time.end(), account.time);
            account.allocated =
                after == live.time.begin()
                    ? 0
                    : std::min(live.bytes[static_cast<std::size_t>(after - live.time.begin()) - 1],
                               *recorded.reserved);
            account.cached = *recorded.reserved - *account.allocated;
            account.close();
            result_.account.push_back(std::move(account));
        }
        add_accounts_of_failures(replay);
    }

    void add_accounts_of_failures(const AllocatorReplay& replay) {
        constexpr std::size_t kMostShown = 10;
        auto outcome = replay.failures.begin();
        std::size_t shown = 0;
        for (const AllocatorEvent& event : history_.events) {
            if (event.kind != AllocatorEvent::Kind::fail) continue;
            const auto& found = *outcome++;
            if (!found || !selects(event.time)) continue;
            if (shown++ == kMostShown) break;
            DeviceAccount account =
                device_account(trace_, rank_,
                               fmt::format("failed: {} MiB",
                                           store::grouped(static_cast<double>(event.bytes) / (1 << 20), 2)),
                               event.time);
            account.allocated = found->state.allocated;
            account.cached = found->state.cached();
            if (choices_.limit == 0) {  // a given limit is not the device's
                account.free = std::max<std::int64_t>(event.limit - found->state.reserved, 0);
                if (account.total) account.used = *account.total - *account.free;
            }
            account.close();
            result_.account.push_back(std::move(account));
        }
    }

    const store::Trace& trace_;
    store::RankIndex rank_;
    const IntervalSet* selected_;
    const AllocatorChoices& choices_;
    AllocatorHistory history_;
    RankAllocator result_;
};

}  // namespace

AllocatorReport allocator_report(const store::Trace& trace, const Selection& selection,
                                 const AllocatorChoices& choices) {
    const TraceSteps steps = find_steps(trace);
    const auto rows = rows_by_rank(trace, schema::MemorySpace::device, steps, {});
    AllocatorReport report;
    for (const store::RankIndex rank : selected_ranks(trace, selection)) {
        const IntervalSet selected = selected_host_time(steps.ranks[rank.at()], selection);
        const bool whole = selects_whole_time(selection);
        report.ranks.push_back(
            RankReport(trace, rank, rows[rank.at()], whole ? nullptr : &selected, choices).make());
    }
    return report;
}

Fields<ReservedRow> reserved_fields() {
    using R = ReservedRow;
    static constexpr Field<R> kFields[] = {
        {{"settings", "Settings", Unit::text, "recorded, replayed with the recorded settings, or a what-if."},
         value_of<&R::settings>},
        {{"reserved_bytes", "Reserved", Unit::bytes, "The most that is reserved in the selected time."},
         value_of<&R::reserved>},
        {{.key = "difference_bytes",
          .title = "Difference",
          .unit = Unit::bytes,
          .meaning = "To the replay with the recorded settings.",
          .difference = true},
         value_of<&R::difference>},
        {{"time_ns", "At", Unit::ns, "When that much was reserved first."}, value_of<&R::time>},
        {{"segments", "Segments", Unit::count, "Number of segments then."}, value_of<&R::segments>},
        {{"allocated_bytes", "Allocated", Unit::bytes, "In blocks that the program had then."},
         value_of<&R::allocated>},
        {{"cached_bytes", "Cached", Unit::bytes, "Reserved then, in no such block."}, value_of<&R::cached>},
        {{"largest_free_bytes", "Largest free", Unit::bytes, "The largest cached block then."},
         value_of<&R::largest_free>},
        {{"free_blocks", "Free blocks", Unit::count, "Number of cached blocks then.", in_programs},
         value_of<&R::free_blocks>},
        {{"fragmentation_percent", "Fragmented", Unit::percent, "100 (1 - largest / cached)."},
         value_of<&R::fragmentation>},
        {{.key = "retries",
          .title = "Cache released",
          .unit = Unit::count,
          .meaning =
              "How often all cached blocks were released because the device had too little memory left.",
          .where_known = true},
         value_of<&R::retries>},
        {{.key = "failed",
          .title = "New failures",
          .unit = Unit::count,
          .meaning = "Requests that succeeded in the recording and fail here.",
          .where_known = true},
         value_of<&R::failed>},
        {{.key = "note",
          .title = "Note",
          .unit = Unit::text,
          .meaning = "Why there is no result.",
          .shown = in_programs},
         value_of<&R::note>},
    };
    return kFields;
}

Fields<FailedRequest> failed_request_fields() {
    using F = FailedRequest;
    static constexpr Field<F> kFields[] = {
        {{"time_ns", "At", Unit::ns, "When the request failed."}, value_of<&F::time>},
        {{"bytes", "Requested", Unit::bytes, "Its size."}, value_of<&F::bytes>},
        {{"settings", "Settings", Unit::text, "replayed with the recorded settings, or a what-if."},
         value_of<&F::settings>},
        {{"fits", "Would have fitted", Unit::text, "Whether it fits with these settings."},
         value_of<&F::fits>},
        {{.key = "left_bytes",
          .title = "Left",
          .unit = Unit::bytes,
          .meaning = "What the device has left after it; negative: what is missing."},
         value_of<&F::left>},
        {{"reserved_bytes", "Reserved before", Unit::bytes, "What was reserved before it."},
         value_of<&F::reserved>},
        {{"cached_bytes", "Cached before", Unit::bytes, "What was cached before it."}, value_of<&F::cached>},
        {{"largest_free_bytes", "Largest free", Unit::bytes, "The largest cached block before it."},
         value_of<&F::largest_free>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
