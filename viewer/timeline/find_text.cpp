// See find_text.h.
#include "viewer/timeline/find_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "viewer/timeline/details.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer {
namespace {

using traces::StringId;
using traces::Trace;

constexpr std::size_t kLookUp = 4096;  // strings or events between checks of `cancel`

char lower_case(char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// The text to search for: its letters in lower case, and both cases of the first one.
class Needle {
  public:
    explicit Needle(std::string_view text) {
        for (const char c : text) lower_ += lower_case(c);
    }
    bool in(std::string_view hay) const {
        const auto same = [](char h, char n) { return lower_case(h) == n; };
        return std::search(hay.begin(), hay.end(), lower_.begin(), lower_.end(), same) != hay.end();
    }

  private:
    std::string lower_;
};

std::int64_t start_of(const Trace& trace, SelectedEvent event) {
    return time_of(trace, event).start;
}

std::size_t size_of(const Trace& trace, EventKind kind) {
    switch (kind) {
        case EventKind::device:
            return trace.device.size();
        case EventKind::range:
            return trace.ranges.size();
        case EventKind::runtime:
            return trace.runtime.size();
        case EventKind::mark:
            return trace.marks.size();
        default:
            return 0;
    }
}

StringId name_id(const Trace& trace, EventKind kind, std::size_t i) {
    switch (kind) {
        case EventKind::device:
            return trace.device.name[i];
        case EventKind::range:
            return trace.ranges.name[i];
        case EventKind::runtime:
            return trace.runtime.name[i];
        case EventKind::mark:
            return trace.marks.name[i];
        default:
            return StringId::empty;
    }
}

int rank_of(const Trace& trace, EventKind kind, std::size_t i) {
    const auto of_thread = [&](std::size_t thread) {
        return thread < trace.threads.size() ? trace.threads[thread].rank : -1;
    };
    switch (kind) {
        case EventKind::device:
            return trace.device.rank[i];
        case EventKind::range:
            return of_thread(trace.ranges.thread[i]);
        case EventKind::runtime:
            return of_thread(trace.runtime.thread[i]);
        case EventKind::mark:
            return of_thread(trace.marks.thread[i]);
        default:
            return -1;
    }
}

constexpr std::array kSearched = {EventKind::device, EventKind::range, EventKind::runtime, EventKind::mark};

}  // namespace

std::vector<bool> strings_with(const traces::StringTable& strings, std::string_view text,
                               const std::atomic<bool>& cancel) {
    const Needle needle(text);
    std::vector<bool> found(strings.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (i % kLookUp == 0 && cancel) break;
        found[i] = needle.in(strings[static_cast<StringId>(i)]);
    }
    return found;
}

FoundEvents find_text(const Trace& trace, std::string_view text, const std::atomic<bool>& cancel) {
    FoundEvents found;
    if (text.empty()) return found;
    const std::vector<bool> named = strings_with(trace.strings, text, cancel);
    const Needle needle(text);
    const auto matches = [&](EventKind kind, std::size_t i) {
        if (named[static_cast<std::size_t>(name_id(trace, kind, i))]) return true;
        // A collective's bar shows its operation and its unit: "all_gather net.0".
        return kind == EventKind::device && trace.device.collective[i] >= 0 &&
               needle.in(bar_label(trace, {kind, static_cast<std::int64_t>(i)}));
    };
    // Each kind is already sorted by start; the kinds are merged.
    std::vector<std::uint32_t>& all = found.events_;
    for (const EventKind kind : kSearched) {
        const auto middle = static_cast<std::ptrdiff_t>(all.size());
        const std::size_t n = std::min<std::size_t>(size_of(trace, kind), FoundEvents::kRowMask);
        for (std::size_t i = 0; i < n; ++i) {
            if (i % kLookUp == 0 && cancel) return found;
            if (matches(kind, i)) {
                all.push_back(static_cast<std::uint32_t>(kind) << FoundEvents::kKindShift |
                              static_cast<std::uint32_t>(i));
            }
        }
        const auto start = [&](std::uint32_t packed) {
            return start_of(trace, {static_cast<EventKind>(packed >> FoundEvents::kKindShift),
                                    static_cast<std::int64_t>(packed & FoundEvents::kRowMask)});
        };
        std::inplace_merge(all.begin(), all.begin() + middle, all.end(),
                           [&](std::uint32_t a, std::uint32_t b) { return start(a) < start(b); });
    }
    return found;
}

std::optional<std::size_t> FoundEvents::place_of(const Trace& trace, SelectedEvent wanted) const {
    if (wanted.kind == EventKind::none) return std::nullopt;
    const std::int64_t start = start_of(trace, wanted);
    std::size_t low = 0, high = size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (start_of(trace, event(middle)) < start) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < size() && start_of(trace, event(low)) == start; ++low) {
        if (event(low) == wanted) return low;
    }
    return std::nullopt;
}

std::optional<std::size_t> FoundEvents::after(const Trace& trace, SelectedEvent current,
                                              std::int64_t time) const {
    if (size() == 0) return std::nullopt;
    if (const auto at = place_of(trace, current)) return (*at + 1) % size();
    std::size_t low = 0, high = size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (start_of(trace, event(middle)) < time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low % size();
}

std::optional<std::size_t> FoundEvents::before(const Trace& trace, SelectedEvent current,
                                               std::int64_t time) const {
    const auto next = after(trace, current, time);
    if (!next) return std::nullopt;
    // For an event in the list, two before the one after it; else the one before the first after `time`.
    const std::size_t back = place_of(trace, current) ? 2 : 1;
    return (*next + size() * 2 - back) % size();
}

std::string_view name_of(const Trace& trace, SelectedEvent event) {
    if (event.index < 0 || static_cast<std::size_t>(event.index) >= size_of(trace, event.kind)) return {};
    return trace.strings[name_id(trace, event.kind, static_cast<std::size_t>(event.index))];
}

std::optional<SelectedEvent> same_name(const Trace& trace, SelectedEvent event, bool forwards) {
    const std::size_t n = size_of(trace, event.kind);
    if (event.index < 0 || static_cast<std::size_t>(event.index) >= n) return std::nullopt;
    const auto from = static_cast<std::size_t>(event.index);
    const StringId name = name_id(trace, event.kind, from);
    const int rank = rank_of(trace, event.kind, from);
    for (std::size_t i = from;;) {
        if (forwards ? ++i >= n : i-- == 0) return std::nullopt;
        if (name_id(trace, event.kind, i) == name && rank_of(trace, event.kind, i) == rank)
            return SelectedEvent{event.kind, static_cast<std::int64_t>(i)};
    }
}

}  // namespace shardscope::viewer
