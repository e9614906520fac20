// shardscope-view: opens traces and shows panels, in a window, as a picture, or driven by a script.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/report/text_table.h"
#include "viewer/app/export.h"
#include "viewer/app/options.h"
#include "viewer/app/place_acts.h"
#include "viewer/app/program.h"
#include "viewer/app/redraw.h"
#include "viewer/app/saved_state.h"
#include "viewer/app/second_window.h"
#include "viewer/app/session_file.h"
#include "viewer/app/stage.h"
#include "viewer/backend/headless.h"
#include "viewer/backend/window.h"
#include "viewer/panels/panel_table.h"
#include "viewer/script/runner.h"

namespace shardscope::viewer {
namespace {

using Clock = std::chrono::steady_clock;

// Set while an analysis that nothing waits for still runs: a closed window disappears immediately.
bool g_ends_at_once = false;

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

void print_errors(const model::Session& session) {
    for (const model::OpenTrace& entry : session.open) {
        if (!entry.error.empty())
            fmt::print(stderr, "shardscope-view: {}\n", traces::report::printable(entry.error));
    }
}

void print_problems(const app::Program& program) {
    for (const std::string& problem : program.problems)
        fmt::print(stderr, "shardscope-view: {}\n", traces::report::printable(problem));
}

bool any_failed(const model::Session& session) {
    return std::any_of(session.open.begin(), session.open.end(),
                       [](const model::OpenTrace& e) { return !e.error.empty(); });
}

// The picture shows finished work: files are read first, then frames are drawn until every analysis that the
// panel asked for is done, and a few more in which Dear ImGui settles sizes.
int take_picture(app::Program& program, const app::Options& options) {
    while (program.session.loading()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        program.session.poll();
    }
    if (any_failed(program.session)) {
        print_errors(program.session);
        return 1;
    }
    const ImGuiOwner imgui;
    backend::HeadlessCanvas canvas(options.width, options.height);
    app::Stage stage(program, canvas, 1);
    constexpr int kSettled = 4;
    for (int calm = 0; calm < kSettled;) {
        stage.frame({.headless = true});
        const bool working = program.working();
        calm = working ? 0 : calm + 1;
        if (working) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (const std::string failure = program.session.analyses.failure(); !failure.empty()) {
        fmt::print(stderr, "shardscope-view: {}\n", failure);
        return 1;
    }
    app::write_picture(options.screenshot, canvas);
    if (options.link.empty() || program.problems.empty()) return 0;
    print_problems(program);
    return 1;
}

// A script drives the viewer in memory. Time in the frames is counted, not measured, so that runs are
// repeatable.
int run_script(app::Program& program, const app::Options& options, script::Script script) {
    const ImGuiOwner imgui;
    backend::HeadlessCanvas canvas(options.width, options.height);
    app::Stage stage(program, canvas, 1);
    app::SecondWindow second(program, [&](const app::Desk&) {
        return std::make_unique<backend::HeadlessCanvas>(options.width, options.height);
    });
    script::Runner runner(std::move(script), program, canvas, &second);
    for (model::Frame frame; !runner.done(); frame.seconds += 1.0 / 60) {
        stage.frame(frame, [&] { runner.before_frame(); });
        second.frame(frame);
        runner.after_frame();
        program.session.poll_files();
        program.session.poll_states();
        if (program.working()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (!runner.failure().empty()) {
        fmt::print(stderr, "shardscope-view: {}\n", runner.failure());
        return 1;
    }
    if (!options.screenshot.empty()) app::write_picture(options.screenshot, canvas);
    return 0;
}

// Files that are not traces are refused within milliseconds: if all are refused, there is nothing to show and
// no window opens. Anything slower is read while the window shows its progress.
bool all_refused(model::Session& session) {
    const auto until = Clock::now() + std::chrono::milliseconds(500);
    while (session.loading() && Clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        session.poll();
    }
    return !session.open.empty() && std::all_of(session.open.begin(), session.open.end(),
                                                [](const model::OpenTrace& e) { return !e.error.empty(); });
}

int run_window(app::Program& program, const app::Options& options, std::optional<script::Script> script) {
    const bool refused = all_refused(program.session);
    print_errors(program.session);
    if (refused && options.names_files())
        return 1;  // a file that was open last time may be gone: not a reason to stop
    const ImGuiOwner imgui;
    app::Desk& desk = program.desk;
    const bool restored = desk.width > 0 && !options.size_given;
    backend::Window window(
        restored ? backend::WindowSize{desk.width, desk.height, desk.maximized, true}
                 : backend::WindowSize{options.width, options.height, desk.maximized && !options.size_given});
    std::string title;
    window.on_drop([&](const std::string& path) { program.open(path); });
    app::Stage stage(program, window, window.scale());
    app::SecondWindow second(program, [&](const app::Desk& size) {
        auto made = std::make_unique<backend::Window>(
            size.width > 0 ? backend::WindowSize{size.width, size.height, false, true}
                           : backend::WindowSize{.width = 1000, .height = 700});
        made->on_drop([&](const std::string& path) { program.open(path); });
        return made;
    });
    std::unique_ptr<script::Runner> runner;
    if (script) runner = std::make_unique<script::Runner>(std::move(*script), program, window, &second);
    model::Frame frame;
    app::Redraw redraw;
    const auto start = Clock::now();
    while (!window.wants_close()) {
        const bool working = program.working(), quietly = working && program.works_quietly();
        const app::Redraw::Doing now{working && !quietly, quietly,
                                     runner != nullptr || program.session.animating};
        const bool there = second.takes_input();
        const bool input = window.wait(there ? 0 : app::Redraw::patience(now)) || there;
        const bool replaced = quietly && program.advance();
        if (!redraw.due(now, input, program.session.poll_files(), program.session.poll_states() || replaced))
            continue;
        if (title != program.title()) window.set_title(title = program.title());
        const backend::WindowSize size = window.size();
        desk.maximized = size.maximized;
        if (!size.maximized) {
            desk.width = size.width;
            desk.height = size.height;
        }
        frame.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        stage.frame(frame, [&] {
            if (runner) runner->before_frame();
        });
        window.end_frame();
        second.frame(frame);
        if (const auto raise = std::exchange(program.raise, app::Program::Raise::none);
            raise == app::Program::Raise::first) {
            window.raise();
        } else if (raise == app::Program::Raise::second) {
            second.raise();
        }
        if (runner) {
            runner->after_frame();
            if (!runner->failure().empty()) {
                fmt::print(stderr, "shardscope-view: {}\n", runner->failure());
                return 1;
            }
            if (runner->quit()) return 0;
            if (runner->done()) runner.reset();
        }
        if (program.quit) window.close();
    }
    return 0;
}

// False: none of the files is open, since a session could not be read.
bool open_files(app::Program& program, const app::Options& options) {
    if (!options.session.empty()) app::open_session(program, options.session);
    // The first trace stays the active one.
    for (const std::string& file : options.files) {
        if (file.ends_with(app::kSessionEnding)) {
            app::open_session(program, file);
        } else {
            program.session.open_file(file);
            program.remember(file);
        }
    }
    if (!options.link.empty()) app::follow_link(program, options.link);
    print_problems(program);
    return !options.names_files() || program.problems.empty() || !program.session.open.empty();
}

int run(int argc, char** argv) {
    app::Program program;
    program.panels = panels::make_panels();
    std::vector<std::string> names;
    for (const auto& panel : program.panels) names.emplace_back(panel->name());
    const app::Parsed parsed = app::parse_options(argc, argv, names);
    if (!parsed.options) return parsed.status;
    const app::Options& options = *parsed.options;
    std::optional<script::Script> script;
    if (!options.script.empty()) {
        script = script::read_script(options.script);
        const std::string wrong =
            script->error.empty() ? script::unknown_names(*script, program) : script->error;
        if (!wrong.empty()) {
            fmt::print(stderr, "shardscope-view: {}\n", traces::report::printable(wrong));
            return 2;
        }
    }
    const bool with_window = options.window || (!script && options.screenshot.empty());
    const bool with_state = with_window && !script && options.state;  // for repeatable runs
    if (with_state) {
        program.session.keep_columns = true;
        if (const auto state = app::read_state(app::state_path(), program.notice))
            restore(*state, program, !options.names_files());
        if (!program.notice.empty())
            fmt::print(stderr, "shardscope-view: {}\n", traces::report::printable(program.notice));
    }
    // A window that was divided stays as it was, unless a panel is requested.
    if (program.panes.count() == 1 &&
        (!with_state || options.names_files() || options.panel_given || program.session.open.empty()))
        program.show(options.panel);
    if (options.scale) program.set_zoom(*options.scale);
    if (options.appearance) program.set_appearance(*options.appearance);
    program.session.first_range = options.range;
    if (!open_files(program, options)) return 1;
    if (!options.panes.empty()) program.arrange(options.panes);
    if (options.panel_given) program.show(options.panel);  // regardless of what the files hold
    if (script && !options.window) return run_script(program, options, std::move(*script));
    if (!options.screenshot.empty()) return take_picture(program, options);
    const int status = run_window(program, options, std::move(script));
    if (with_state) {
        const std::string failure = write_state(app::state_path(), state_of(program));
        if (!failure.empty()) fmt::print(stderr, "shardscope-view: {}\n", failure);
    }
    g_ends_at_once = program.session.analyses.abandon();
    return status;
}

}  // namespace
}  // namespace shardscope::viewer

int main(int argc, char** argv) {
    try {
        const int status = shardscope::viewer::run(argc, argv);
        if (shardscope::viewer::g_ends_at_once) {
            std::fflush(nullptr);
            std::_Exit(status);
        }
        return status;
    } catch (const std::exception& error) {
        fmt::print(stderr, "shardscope-view: {}\n", shardscope::traces::report::printable(error.what()));
        return 1;
    }
}
