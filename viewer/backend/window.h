// A window of the desktop with OpenGL in it, by GLFW. Sleeps until there is something to draw. The thread
// that made it uses it. Needs a current ImGui context throughout.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "viewer/backend/surface.h"

namespace shardscope::viewer {

class Window final : public Surface {
  public:
    // Throws std::runtime_error with one sentence where there is no display.
    Window(int width, int height, const std::string& title);
    ~Window() override;

    float scale() const;  // of the display: 2 where everything is drawn twice as large
    void on_drop(std::function<void(const std::string& path)> drop);
    bool wants_close() const;
    void close();

    // Waits for input (at most `seconds`), unless frames are still owed to an earlier one. False: neither is
    // there, so that nothing need be drawn.
    bool wait(double seconds);
    void owe_frames();  // a few are drawn whether or not there is input
    void begin_frame() override;
    void end_frame() override;  // and shows it
    std::vector<std::uint8_t> pixels() override;
    int width() const override;  // of the picture: more than was asked for on a dense display
    int height() const override;
    void resize(int width, int height) override;
    void reload_fonts() override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::viewer
