// The window that chooses a file: a path to type, a folder to walk through. Works wherever the viewer does.
// Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <optional>
#include <string>

#include "viewer/app/folder_listing.h"

namespace shardscope::viewer {

class FileWindow {
  public:
    // Draws while `open`; clears it when done. Returns the path chosen in this frame.
    std::optional<std::string> draw(bool& open);

  private:
    void go_to(const std::string& path);
    std::optional<std::string> draw_entries();
    std::optional<std::string> take_typed();

    FolderListing listing_;
    std::string typed_;
    bool all_files_ = false, was_open_ = false;
};

}  // namespace shardscope::viewer
