// A panel is one page of the viewer: one file that draws one subject from the session. The shell draws one
// panel at a time into a window that it has begun; the panel fills ImGui's content region. Frame thread only.
// This header has no Dear ImGui; the panels' .cpp files do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::viewer::model {

class Session;
using TracePtr = std::shared_ptr<const traces::store::Trace>;

// The time axis of a panel on the screen: the pixels at both ends of the trace's visible time.
struct TimeAxis {
    float left = 0, right = 0;
    float window_left = 0, window_width = 0;  // of the panel
};

struct Frame {
    float scale = 1;              // the display's scale: multiply pixel sizes by it
    float width = 0, height = 0;  // of the panel's content region, in pixels
    double seconds = 0;           // since the start; constant when headless, so that pictures are repeatable
    // Of the timeline above or below in a pane of the same width: a panel over the same time aligns with it.
    std::optional<TimeAxis> axis;
    bool headless = false;  // a picture is drawn: there is no mouse, and nothing depends on time
};

class Panel {
  public:
    virtual ~Panel() = default;
    virtual std::string_view name() const = 0;  // as in --panel: "timeline"
    // False: draw() is also called while no trace is ready. Otherwise Session::trace() is not null.
    virtual bool needs_trace() const { return true; }
    // False: the panel also shows something for a file that holds a plan and no timeline.
    virtual bool needs_timeline() const { return true; }
    virtual void draw(Session& session, const Frame& frame) = 0;
    // An action of the table (app/actions.h) for the panel that is shown: "scroll_down".
    virtual void act(std::string_view /*action*/, Session& /*session*/) {}
    // State that is restored next time (order of rows, columns, a history), as text in the panel's own
    // format; empty: nothing. restore() receives it before the first frame and must accept any text.
    virtual std::string saved() const { return {}; }
    virtual void restore(std::string_view /*saved*/) {}
    // What it shows of the open traces (a search, a query, a choice of runs), for a session, a saved view or
    // a link, as text in the panel's own format; empty: nothing. show_content() is called once the traces are
    // read and must accept any text.
    virtual std::string content(const Session& /*session*/) const { return {}; }
    virtual void show_content(std::string_view /*content*/, Session& /*session*/) {}
    // True while a thread of the panel's own is working: pictures and scripts wait for it.
    virtual bool busy() const { return false; }
    // A trace was closed or, if it has a successor, reloaded: the panel drops what it keeps of it, to free
    // the memory.
    virtual void closed(const traces::store::Trace& /*trace*/, const TracePtr& /*successor*/) {}
    // Of the last frame, if the panel's axis is the visible time.
    virtual std::optional<TimeAxis> time_axis() const { return {}; }
    // Whether a trace that is to replace the one shown can be drawn immediately; called each frame until
    // then.
    virtual bool ready(Session& /*session*/, const TracePtr& /*successor*/) { return true; }
};

}  // namespace shardscope::viewer::model
