// What panels share, and nothing else: the open traces, which of them and which rank is looked at, the time
// ranges, the selection, and the analyses. Frame thread only; files are opened on threads inside.
// Times in nanoseconds since the start of the capture. No Dear ImGui.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/analysis_cache.h"
#include "viewer/model/arrangement.h"
#include "viewer/model/row_simulation.h"

namespace shardscope::viewer {

struct TimeRange {  // half-open
    std::int64_t from = 0, to = 0;
    std::int64_t length() const { return to - from; }
    bool operator==(const TimeRange&) const = default;
};

// A file that was asked for: being read, read, or refused.
struct OpenTrace {
    std::string path;                 // the first, where several are merged
    std::vector<std::string> merged;  // all of them, where several files are one trace
    std::string name;                 // the file's name, with its folder where two are called alike
    TracePtr trace;                   // nullptr while it is being read and where it could not be
    TracePtr next;                    // its successor, read again: shown once its picture is ready
    std::string error;                // one sentence where it could not be read
    std::string notice;               // of its file, one sentence: "has changed since it was read"
    bool reading_again = false;       // the trace that is there stays until the new one is
    double progress = 0;              // 0..1 while it is being read
    // When its file was seen to grow last; none: not, or so long ago that nobody writes it any more.
    std::optional<std::chrono::steady_clock::time_point> grew;
    int color = 0;                   // index for run_color(): stays with the trace while it is open
    TimeRange visible;               // what the timeline shows
    std::optional<TimeRange> limit;  // what analyses look at; none: the whole trace
    // The instant that panels over time share: the mouse on the timeline, a click on the memory curve, the
    // shard map's scrubber. Every such panel draws it.
    std::optional<std::int64_t> cursor;
    // The window of a step that another panel led to: the timeline lights it up.
    std::optional<TimeRange> lit;
    RowArrangement rows;  // how the timeline's rows lie

    // Where it holds a plan and nothing else that a panel could show, the Plan panel meets it when it is
    // read; false: another panel was asked for since.
    bool leads_to_plan = true;
    std::optional<TimeRange> wanted_visible, wanted_limit;  // for when it is read: as they were last time

    bool loading() const { return trace == nullptr && error.empty(); }
    // Its run goes on: it has not ended, and its file has grown a moment ago.
    bool running() const { return trace != nullptr && !trace->ended && grew.has_value(); }
};

// Of a trace whose run has not ended: "running, 33 steps, 1 s ago", or that it did not end. Empty where it
// has.
std::string run_state(const OpenTrace& entry);

// A trace that is shown no more, with its successor where the file was read again (else nullptr).
struct GoneTrace {
    TracePtr trace, successor;
};

enum class EventKind { none, device, range, runtime, wait, mark };

// An event of the active trace that was clicked: an index into DeviceEvents, HostRanges, RuntimeCalls,
// Synchronizations or Marks.
struct SelectedEvent {
    EventKind kind = EventKind::none;
    std::int64_t index = -1;
    bool operator==(const SelectedEvent&) const = default;
};

// What the timeline's bars are coloured by.
enum class ColorBy { kind, name, module, unit };

// A text that a panel wants to have saved, under a name that a person chooses.
struct TextToSave {
    std::string name, text;
};

// A planner wrote it (SHARD_PLAN), also where it found no configuration.
bool holds_plan(const traces::Trace& trace);
// And it has no timeline: no rank did anything.
bool holds_only_plan(const traces::Trace& trace);

class Session {
  public:
    Session();
    ~Session();  // cancels files that are still being read
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // --- open files ---
    std::vector<OpenTrace> open;  // in the order they were asked for; change only by the calls below
    std::size_t active = 0;       // index into `open`; use set_active() to change
    void open_file(const std::string& path);                  // starts to read it on a thread
    void open_merged(const std::vector<std::string>& paths);  // one trace of several files, on one clock
    void add_trace(TracePtr trace, const std::string& name);  // one that is in memory already
    // Reads the file again; selection, ranges and cursor stay. The trace of before stays until that is done,
    // and also where it fails (the entry's notice says so).
    void reload(std::size_t index);
    bool follow = true;  // traces whose run has not ended are read again as they grow
    // Looks whether files have changed, at most once a second; true: something is new to be drawn. A trace
    // that is followed is read again, of another the entry's notice says it.
    bool poll_files();
    void close(std::size_t index);       // also cancels its reading
    void set_active(std::size_t index);  // another trace: the selections end
    // Once a frame: takes over what was read. What was read again replaces what is shown when the analyses
    // that are on show are there of it and, of the active trace, when `ready` says that its picture is.
    void poll(const std::function<bool(const TracePtr&)>& ready = {});
    // The traces that have gone since this was called last: whoever keeps something of them lets it go.
    std::vector<GoneTrace> take_gone();
    bool loading() const;  // any file is being read, also again
    bool working() const { return loading() || analyses.busy() || simulation.busy() || noted_work_; }
    // A panel that has threads of its own says so each frame while they work: pictures and scripts wait.
    void note_work() { notes_work_ = true; }

    OpenTrace* current();  // the active entry; nullptr where nothing is open
    const OpenTrace* current() const;
    TracePtr trace() const;  // of the active entry; nullptr where it is not there (yet)
    // All that are read and have a timeline, in order: what compare shows.
    std::vector<TracePtr> ready() const;
    // Opens a trace that was simulated for a plan's row; one that is open already is shown.
    void open_simulated(const std::string& path, const std::string& name);
    // What analyses of this entry look at: its limit range. Ranks are all; panels pick theirs.
    static traces::Selection selection(const OpenTrace& entry);

    // --- what is looked at ---
    std::optional<TimeRange> first_range;  // visible and limit range of traces from now on (--range)
    void fit();                            // the active trace's visible range becomes all of it
    int rank = 0;                          // index into Trace::ranks of the active trace; within its bounds
    SelectedEvent selected;
    int selected_module = -1;  // ModuleRow::id
    int selected_unit = -1;    // index into Trace::units
    ColorBy color_by = ColorBy::kind;
    bool animating = false;  // a panel moves by itself: frames are drawn without input; ends with each frame
    std::string wanted_panel;               // a panel's name: the shell shows it next frame and clears this
    std::optional<TextToSave> wanted_save;  // the shell asks where to, and clears this
    // Shows the timeline at this time of the active trace, framed, with the event selected (where one is
    // given) and the rank (an index into Trace::ranks) in sight.
    void go_to(TimeRange time, std::optional<int> rank_index = {}, SelectedEvent event = {});

    AnalysisCache analyses;
    RowSimulation simulation;  // of a row of a plan; its trace is opened when it is made

  private:
    void start(OpenTrace entry);
    void read_entry(std::size_t index);
    void renew(std::size_t index, TracePtr trace);
    void replace(std::size_t index);
    std::vector<GoneTrace> gone_;
    struct Loads;
    std::unique_ptr<Loads> loads_;
    bool notes_work_ = false, noted_work_ = false;  // in this frame, in the one before
};

}  // namespace shardscope::viewer
