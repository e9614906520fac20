// A window of the desktop with OpenGL in it, by GLFW. Sleeps until there is something to draw. The thread
// that made it uses it. Needs a current ImGui context throughout.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace shardscope::viewer {

class Window {
  public:
    // Throws std::runtime_error with one sentence where there is no display.
    Window(int width, int height, const std::string& title);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    float scale() const;  // of the display: 2 where everything is drawn twice as large
    void on_drop(std::function<void(const std::string& path)> drop);
    bool wants_close() const;
    void close();

    // Waits for input (at most `seconds`), unless frames are still owed to an earlier one.
    void wait(double seconds);
    void begin_frame();  // before ImGui::NewFrame()
    void end_frame();    // after ImGui::Render(): paints its draw data and shows it

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::viewer
