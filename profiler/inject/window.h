// The part of the run that this process records (session_format.h: WindowKind), found from its own ranges or
// from calls. While the window is closed recording() is false. A range that was begun while it was open is
// recorded whole, one that was begun before it opened is left out.
//
// Any thread; no C++ runtime. What a thread reports here it reports inside Entered (process_log.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/inject/session_format.h"
#include "profiler/inject/text.h"

namespace shardscope::profiler::inject {

// Takes the session's window; `rank` is this process's or -1. False: this rank never records.
bool prepare_window(const SessionHeader& session, std::int32_t rank);

// In a forked child: it looks for its own window, unless that is over already.
void reset_window_in_child();

// Opens or closes the window if it is of that kind; nothing otherwise. cudaProfilerStart() and -Stop().
void open_window(WindowKind kind = WindowKind::cuda_profiler);
void close_window(WindowKind kind = WindowKind::cuda_profiler);

// Calls `changed` on the thread that opens (true) or closes (false) the window, right after; once for each
// change. At most four listeners; false when there is no place.
bool listen_to_window(void (*changed)(bool open));

// --- what ranges mean to it --------------------------------------------------------------------------------

// A range that the window waits for; kept by whoever sees its end.
enum class Watched : std::uint8_t { no, yes, last };

extern std::atomic<bool> window_watches;       // ranges matter
extern std::atomic<std::uint32_t> window_ids;  // start/end ranges that are watched and open

inline bool watches_ranges() {
    return window_watches.load(std::memory_order_relaxed);
}

// A range of that text begins: opens the window if this is what it waits for.
Watched range_begins(Text text);
// A range for which range_begins() answered something else than `no` has ended.
void range_ended(Watched watched);

// The same for start/end ranges, which end by their id on any thread.
void watch_id(std::uint64_t id, Watched watched);
inline bool watches_ids() {
    return window_ids.load(std::memory_order_relaxed) != 0;
}
void id_ended(std::uint64_t id);

// Whether a text could be a range that the window waits for; and whether a registered one is, so that ranges
// of registered strings need not be looked at for nothing.
bool window_wants(Text text);
extern std::atomic<bool> window_names;
void name_registered(Text text);

}  // namespace shardscope::profiler::inject
