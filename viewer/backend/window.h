// A desktop window with an OpenGL context, made with GLFW. Sleeps until there is something to draw. Used only
// by the thread that made it. Needs a current ImGui context throughout.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "viewer/backend/surface.h"

namespace shardscope::viewer::backend {

class Window final : public Surface {
  public:
    // Throws std::runtime_error with one sentence if there is no display, or none with OpenGL 3.3.
    explicit Window(const WindowSize& size);
    ~Window() override;

    void set_title(const std::string& title) override;
    WindowSize size() const override;
    float scale() const override;
    bool focused() const override;
    void raise() override;
    void on_drop(std::function<void(const std::string& path)> drop);
    bool wants_close() const override;
    void close();

    // Waits for input (at most `seconds`), unless earlier input still needs frames. Returns false if there is
    // neither, so that nothing needs to be drawn.
    bool wait(double seconds);
    bool takes_input() override;
    void begin_frame() override;
    void end_frame() override;  // also shows the frame
    std::vector<std::uint8_t> pixels() override;
    int width() const override;  // in framebuffer pixels: larger than requested on a high-density display
    int height() const override;
    void resize(int width, int height) override;
    void reload_fonts() override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::viewer::backend
