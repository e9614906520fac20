// The surface that frames are painted on: a window, or memory. Used only by the thread that made it. Needs a
// current ImGui context throughout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::viewer::backend {

// The size of a window on the desktop.
struct WindowSize {
    int width = 1600, height = 900;  // in the desktop's units
    bool maximized = false;
    bool exact = false;  // not multiplied by the display's scale, as it was read from a window
};

class Surface {
  public:
    virtual ~Surface() = default;
    virtual void begin_frame() = 0;  // before ImGui::NewFrame()
    virtual void end_frame() = 0;    // after ImGui::Render(): paints its draw data
    // The latest frame: RGBA, top row first, width() * height() pixels.
    virtual std::vector<std::uint8_t> pixels() = 0;
    virtual int width() const = 0;
    virtual int height() const = 0;
    virtual void resize(int width, int height) = 0;  // the desktop may refuse the size
    virtual void reload_fonts() = 0;                 // call after ImGui's font atlas has been rebuilt
    virtual float scale() const { return 1; }        // the display's: 2 if everything is drawn twice as large

    // --- what only a window on the desktop has
    virtual void set_title(const std::string& /*title*/) {}
    virtual WindowSize size() const { return {0, 0}; }  // a width of 0: it is no window
    virtual bool focused() const { return false; }      // it has the keyboard
    virtual void raise() {}                             // asks for the keyboard
    virtual bool wants_close() const { return false; }
    virtual bool takes_input() { return false; }  // it has received input that needs a frame; once per frame

  protected:
    Surface() = default;
    Surface(const Surface&) = delete;
    Surface& operator=(const Surface&) = delete;
};

}  // namespace shardscope::viewer::backend
