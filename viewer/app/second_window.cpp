// See second_window.h.
#include "viewer/app/second_window.h"

#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_internal.h>

#include "viewer/app/export.h"
#include "viewer/draw/items.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::viewer::app {
namespace {

// Makes another context current, and the first one again at its end.
class InContext {
  public:
    explicit InContext(ImGuiContext* context) : before_(ImGui::GetCurrentContext()) {
        ImGui::SetCurrentContext(context);
    }
    ~InContext() { ImGui::SetCurrentContext(before_); }
    InContext(const InContext&) = delete;
    InContext& operator=(const InContext&) = delete;

  private:
    ImGuiContext* before_;
};

// Makes the second window's panes those of the window that is drawn.
class InSecond {
  public:
    explicit InSecond(Program& program) : program_(program) { swap(true); }
    ~InSecond() { swap(false); }
    InSecond(const InSecond&) = delete;
    InSecond& operator=(const InSecond&) = delete;

  private:
    void swap(bool in_second) {
        if (program_.elsewhere) std::swap(program_.panes, *program_.elsewhere);
        program_.in_second = in_second;
    }
    Program& program_;
};

}  // namespace

void SecondWindow::frame(const model::Frame& description) {
    if (program_.elsewhere && !is_open()) open();
    if (is_open() && program_.elsewhere) draw(description);
    if (is_open() && surface_->wants_close()) program_.close_second = true;
    if (std::exchange(program_.close_second, false)) program_.elsewhere.reset();
    if (!program_.elsewhere) close();
}

void SecondWindow::open() {
    const int frames = ImGui::GetFrameCount();
    context_ = ImGui::CreateContext();
    const InContext inside(context_);
    ImGui::GetIO().IniFilename = nullptr;
    ImGui::GetIO().LogFilename = nullptr;
    // Both contexts count the same frames: what a frame shows is collected over both windows.
    context_->FrameCount = context_->FrameCountEnded = context_->FrameCountRendered = frames - 1;
    try {
        surface_ = make_(program_.second_desk);
    } catch (const std::runtime_error& error) {
        program_.notice = error.what();
        program_.elsewhere.reset();
        return;
    }
    stage_ = std::make_unique<Stage>(program_, *surface_, surface_->scale(), true);
}

void SecondWindow::close() {
    program_.front_is_second = false;
    if (context_ == nullptr) return;
    {
        const InContext inside(context_);
        stage_.reset();
        surface_.reset();
    }
    ImGui::DestroyContext(context_);
    context_ = nullptr;
    title_.clear();
}

void SecondWindow::draw(const model::Frame& description) {
    const InContext inside(context_);
    program_.front_is_second = surface_->focused();
    if (const backend::WindowSize size = surface_->size(); size.width > 0 && !size.maximized)
        program_.second_desk = {size.width, size.height, false};
    {
        const InSecond second(program_);
        const std::string title =
            fmt::format("{} - {}", panels::panel_title(program_.shown().name()), program_.title());
        if (title != title_) surface_->set_title(title_ = title);
        draw::items::set_prefix("window.2.");
        stage_->frame(description);
        draw::items::set_prefix("");
    }
    surface_->end_frame();
}

void SecondWindow::write_picture(const std::string& path) {
    if (!is_open()) throw std::runtime_error("There is no second window.");
    const InContext inside(context_);
    app::write_picture(path, *surface_);
}

}  // namespace shardscope::viewer::app
