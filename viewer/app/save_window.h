// Asks under which name something is saved, and saves it: a table, a picture, the report. Its items:
// "save.path", "save.go", "save.table". Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <string>
#include <vector>

#include "viewer/app/program.h"

namespace shardscope::viewer {

class SaveWindow {
  public:
    // Draws while something is asked for (`program.save`).
    void draw(Program& program);

  private:
    void begin(const Program& program);
    void choose_table(Program& program);
    void save(Program& program);

    SaveRequest::What asked_ = SaveRequest::nothing;
    std::vector<std::string> tables_;  // that were shown when it was asked
    std::string path_, failure_;
};

}  // namespace shardscope::viewer
