// A viewer whose panels only keep a text, for tests of what is saved and restored.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "viewer/app/place_acts.h"
#include "viewer/app/program.h"
#include "viewer/model/panel.h"

namespace shardscope::viewer::app {

class TextPanel final : public model::Panel {
  public:
    explicit TextPanel(std::string name) : name_(std::move(name)) {}
    std::string_view name() const override { return name_; }
    void draw(model::Session&, const model::Frame&) override {}
    std::string content(const model::Session&) const override { return text; }
    void show_content(std::string_view shown, model::Session&) override { text = shown; }
    std::string text;

  private:
    std::string name_;
};

struct Viewer {
    Viewer() {
        for (const char* name : {"start", "timeline", "query"})
            program.panels.push_back(std::make_unique<TextPanel>(name));
    }
    // Until all files are read and links followed.
    void settle() {
        for (int i = 0; i < 20'000; ++i) {
            program.session.poll();
            program.show_contents();
            go_to_link(program);
            if (!program.session.loading()) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    std::string& text(std::size_t panel) { return static_cast<TextPanel&>(*program.panels[panel]).text; }
    Program program;
};

}  // namespace shardscope::viewer::app
