// The viewer without a screen: Dear ImGui builds frames of the real shell, and nothing paints them. Not a
// test.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <imgui.h>

#include "viewer/app/program.h"
#include "viewer/app/shell.h"

namespace shardscope::viewer::bench {

struct Counted {
    std::size_t rectangles = 0;  // filled ones, without letters and lines
    std::size_t commands = 0;    // draw commands
    std::size_t vertices = 0;
};

class Viewer {
  public:
    explicit Viewer(const std::string& trace);
    ~Viewer();
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;

    // Waits until the timeline of the trace shows rows.
    void wait_for_timeline();
    // Waits until no work runs in the background.
    void settle();
    // Builds one frame; returns its processor time on this thread in milliseconds.
    double frame();
    Counted counted() const;

    app::Program program;
    ImVec2 mouse{900, 600};
    float wheel = 0, wheel_sideways = 0;

  private:
    std::unique_ptr<app::Shell> shell_;
};

}  // namespace shardscope::viewer::bench
