// The window that chooses files: a path to type, a folder to walk through, several files together, side by
// side or merged on one clock. Works wherever the viewer does. Its items: "files.path", "files.open",
// "files.merge", "files.kind", "files.up", "files.error", "files.entry.<name>". Drawing layer (Dear ImGui);
// frame thread only.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "viewer/app/folder_listing.h"
#include "viewer/app/program.h"

namespace shardscope::viewer {

class FileWindow {
  public:
    // Draws while `program.choose_file`; clears it when done, and opens what was chosen.
    void draw(Program& program);

  private:
    void go_to(const std::string& path);
    void draw_path();
    void draw_entries();
    void draw_buttons();
    void click(std::size_t row, const FolderEntry& entry);
    void take_typed();
    std::string path_of(const std::string& name) const;

    FolderListing listing_;
    std::vector<std::string> open_;  // chosen in this frame
    bool merge_ = false;
    std::set<std::string> marked_;  // names in this folder
    std::size_t last_clicked_ = 0;
    std::string typed_, next_folder_;
    FileKind kind_ = FileKind::trace;
    bool was_open_ = false;
};

}  // namespace shardscope::viewer
