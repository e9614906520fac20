// The windows over the panels, and the sidebar. Drawing layer (Dear ImGui); frame thread only.
//
// The command palette: the user types a few letters of an action, a panel, an open trace or a recent file,
// and Enter runs or opens it. Its items: "palette.field", "palette.0" and so on.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "viewer/app/folder_listing.h"
#include "viewer/app/program.h"

namespace shardscope::viewer::app {

class CommandPalette {
  public:
    // Draws while `program.palette`; clears it when done.
    void draw(Program& program);

  private:
    struct Entry {
        std::string kind, title, keys;
        bool available = true;
        std::function<void(Program&)> run;
    };
    static std::vector<Entry> entries(const Program& program);
    std::vector<Entry> matches(const Program& program) const;
    void draw_matches(Program& program, bool entered);

    std::string typed_;
    int chosen_ = 0;
    bool was_open_ = false;
};

// --- The window to choose files: type a path or a part of a name, or browse folders; several files are
// opened side by side or merged on one clock. Needs no system dialog. Its items: "files.path", "files.open",
// "files.merge", "files.kind", "files.up", "files.error", "files.entry.<name>", and the headings
// "files.sort.name", "files.sort.modified", "files.sort.bytes".

class FileWindow {
  public:
    // Draws while `program.choose_file`; clears it when done, and opens what was chosen.
    void draw(Program& program);

  private:
    void go_to(const std::string& path);
    void draw_path();
    void draw_entries();
    void draw_headings();
    void draw_entry(std::size_t row);
    void draw_buttons();
    void click(std::size_t row, const FolderEntry& entry);
    void enter();
    void take_typed();
    void choose_neighbour(int step);
    std::string part_of_name() const;
    bool shows(const FolderEntry& entry) const;
    std::string path_of(const std::string& name) const;

    FolderListing listing_;
    std::vector<std::string> open_;  // chosen in this frame, to open
    bool merge_ = false;
    std::set<std::string> marked_;  // names in this folder
    std::size_t last_clicked_ = 0;
    std::string chosen_;  // the entry at which the arrows are; empty: none
    EntryOrder order_ = EntryOrder::name;
    bool descending_ = false;
    std::string typed_, next_folder_;
    FileKind kind_ = FileKind::trace;
    bool was_open_ = false;
    bool takes_keyboard_ = false;  // the text field, in the next frame
};

// --- The window that asks for a file name and saves a table, a picture, the report or a text. Its items:
// "save.path", "save.go", "save.table".

class SaveWindow {
  public:
    // Draws while there is a request (`program.save`); clears it when done.
    void draw(Program& program);

  private:
    void begin(const Program& program);
    void choose_table(Program& program);
    void save(Program& program);

    SaveRequest::What asked_ = SaveRequest::nothing;
    std::vector<std::string> tables_;  // shown at the time of the request
    std::string path_, failure_;
};

// --- The help window: every key of the action table by menu, and what the mouse does. A click on a key waits
// for another. Its items: "help.key.<action>", "help.defaults".

// Draws while `program.help`; clears it when it is closed.
void draw_help_window(Program& program);

// --- The window of saved views: the names, which can be changed, under their keys. Its items:
// "views.go.<key>", "views.name.<key>", "views.delete.<key>".

// Draws while `program.views`; clears it when it is closed.
void draw_views_window(Program& program);

// --- The sidebar: an icon and a name for each panel, in groups; narrow in a narrow window. Its items are
// called "rail.<panel>".

// Draws into the current window, `height` high; returns its width. A click shows the panel.
float draw_rail(Program& program, float height);

}  // namespace shardscope::viewer::app
