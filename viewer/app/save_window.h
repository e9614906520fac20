// The window that asks for a file name and saves a table, a picture or the report. Its items: "save.path",
// "save.go", "save.table". Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <string>
#include <vector>

#include "viewer/app/program.h"

namespace shardscope::viewer {

class SaveWindow {
  public:
    // Draws while there is a request (`program.save`).
    void draw(Program& program);

  private:
    void begin(const Program& program);
    void choose_table(Program& program);
    void save(Program& program);

    SaveRequest::What asked_ = SaveRequest::nothing;
    std::vector<std::string> tables_;  // shown at the time of the request
    std::string path_, failure_;
};

}  // namespace shardscope::viewer
