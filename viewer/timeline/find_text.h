// Finds events whose name or bar label contains a text, ignoring case. Each name is searched once, then
// events by their names' numbers; ten million events take a fraction of a second. Pure; any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/store/columns/trace.h"
#include "viewer/model/session.h"

namespace shardscope::viewer {

class FoundEvents {
  public:
    std::size_t size() const { return events_.size(); }
    SelectedEvent event(std::size_t i) const {
        return {static_cast<EventKind>(events_[i] >> kKindShift),
                static_cast<std::int64_t>(events_[i] & kRowMask)};
    }
    // The first that starts after `time`, or at `time` but later in the list than `current`; wraps around.
    std::optional<std::size_t> after(const traces::Trace& trace, SelectedEvent current,
                                     std::int64_t time) const;
    std::optional<std::size_t> before(const traces::Trace& trace, SelectedEvent current,
                                      std::int64_t time) const;
    std::optional<std::size_t> place_of(const traces::Trace& trace, SelectedEvent event) const;

  private:
    friend FoundEvents find_text(const traces::Trace& trace, std::string_view text,
                                 const std::atomic<bool>& cancel);
    static constexpr int kKindShift = 29;
    static constexpr std::uint32_t kRowMask = (1U << kKindShift) - 1;
    std::vector<std::uint32_t> events_;  // by start; four bytes each
};

// Searches device events, host ranges, runtime calls and marks. Stops early, with the matches so far, once
// `cancel` is set.
FoundEvents find_text(const traces::Trace& trace, std::string_view text, const std::atomic<bool>& cancel);

// By the string's number: whether it contains `text`.
std::vector<bool> strings_with(const traces::StringTable& strings, std::string_view text,
                               const std::atomic<bool>& cancel);

// "" for an event without a name.
std::string_view name_of(const traces::Trace& trace, SelectedEvent event);

// The nearest event after (or before) this one with the same name, on the same rank; nullopt: there is none.
std::optional<SelectedEvent> same_name(const traces::Trace& trace, SelectedEvent event, bool forwards);

}  // namespace shardscope::viewer
