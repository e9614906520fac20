// A panel is one page of the viewer: one file that draws one subject from the session. The shell draws one
// panel at a time into a window that it has begun; the panel fills ImGui's content region. Frame thread only.
// This header has no Dear ImGui; the panels' .cpp files do.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace shardscope::traces {
struct Trace;
}

namespace shardscope::viewer {

class Session;
using TracePtr = std::shared_ptr<const traces::Trace>;

struct Frame {
    float scale = 1;              // of the display: multiply pixel sizes by it
    float width = 0, height = 0;  // of the panel's content region, in pixels
    double seconds = 0;           // since the start; stands still headless, so that pictures repeat
    bool headless = false;        // a picture is drawn: no mouse, nothing that depends on time
};

class Panel {
  public:
    virtual ~Panel() = default;
    virtual std::string_view name() const = 0;  // as in --panel: "timeline"
    // False: draw() is also called while no trace is ready. Otherwise Session::trace() is there.
    virtual bool needs_trace() const { return true; }
    // False: it has something to show of a file that holds a plan and no timeline.
    virtual bool needs_timeline() const { return true; }
    virtual void draw(Session& session, const Frame& frame) = 0;
    // An action of the table (app/actions.h) that is for the panel on show: "scroll_down".
    virtual void act(std::string_view /*action*/, Session& /*session*/) {}
    // What comes back next time (order of rows, columns, a history), as text of the panel's own making;
    // empty: nothing. restore() gets it before the first frame and must bear any text.
    virtual std::string saved() const { return {}; }
    virtual void restore(std::string_view /*saved*/) {}
    // It works on a thread of its own: pictures and scripts wait.
    virtual bool busy() const { return false; }
    // A trace was closed or, where it has a successor, read again: what is kept of it is let go, so that its
    // memory is free.
    virtual void closed(const traces::Trace& /*trace*/, const TracePtr& /*successor*/) {}
    // Whether a trace that is to replace the one on show could be drawn at once; asked each frame until then.
    virtual bool ready(Session& /*session*/, const TracePtr& /*successor*/) { return true; }
};

}  // namespace shardscope::viewer
