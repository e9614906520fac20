// Runs a script (script.h) on the running viewer: moves a mouse and presses keys over several frames, finds
// items by name, reads their text, takes pictures. A command begins when the previous one is done; `expect`
// and commands that need an item wait while the viewer works. Drawing layer (Dear ImGui); frame thread only.
//   while (!runner.done()) { begin frame; runner.before_frame(); draw; runner.after_frame(); }
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "viewer/app/program.h"
#include "viewer/app/second_window.h"
#include "viewer/backend/surface.h"
#include "viewer/draw/items.h"
#include "viewer/script/input.h"
#include "viewer/script/script.h"

namespace shardscope::viewer::script {

// A sentence about a panel or action in the script that the program does not have; "" if there is none.
std::string unknown_names(const Script& script, const app::Program& program);

class Runner {
  public:
    // `second`: the second window, for its pictures; nullptr: it is never drawn.
    Runner(Script script, app::Program& program, backend::Surface& surface,
           app::SecondWindow* second = nullptr);
    ~Runner();  // the names of items are no longer kept
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    void before_frame();  // between the surface's begin_frame() and ImGui::NewFrame()
    void after_frame();   // after ImGui::Render()
    bool done() const { return next_ >= script_.commands.size(); }
    bool quit() const { return quit_; }                      // the script contained quit
    const std::string& failure() const { return failure_; }  // "run.script:7: ..."; empty: success

  private:
    enum class Step { again, done };
    // One function per command, called after each frame until it returns done.
    Step run(const Open&);
    Step run(const Close&);
    Step run(const ShowPanel&);
    Step run(const ArrangePanes&);
    Step run(const Click&);
    Step run(const Hover&);
    Step run(const Drag&);
    Step run(const Wheel&);
    Step run(const PressKey&);
    Step run(const TypeText&);
    Step run(const RunAction&);
    Step run(const Wait&);
    Step run(const Frames&);
    Step run(const Expect&);
    Step run(const Print&);
    Step run(const List&);
    Step run(const SetLimit&);
    Step run(const SetArea&);
    Step run(const SetVisible&);
    Step run(const SetSize&);
    Step run(const SetRank&);
    Step run(const SetTrace&);
    Step run(const SetScale&);
    Step run(const SetAppearance&);
    Step run(const Shot&);
    Step run(const ExportTable&);
    Step run(const ExportReport&);
    Step run(const ExportSession&);
    Step run(const FollowLink&);
    Step run(const Quit&);

    Step fail(const std::string& what);  // Step::again
    bool settling() const;               // frames may still change what is shown
    double waited() const;               // seconds since this command began
    // The item, once it exists; fails if it does not appear in time.
    std::optional<draw::items::Item> wanted(const std::string& name);
    std::optional<ImVec2> place(const Spot& spot);
    model::OpenTrace* ready_trace();  // fails if there is none
    void play(const Input& moment) { moments_.push_back(moment); }
    Step done_after(int frames);                       // Step::done, after frames in which ImGui settles
    void written(const std::function<void()>& write);  // fails with the message of what `write` throws

    Script script_;
    app::Program& program_;
    backend::Surface& surface_;
    app::SecondWindow* second_;
    std::size_t next_ = 0;
    int frames_ = 0;        // frames drawn since this command began
    bool started_ = false;  // for commands that start work and wait for it
    std::chrono::steady_clock::time_point began_;
    Input input_;                // the input held between commands
    std::deque<Input> moments_;  // input for the next frames
    std::string failure_;
    bool quit_ = false;
};

}  // namespace shardscope::viewer::script
