// The frame around the panels: menu bar, sidebar, messages about traces that are being read or could not be
// read, status line, help and file windows. One call draws a whole frame, in a window or headless. Drawing
// layer (Dear ImGui); frame thread only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "viewer/app/panes_view.h"
#include "viewer/app/program.h"
#include "viewer/app/windows.h"

namespace shardscope::viewer::app {

class Shell {
  public:
    // `second`: of the second window, which has menus and panes only.
    explicit Shell(Program& program, bool second = false) : program_(program), second_(second) {
        model::prepare_keys();
    }
    // Call between ImGui::NewFrame() and ImGui::Render().
    void draw(const model::Frame& frame);

  private:
    void run_shortcuts();
    void take_key();
    std::string wanted_menu() const;
    void let_keys_move_in_menus();
    void draw_menus();
    void draw_recent();
    void begin();
    void draw_over();
    void draw_content(const model::Frame& frame, float height);
    void draw_panel(model::Panel& panel, const model::Frame& frame);
    std::optional<model::TimeAxis> axis_for(const model::Panel& panel) const;
    void draw_instead_of_panel();
    void draw_only_plan(std::string_view title);
    void draw_status();
    std::string progress_text() const;
    void draw_notices();
    void draw_problems();
    void exchange_clipboard();

    Program& program_;
    bool second_;
    PanesView panes_;
    FileWindow files_;
    CommandPalette palette_;
    SaveWindow save_;
    bool popup_is_open_ = false;  // a menu, a list, ...; in the last frame
    std::string menu_of_key_;     // the menu that a key has opened; empty: none
    bool left_is_taken_ = false,
         right_is_taken_ = false;  // by a menu inside a menu, which they close and open
};

}  // namespace shardscope::viewer::app
