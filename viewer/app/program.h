// The state of the running viewer that belongs to no panel: which panels are shown, which windows are open,
// whether to quit. Actions change it, the shell draws it. Frame thread only. No Dear ImGui.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/app/changed_keys.h"
#include "viewer/app/panes.h"
#include "viewer/app/report_job.h"
#include "viewer/model/link.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/tables/table_order.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {

// What to save; the save window asks for the file name (windows.h).
struct SaveRequest {
    enum What { nothing, table, panel, window, report, timeline, visible_timeline, text, session };
    What what = nothing;
    std::string name;          // name of the table (empty: the first one shown), or suggested file name
    std::string content = {};  // for What::text: the text to write
};

// The sidebar: wide enough for names, or icons only; automatic: by the window's width.
enum class RailWidth { automatic, wide, narrow };

// The window on the desktop, kept for the next start. A width of 0: not known.
struct Desk {
    int width = 0, height = 0;
    bool maximized = false;
    bool operator==(const Desk&) const = default;
};

// A link whose trace is not open yet (place_acts.h).
struct WantedLink {
    model::Link link;
    std::vector<const traces::store::Trace*> open = {};  // the traces among which it was looked for
    bool looked = false;
    std::vector<std::string> tried = {};  // recent files
    std::string opened = {};              // the file that was opened for it, as the last one
    std::string said = {};                // the problem: its trace is not open
};

struct Program {
    model::Session session;
    std::vector<std::unique_ptr<model::Panel>> panels;  // in the order of the sidebar
    Panes panes;                                        // of the window that is drawn or has received a key
    std::optional<Panes> elsewhere;  // of the other window, if there are two (second_window.h)
    bool in_second = false;          // the window that is drawn is the second one
    bool front_is_second = false;    // the second one has the keyboard: what lies over the panels is there
    bool close_second = false;       // wanted
    enum class Raise { none, first, second } raise = Raise::none;  // the window that is to get the keyboard
    Desk second_desk;
    bool help = false;            // the help window
    bool choose_file = false;     // the file window
    bool choose_session = false;  // it is for sessions
    bool palette = false;         // the command palette
    std::string wanted_menu;      // to be opened, by a key
    ChangedKeys keys;
    std::string takes_key;  // id of the action whose key the help window waits for
    bool quit = false;
    ReportJob report;  // the HTML report or timeline that is being made
    SaveRequest save;
    // File for a picture to take once the windows over the panel have closed; of the panel or the window.
    std::string picture;
    bool picture_of_panel = false;
    struct Corner {
        float x = 0, y = 0;
    };
    Corner panel_min, panel_max;  // the panel's corners on the screen in the last frame
    RailWidth rail = RailWidth::automatic;
    bool rail_is_wide = true;           // in the last frame
    std::vector<std::string> recent;    // files, most recent first
    std::string notice;                 // the result of the latest action: "units.csv is written."
    std::vector<std::string> problems;  // sentences above the panel, until they are dismissed
    std::optional<WantedLink> link;
    bool paste_link = false;                // the clipboard holds a link to follow
    std::string to_clipboard, copied_link;  // to be copied in this frame; the latest
    bool views = false;                     // the window of saved views
    std::string wanted_session;             // to be opened before the first window's next frame
    std::string session_path;               // of the session that was opened or saved; empty: none
    // By panel, to be shown once the traces are read; of other panels nothing (Panel::content()).
    std::optional<std::map<std::string, std::string>> contents;
    Desk desk;
    int zoom = 100;  // percent, on top of the display's scale; set_zoom() changes it
    int styles = 1;  // grows if sizes or colours change: each window rebuilds its fonts and style

    // Whether work runs in the background; pictures and scripts wait for its end.
    bool working() const {
        return session.working() || report.busy() || tables::TableOrder::any_busy() || !picture.empty() ||
               !wanted_session.empty() ||
               any_in_sight([](const model::Panel& panel) { return panel.busy(); });
    }
    // Whether all of it is for the successors of growing traces.
    bool works_quietly() const {
        return session.only_follows() && !report.busy() && !tables::TableOrder::any_busy() &&
               picture.empty() && !any_in_sight([](const model::Panel& panel) { return panel.busy(); });
    }
    // Takes over what was read between frames, while it works quietly; true: there is something to draw.
    bool advance() {
        return session.advance([&](const model::TracePtr& next) {
            return !any_in_sight([&](model::Panel& panel) { return !panel.ready(session, next); });
        });
    }
    void set_zoom(int percent) {
        zoom = std::clamp(percent, 50, 300);
        ++styles;
    }
    void set_appearance(theme::Appearance appearance) {
        theme::set_appearance(appearance);
        ++styles;
    }

