// The surface that frames are painted on: a window, or memory. Used only by the thread that made it. Needs a
// current ImGui context throughout.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::viewer::backend {

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

  protected:
    Surface() = default;
    Surface(const Surface&) = delete;
    Surface& operator=(const Surface&) = delete;
};

}  // namespace shardscope::viewer::backend
