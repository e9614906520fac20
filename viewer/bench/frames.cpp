// See frames.h.
#include "viewer/bench/frames.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "viewer/app/style.h"
#include "viewer/bench/measure.h"
#include "viewer/panels/panel_table.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::bench {
namespace {

constexpr float kWidth = 1600, kHeight = 900;

void wait_a_little() {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

Viewer::Viewer(const std::string& trace) {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {kWidth, kHeight};
    io.DeltaTime = 1.0F / 60;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as in the OpenGL backend
    app::apply_style(1);
    app::load_fonts(1);
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io.Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
    program.panels = panels::make_panels();
    program.show("timeline");
    program.session.open_file(trace);
    shell_ = std::make_unique<app::Shell>(program);
}

Viewer::~Viewer() {
    ImGui::DestroyContext();
}

double Viewer::frame() {
    program.session.poll();
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = mouse;
    io.MouseWheel = wheel;
    io.MouseWheelH = wheel_sideways;
    const double start = thread_seconds();
    ImGui::NewFrame();
    shell_->draw({});
    ImGui::Render();
    return (thread_seconds() - start) * 1e3;
}

void Viewer::wait_for_timeline() {
    while (program.session.trace() == nullptr) {
        wait_a_little();
        program.session.poll();
        for (const model::OpenTrace& entry : program.session.open) {
            if (!entry.error.empty()) throw std::runtime_error(entry.error);
        }
    }
    for (;;) {
        frame();
        const auto tracks = program.session.analyses.get<timeline::Tracks>(
            "timeline tracks", {program.session.trace()},
            [](const auto& t) { return timeline::make_tracks(*t.front()); });
        if (tracks != nullptr) break;
        wait_a_little();
    }
    frame();
}

void Viewer::settle() {
    for (int calm = 0; calm < 3;) {
        frame();
        calm = program.working() ? 0 : calm + 1;
        if (calm == 0) wait_a_little();
    }
}

Counted Viewer::counted() const {
    Counted counted;
    const ImDrawData* data = ImGui::GetDrawData();
    const ImVec2 white = ImGui::GetIO().Fonts->TexUvWhitePixel;
    for (int l = 0; l < data->CmdListsCount; ++l) {
        const ImDrawList& list = *data->CmdLists[l];
        counted.vertices += static_cast<std::size_t>(list.VtxBuffer.Size);
        for (const ImDrawCmd& command : list.CmdBuffer) {
            if (command.ElemCount == 0) continue;
            ++counted.commands;
            std::size_t triangles = 0;  // with the font atlas' white pixel: filled shapes
            for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
                const int vertex = static_cast<int>(command.VtxOffset) +
                                   list.IdxBuffer[static_cast<int>(command.IdxOffset + i)];
                const ImVec2 uv = list.VtxBuffer[vertex].uv;
                triangles += uv.x == white.x && uv.y == white.y ? 1 : 0;
            }
            counted.rectangles += triangles / 2;
        }
    }
    return counted;
}

}  // namespace shardscope::viewer::bench
