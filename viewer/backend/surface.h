// What frames are painted on, a window or memory, as the program and a script see it. The thread that made it
// uses it. Needs a current ImGui context throughout.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::viewer {

class Surface {
  public:
    virtual ~Surface() = default;
    virtual void begin_frame() = 0;  // before ImGui::NewFrame()
    virtual void end_frame() = 0;    // after ImGui::Render(): paints its draw data
    // Of the frame that was built last: RGBA, top row first, width() * height() of them.
    virtual std::vector<std::uint8_t> pixels() = 0;
    virtual int width() const = 0;
    virtual int height() const = 0;
    virtual void resize(int width, int height) = 0;  // a desktop may refuse
    virtual void reload_fonts() = 0;                 // ImGui's font atlas was made anew

  protected:
    Surface() = default;
    Surface(const Surface&) = delete;
    Surface& operator=(const Surface&) = delete;
};

}  // namespace shardscope::viewer
