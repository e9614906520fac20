// The actions of the program: files, exports, panels, appearance (action_parts.h).
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "viewer/app/action_parts.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::viewer {
namespace {

constexpr int kZoomStep = 25;  // percent

// Closes what lies on top first, then clears the selection, then the time filter.
void let_go(Program& program) {
    Session& session = program.session;
    if (program.help || program.choose_file || program.palette || program.save.what != SaveRequest::nothing) {
        program.help = program.choose_file = program.palette = false;
        program.save = {};
    } else if (session.selected.kind != EventKind::none) {
        program.shown().act("let_go", session);
        session.selected = {};
    } else if (session.current() != nullptr) {
        program.shown().act("let_go", session);
        session.current()->limit.reset();
    }
}

void next_rank(Program& program) {
    const TracePtr trace = program.session.trace();
    if (trace == nullptr || trace->ranks.empty()) return;
    program.session.rank = (program.session.rank + 1) % static_cast<int>(trace->ranks.size());
}

void next_trace(Program& program) {
    Session& session = program.session;
    if (!session.open.empty()) session.set_active((session.active + 1) % session.open.size());
}

// Shows the panel `step` places further on, wrapping around at the end.
std::function<void(Program&)> to_neighbour(std::size_t step) {
    return [step](Program& p) {
        const std::size_t count = p.panels.size();
        p.panel = (p.panel + (step == 1 ? 1 : count - 1)) % count;
    };
}

std::function<void(Program&)> save(SaveRequest::What what) {
    return [what](Program& p) { p.save = {.what = what}; };
}

std::vector<Chord> panel_keys(std::size_t index) {
    if (index > 15) return {};
    const bool second = index >= 10;  // 1 ... 9, 0, then Shift+1 ... Shift+6
    const std::size_t digit = second ? index - 9 : (index + 1) % 10;
    return {{static_cast<Key>(static_cast<std::size_t>(Key::digit_0) + digit), false, second}};
}

void add_panels(std::vector<Action>& all) {
    const std::span<const PanelEntry> panels = panel_table();
    for (std::size_t i = 0; i < panels.size(); ++i) {
        const std::string_view name = panels[i].name;
        all.push_back({name, "Panels", panels[i].title, panel_keys(i), "", false,
                       [name](Program& p) { p.show(name); }});
    }
}

}  // namespace

std::vector<Action> program_actions() {
    using Save = SaveRequest::What;
    std::vector<Action> all = {
        {"open",
         "File",
         "Open traces...",
         {{Key::o, true}},
         "",
         false,
         [](Program& p) { p.choose_file = true; }},
        {"reload",
         "File",
         "Read this trace again",
         {{Key::f5}},
         "",
         false,
         [](Program& p) { p.session.reload(p.session.active); }},
        {"follow",
         "File",
         "Follow traces that are still being written",
         {{Key::f5, false, true}},
         "",
         false,
         [](Program& p) { p.session.follow = !p.session.follow; }},
        {"close",
         "File",
         "Close this trace",
         {{Key::w, true}},
         "",
         false,
         [](Program& p) { p.session.close(p.session.active); }},
        {"next_trace", "File", "Next open trace", {{Key::tab, true}}, "", false, next_trace},
        {"export_table", "File", "Export a table...", {{Key::e, true}}, "", false, save(Save::table)},
        {"export_panel", "File", "Picture of the panel...", {{Key::p, true}}, "", false, save(Save::panel)},
        {"export_window", "File", "Picture of the window...", {{Key::f12}}, "", false, save(Save::window)},
        {"export_report", "File", "Report as HTML...", {{Key::e, true, true}}, "", false, save(Save::report)},
        {"quit", "File", "Quit", {{Key::q, true}}, "", false, [](Program& p) { p.quit = true; }},

        {"palette",
         "View",
         "Command palette",
         {{Key::p, true, true}},
         "",
         false,
         [](Program& p) { p.palette = !p.palette; }},
        {"next_rank", "View", "Next rank", {{Key::r}}, "", false, next_rank},
        {"larger",
         "View",
         "Larger",
         {{Key::equal, true}},
         "",
         false,
         [](Program& p) { p.set_zoom(p.zoom + kZoomStep); }},
        {"smaller",
         "View",
         "Smaller",
         {{Key::minus, true}},
         "",
         false,
         [](Program& p) { p.set_zoom(p.zoom - kZoomStep); }},
        {"normal_size",
         "View",
         "Normal size",
         {{Key::digit_0, true}},
         "",
         false,
         [](Program& p) { p.set_zoom(100); }},
        {"appearance",
         "View",
         "Light or dark",
         {{Key::f9}},
         "",
         false,
         [](Program& p) {
             p.set_appearance(theme::appearance() == Appearance::dark ? Appearance::light : Appearance::dark);
         }},
        {"rail",
         "View",
         "Panels' names beside their signs",
         {{Key::b, true}},
         "",
         false,
         [](Program& p) { p.rail = p.rail_is_wide ? RailWidth::narrow : RailWidth::wide; }},
        {"let_go",
         "View",
         "Close a window, else the selection, else the limit",
         {{Key::escape}},
         "",
         false,
         let_go},
        {"next_panel", "Panels", "Next panel", {{Key::page_down, true}}, "", false, to_neighbour(1)},
        {"previous_panel", "Panels", "Panel before", {{Key::page_up, true}}, "", false, to_neighbour(0)},
    };
    add_panels(all);
    return all;
}

std::vector<Action> help_actions() {
    return {
        {"help", "Help", "Keys and mouse", {{Key::f1}, {Key::slash, false, true}}, "", false, [](Program& p) {
             p.help = !p.help;
         }}};
}

}  // namespace shardscope::viewer
