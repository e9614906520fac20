// The part of the run that this process records (session_format.h: WindowKind), determined from its own
// ranges or from calls. While the window is closed, recording() is false. A range that began while it was
// open is recorded whole; one that began before it opened is omitted.
//
// Any thread; no C++ runtime. Threads report to it from inside Entered (process_log.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/inject/session_format.h"
#include "profiler/inject/text.h"

namespace shardscope::profiler::inject {

// Called when the window opens (with the session's state) or closes (with null). `watches`: the window
// depends on ranges, even if they are not recorded.
using SetGate = void (*)(const std::atomic<SessionState>* state, bool watches);

// Sets up the session's window; `rank` is this process's or -1. Returns false if this rank never records.
bool prepare_window(const SessionHeader& session, std::int32_t rank, SetGate set_gate);

// For a forked child, which looks for its own window unless the window is over already.
void reset_window_in_child();

// Opens or closes the window if it is of that kind. For cudaProfilerStart() and cudaProfilerStop().
void set_window(WindowKind kind, bool open);

// Calls `changed` right after each change, on the thread that opens (true) or closes (false) the window. At
// most four listeners; returns false if there is no slot left.
bool listen_to_window(void (*changed)(bool open));

// --- ranges on which the window depends --------------------------------------------------------------------

// Whether the window waits for a range; kept by the code that sees the range's end.
enum class Watched : std::uint8_t { no, yes, last };

extern std::atomic<bool> window_watches;       // whether the window depends on ranges
extern std::atomic<std::uint32_t> window_ids;  // start/end ranges that are watched and open

inline bool watches_ranges() {
    return window_watches.load(std::memory_order_relaxed);
}

// Reports that a range of that text begins: opens the window if it waits for this one.
Watched range_begins(Text text);
// Reports the end of a range for which range_begins() did not return `no`.
void range_ended(Watched watched);

// The same for start/end ranges, which end by their id on any thread.
void watch_id(std::uint64_t id, Watched watched);
inline bool watches_ids() {
    return window_ids.load(std::memory_order_relaxed) != 0;
}
void id_ended(std::uint64_t id);

// Whether the window could wait for a range of this text; and whether it could for any registered text, for
// otherwise ranges of registered strings need no check.
bool window_wants(Text text);
extern std::atomic<bool> window_names;
void name_registered(Text text);

}  // namespace shardscope::profiler::inject
