// What panels share, and nothing else: the open traces, the active trace and rank, the time ranges, the
// selection, and the analyses. Frame thread only; files are opened on threads inside. Times in nanoseconds
// since the start of the capture. No Dear ImGui.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/store/columns/event_columns.h"
#include "viewer/model/analysis_cache.h"
#include "viewer/model/place.h"
#include "viewer/model/row_simulation.h"
#include "viewer/model/saved_session.h"
#include "viewer/model/trials.h"

namespace shardscope::viewer::model {

struct ResultRows;  // result_rows.h

// A requested file: being read, read, or refused.
struct OpenTrace {
    std::string path;                 // the first, where several are merged
    std::vector<std::string> merged;  // all files, if several make one trace
    std::string name;                 // the file's name, with its folder if two names are equal
    TracePtr trace;                   // nullptr while it is being read and if it could not be
    TracePtr next;                    // its reloaded successor: shown once its picture is ready
    std::string error;                // one sentence if it could not be read
    std::string notice;               // about its file, one sentence: "has changed since it was read"
    bool reading_again = false;       // the current trace stays until the new one is there
    bool followed = false;            // read again because it has grown: the screen says nothing about it
    double progress = 0;              // 0..1 while it is being read
    // When its file was last seen to grow; none: never, or so long ago that it is no longer being written.
    std::optional<std::chrono::steady_clock::time_point> grew;
    bool held = false, was_held = false;  // another process has it open (is_open_elsewhere); has had it
    std::int64_t wrote_ns = 0;            // when it was last written, by the system's clock; 0: unknown
    std::string said_state;               // run_state() when poll_states() last looked
    int color = 0;                        // index for run_color(): fixed while the trace is open
    TimeRange visible;                    // what the timeline shows
    std::optional<TimeRange> limit;       // the time that analyses are limited to; none: the whole trace
    // The instant that panels over time share: the mouse on the timeline, a click on the memory curve, the
    // shard map's slider. Every such panel draws it.
    std::optional<std::int64_t> cursor;
    // The step window that another panel navigated to; the timeline highlights it.
    std::optional<TimeRange> lit;
    std::optional<MarkedArea> area;
    RowArrangement rows;                       // how the timeline's rows are arranged
    std::shared_ptr<const ResultRows> result;  // a query's result among these rows; nullptr: none

    // It opens in the panel that only_panel() names; false: another panel has been requested since.
    bool leads_to_panel = true;
    std::optional<SavedTrace> wanted;  // what was saved of it, restored once the trace is read
    std::shared_ptr<MarkFile> marks;   // with saved views; nullptr until the trace is read

    std::vector<std::string> files() const { return merged.empty() ? std::vector{path} : merged; }
    bool loading() const { return trace == nullptr && error.empty(); }
    // Whether its run is still going: it has not ended, and its file is held, or grew a moment ago (of a run
    // of another host or container, which is not seen to hold it).
    bool running() const {
        return trace != nullptr && !trace->ended && (held || (grew.has_value() && !was_held));
    }
};

// "running, step 33, 1 s ago" (since its file was last written), "stopped 4 min ago without finishing" (since
// its last event), "finished"; empty while it is not there.
std::string run_state(const OpenTrace& entry);
// The same without the time: "running, step 33", "stopped without finishing", "finished".
std::string run_state_in_short(const OpenTrace& entry);

// A trace that is no longer shown, with its successor if it was reloaded (else nullptr).
struct GoneTrace {
    TracePtr trace, successor;
};

// The event of the active trace that was clicked.
using SelectedEvent = traces::store::EventRef;

// A text that a panel wants to save; the user chooses the file name.
struct TextToSave {
    std::string name, text;
};

// Whether a planner wrote it (SHARD_PLAN), even if it found no configuration.
bool holds_plan(const traces::store::Trace& trace);
// Whether it holds a plan and no timeline: no rank did anything.
bool holds_only_plan(const traces::store::Trace& trace);
// The panel for a trace that holds only a plan, or samples of threads and no event; "": any.
std::string_view only_panel(const traces::store::Trace& trace);

class Session {
  public:
    Session();
    ~Session();  // cancels files that are still being read
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // --- open files ---
    std::vector<OpenTrace> open;              // in the order of the requests; change only by the calls below
    std::size_t active = 0;                   // index into `open`; change with set_active()
    void open_file(const std::string& path);  // starts reading it on a thread
    void open_merged(const std::vector<std::string>& paths);  // one trace of several files, on one clock
    void add_trace(TracePtr trace, const std::string& name);  // a trace that is already in memory
    // Reads the file again; selection, ranges and cursor stay. The old trace stays until the new one has been
    // read, and also if that fails (the entry's notice says so).
    void reload(std::size_t index);
    bool follow = true;  // traces whose run has not ended are reloaded as they grow
    // Checks whether files have changed, at most once a second; true: there is something new to draw. A
    // followed trace is reloaded; for others the entry's notice reports the change.
    bool poll_files();
    // Once a second: looks whether runs that have not ended still go; true: a state that is shown has
    // changed.
    bool poll_states();
    void close(std::size_t index);       // also cancels reading it
    void set_active(std::size_t index);  // clears the selections if the trace is another one
    // Once a frame: takes over what was read. A reloaded trace replaces the one shown when its visible
    // analyses are ready and, for the active trace, when `ready` says that its picture is.
    void poll(const std::function<bool(const TracePtr&)>& ready = {});
    // The same between frames, while only_follows(); true: there is something new to draw.
    bool advance(const std::function<bool(const TracePtr&)>& ready = {});
    // The traces that have gone since the last call: everything that keeps a part of them must drop it.
    std::vector<GoneTrace> take_gone();
    bool loading() const;  // any file is being read or reloaded
    // Whether all work is for the successors of growing traces: nothing of it is visible before its end.
    bool only_follows() const;
    bool working() const {
        return loading() || analyses.busy() || simulation.busy() || trials.busy() || noted_work_;
    }
    // A panel with threads of its own calls this in each frame while they work: pictures and scripts wait.
    void note_work() { notes_work_ = true; }

