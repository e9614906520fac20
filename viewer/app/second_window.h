// The second window of the program: panes of its own (Program::elsewhere), which share session, panels and
// everything else with the first. The distribution's Dear ImGui has one window per context, so that this one
// has a context of its own; the context of the first window is current again after each call. Frame thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "viewer/app/program.h"
#include "viewer/app/stage.h"
#include "viewer/backend/surface.h"

struct ImGuiContext;

namespace shardscope::viewer::app {

class SecondWindow {
  public:
    using Make = std::function<std::unique_ptr<backend::Surface>(const Desk& size)>;
    // `make`: a surface, while the window's own context is current; may throw std::runtime_error.
    SecondWindow(Program& program, Make make) : program_(program), make_(std::move(make)) {}
    ~SecondWindow() { close(); }
    SecondWindow(const SecondWindow&) = delete;
    SecondWindow& operator=(const SecondWindow&) = delete;

    bool is_open() const { return stage_ != nullptr; }
    // Whether it has received input that needs a frame.
    bool takes_input() { return is_open() && surface_->takes_input(); }
    void raise() {
        if (is_open()) surface_->raise();
    }
    // After the first window's frame: opens or closes the window as the program wants, and draws it.
    void frame(const model::Frame& description);
    // Throws std::runtime_error if there is no such window, or the file cannot be written.
    void write_picture(const std::string& path);

  private:
    void open();
    void close();
    void draw(const model::Frame& description);

    Program& program_;
    Make make_;
    ImGuiContext* context_ = nullptr;
    std::unique_ptr<backend::Surface> surface_;
    std::unique_ptr<Stage> stage_;
    std::string title_;
};

}  // namespace shardscope::viewer::app
