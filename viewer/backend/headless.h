// Draws Dear ImGui's frames without any display: EGL's surfaceless platform, an OpenGL context and a
// framebuffer in memory. The thread that made it uses it. Needs a current ImGui context throughout.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace shardscope::viewer {

class HeadlessCanvas {
  public:
    // Throws std::runtime_error with one sentence where no such context can be had.
    HeadlessCanvas(int width, int height);
    ~HeadlessCanvas();
    HeadlessCanvas(const HeadlessCanvas&) = delete;
    HeadlessCanvas& operator=(const HeadlessCanvas&) = delete;

    void begin_frame();                        // before ImGui::NewFrame()
    void end_frame();                          // after ImGui::Render(): paints its draw data
    std::vector<std::uint8_t> pixels() const;  // RGBA, top row first

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::viewer