    // Adds to `problems`, with control characters replaced.
    void say_problem(const std::string& sentence);
    // Opens a file, a trace or a session, shows it and adds it to the recent files.
    void open(const std::string& path);
    // Lets the panels show `contents` once the traces are read; to be called once a frame.
    void show_contents();
    void remember(const std::string& path) {
        constexpr std::size_t kMost = 12;
        std::erase(recent, path);
        recent.insert(recent.begin(), path);
        if (recent.size() > kMost) recent.resize(kMost);
    }

    // "block.sqlite - Shardscope", of several open traces the active one; "live.sqlite (running, step 33) -
    // Shardscope" while it is being written.
    std::string title() const {
        const model::OpenTrace* entry = session.current();
        if (entry == nullptr) return "Shardscope";
        return entry->name + (entry->running() ? " (" + run_state_in_short(*entry) + ")" : "") +
               " - Shardscope";
    }

    // The panel of this name; of no panel's name, the first one.
    model::Panel& panel(std::string_view name) const {
        const auto found =
            std::find_if(panels.begin(), panels.end(), [&](const auto& p) { return p->name() == name; });
        return found == panels.end() ? *panels.front() : **found;
    }
    bool has_panel(std::string_view name) const { return panel(name).name() == name; }
    // The panel that has the keyboard.
    model::Panel& shown() { return panel(panes.shown()); }
    const model::Panel& shown() const { return panel(panes.shown()); }
    // False: there is no such panel.
    bool show(std::string_view name) {
        if (!has_panel(name)) return false;
        if (elsewhere && elsewhere->pane_of(name)) {
            elsewhere->show(name);
            raise = in_second ? Raise::first : Raise::second;
        } else {
            panes.show(name);
        }
        for (model::OpenTrace& entry : session.open)
            entry.leads_to_panel = false;  // this panel was requested
        return true;
    }
    bool is_placed(std::string_view name) const {
        return panes.pane_of(name) || (elsewhere && elsewhere->pane_of(name));
    }
    // In this pane; a pane that shows it already, of either window, gets this one's panel for it.
    void put(std::size_t pane, std::string_view name) {
        if (const auto there = elsewhere ? elsewhere->pane_of(name) : std::nullopt)
            elsewhere->put(*there, panes.panel(pane));
        panes.put(pane, name);
    }
    // Divides the window as this text says (panes.h). False if it is no such text, or a panel of it does not
    // exist or is in the other window.
    bool arrange(std::string_view text) {
        const std::optional<Panes> wanted = parse_panes(text);
        if (!wanted) return false;
        for (std::size_t i = 0; i < wanted->count(); ++i) {
            const std::string& name = wanted->panel(i);
            if (!has_panel(name) || (elsewhere && elsewhere->pane_of(name))) return false;
        }
        panes = *wanted;
        return true;
    }
    // The same for the second window, which opens.
    bool arrange_second(std::string_view text) {
        const Panes first = panes;
        elsewhere.reset();
        const bool done = arrange(text);
        const Panes second = std::exchange(panes, first);
        for (std::size_t i = 0; done && i < second.count(); ++i) {
            if (panes.pane_of(second.panel(i))) return false;
        }
        if (done) elsewhere = second;
        return done;
    }
    // A panel for a new pane: one that goes well with most others; empty: every panel is in a pane.
    std::string panel_for_new_pane() const {
        for (const std::string_view name : {"timeline", "memory", "summary"}) {
            if (has_panel(name) && !is_placed(name)) return std::string(name);
        }
        for (const auto& one : panels) {
            if (!is_placed(one->name())) return std::string(one->name());
        }
        return "";
    }
    // Whether any panel in sight, in either window, has this property.
    template <class Property>
    bool any_in_sight(Property has) const {
        for (const Panes* window : {&panes, elsewhere ? &*elsewhere : nullptr}) {
            for (std::size_t i = 0; window != nullptr && i < window->count(); ++i) {
                if ((i == window->focus() || !window->alone()) && has(panel(window->panel(i)))) return true;
            }
        }
        return false;
    }
};

}  // namespace shardscope::viewer::app
