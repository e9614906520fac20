// Draws Dear ImGui's frames without any display: EGL's surfaceless platform, an OpenGL context and a
// framebuffer in memory. Used only by the thread that made it. Needs a current ImGui context throughout.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "viewer/backend/surface.h"

namespace shardscope::viewer::backend {

class HeadlessCanvas final : public Surface {
  public:
    // Throws std::runtime_error with one sentence if no such context is available.
    HeadlessCanvas(int width, int height);
    ~HeadlessCanvas() override;

    void begin_frame() override;  // time advances by 1/60 s; there is no mouse
    void end_frame() override;
    std::vector<std::uint8_t> pixels() override;
    int width() const override;
    int height() const override;
    void resize(int width, int height) override;
    void reload_fonts() override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::viewer::backend
