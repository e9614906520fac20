// The command palette: the user types a few letters of an action, a panel, an open trace or a recent file,
// and Enter runs or opens it. Its items: "palette.field", "palette.0" and so on. Drawing layer (Dear ImGui);
// frame thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "viewer/app/program.h"

namespace shardscope::viewer {

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

}  // namespace shardscope::viewer
