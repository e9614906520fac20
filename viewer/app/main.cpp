// shardscope-view: opens traces and shows panels, in a window or as a picture.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/options.h"
#include "viewer/app/program.h"
#include "viewer/app/shell.h"
#include "viewer/app/style.h"
#include "viewer/backend/headless.h"
#include "viewer/backend/png.h"
#include "viewer/backend/window.h"

namespace shardscope::viewer {
namespace {

using Clock = std::chrono::steady_clock;

struct ImGuiOwner {
    ImGuiOwner() {
        ImGui::CreateContext();
        ImGui::GetIO().IniFilename = nullptr;  // nothing is left behind in the user's folder
        ImGui::GetIO().LogFilename = nullptr;
    }
    ~ImGuiOwner() { ImGui::DestroyContext(); }
    ImGuiOwner(const ImGuiOwner&) = delete;
    ImGuiOwner& operator=(const ImGuiOwner&) = delete;
};

void one_frame(Shell& shell, const Frame& frame) {
    ImGui::NewFrame();
    shell.draw(frame);
    ImGui::Render();
}

void print_errors(const Session& session) {
    for (const OpenTrace& entry : session.open) {
        if (!entry.error.empty()) fmt::print(stderr, "shardscope-view: {}\n", entry.error);
    }
}

bool any_failed(const Session& session) {
    return std::any_of(session.open.begin(), session.open.end(),
                       [](const OpenTrace& e) { return !e.error.empty(); });
}

// The picture shows finished work: files are read first, then frames are drawn until every analysis that the
// panel asked for is there, and a few more in which Dear ImGui settles sizes.
int take_picture(Program& program, const Options& options) {
    while (program.session.loading()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        program.session.poll();
    }
    if (any_failed(program.session)) {
        print_errors(program.session);
        return 1;
    }
    const ImGuiOwner imgui;
    HeadlessCanvas canvas(options.width, options.height);
    apply_style(1);
    load_fonts(1);
    Shell shell(program);
    const Frame frame{.headless = true};
    constexpr int kSettled = 4;
    for (int calm = 0; calm < kSettled;) {
        canvas.begin_frame();
        one_frame(shell, frame);
        const bool working = program.session.working();
        calm = working ? 0 : calm + 1;
        if (working) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    canvas.end_frame();
    if (const std::string failure = program.session.analyses.failure(); !failure.empty()) {
        fmt::print(stderr, "shardscope-view: {}\n", failure);
        return 1;
    }
    write_png(options.screenshot, options.width, options.height, canvas.pixels());
    return 0;
}

// Files that are no traces are refused within milliseconds: where all are, there is nothing to show and no
// window opens. What takes longer is read while the window shows its progress.
bool all_refused(Session& session) {
    const auto until = Clock::now() + std::chrono::milliseconds(500);
    while (session.loading() && Clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        session.poll();
    }
    return !session.open.empty() && std::all_of(session.open.begin(), session.open.end(),
                                                [](const OpenTrace& e) { return !e.error.empty(); });
}

int run_window(Program& program, const Options& options) {
    const bool refused = all_refused(program.session);
    print_errors(program.session);
    if (refused) return 1;
    const ImGuiOwner imgui;
    Window window(options.width, options.height, "Shardscope");
    window.on_drop([&](const std::string& path) {
        program.session.open_file(path);
        program.session.set_active(program.session.open.size() - 1);
    });
    const float scale = window.scale();
    apply_style(scale);
    load_fonts(scale);
    Shell shell(program);
    Frame frame{.scale = scale};
    const auto start = Clock::now();
    while (!window.wants_close()) {
        // Idle costs nothing: without input a frame a second at most, ten while work goes on behind it.
        window.wait(program.session.working() ? 0.1 : 1.0);
        frame.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        window.begin_frame();
        one_frame(shell, frame);
        window.end_frame();
        if (program.quit) window.close();
    }
    return 0;
}

int run(int argc, char** argv) {
    Program program;
    program.panels = make_panels();
    std::vector<std::string> names;
    for (const auto& panel : program.panels) names.emplace_back(panel->name());
    const Parsed parsed = parse_options(argc, argv, names);
    if (!parsed.options) return parsed.status;
    const Options& options = *parsed.options;
    program.show(options.panel);
    program.session.first_range = options.range;
    for (const std::string& file : options.files) program.session.open_file(file);
    return options.screenshot.empty() ? run_window(program, options) : take_picture(program, options);
}

}  // namespace
}  // namespace shardscope::viewer

int main(int argc, char** argv) {
    try {
        return shardscope::viewer::run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "shardscope-view: {}\n", error.what());
        return 1;
    }
}