    OpenTrace* current();  // the active entry; nullptr if nothing is open
    const OpenTrace* current() const;
    TracePtr trace() const;  // of the active entry; nullptr if it is not there (yet)
    // All traces that are read and have a timeline, in order: those that the Compare panel can show.
    std::vector<TracePtr> ready() const;
    // Opens a trace that was simulated for a plan's row, or shows it if it is already open.
    void open_simulated(const std::string& path, const std::string& name);
    // The same with the next frame, and with this panel: for panels, which draw the active trace to their
    // end.
    struct WantedTrace {
        std::string path, name, panel;
    };
    std::optional<WantedTrace> wanted_trace;
    // What the analyses of this entry are limited to: its limit range. It includes all ranks; panels choose
    // theirs.
    static traces::analysis::Selection selection(const OpenTrace& entry);

    // --- the current selection ---
    static TimeRange whole(const traces::store::Trace& trace);  // all of its time, with a margin at both ends
    std::optional<TimeRange> first_range;  // visible and limit range of traces opened from now on (--range)
    void fit();                            // makes all of the active trace visible
    traces::store::RankIndex rank{0};      // of the active trace; always valid
    bool choose_rank(int number);          // by its number; false: the active trace does not show it
    SelectedEvent selected;
    int selected_module = -1;  // ModuleRow::id
    traces::store::UnitIndex selected_unit;
    ColorBy color_by = ColorBy::kind;
    bool animating = false;     // a panel is animated: frames are drawn without input; reset after each frame
    bool keep_columns = false;  // of large traces in a file beside them (traces/lanes/kept_tracks.h)
    std::string to_say;         // by a panel: the shell shows it in the status line, and clears this
    std::string wanted_panel;   // a panel's name: the shell shows it next frame and clears this
    std::optional<TextToSave> wanted_save;  // the shell asks for the file name, and clears this
    // Shows this time of the active trace on the timeline, framed, with the event selected and the rank
    // visible (if they are given).
    void go_to(TimeRange time, traces::store::RankIndex shown = {}, SelectedEvent event = {});

    AnalysisCache analyses;
    RowSimulation simulation;  // of a plan's row; its trace is opened once it is made
    Trials trials;             // of changed settings

  private:
    void start(OpenTrace entry);
    void read_entry(std::size_t index);
    void renew(std::size_t index, TracePtr trace);
    void replace(std::size_t index);
    void look_at_state(OpenTrace& entry);
    std::vector<GoneTrace> gone_;
    struct Loads;
    std::unique_ptr<Loads> loads_;
    std::chrono::steady_clock::time_point next_states_;
    bool notes_work_ = false, noted_work_ = false;  // in this frame, in the previous one
};

}  // namespace shardscope::viewer::model
