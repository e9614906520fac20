// "Try it": changed settings of the active run, simulated in place (model/trials.h), with the result beside
// the run: an editable line of changes, the figures before and after, and the ways on: the simulated trace,
// the job file, the lines of PyTorch. For scripts: NAME.changes, NAME.run, NAME.cancel, NAME.error,
// NAME.progress, NAME.step.before (after, difference), NAME.exposed..., NAME.peak..., NAME.compare,
// NAME.timeline, NAME.copy_job, NAME.save_job, NAME.copy_pytorch, NAME.close. Drawing layer (Dear ImGui);
// frame thread only.
#pragma once

#include <string>
#include <string_view>

#include "viewer/model/session.h"

namespace shardscope::viewer::widgets {

class TryIt {
  public:
    // Opens the box of this item with these changes, and tries them at once if there are any.
    void open(model::Session& session, std::string_view item, std::string changes);
    bool is_open(std::string_view item) const { return item_ == item; }
    void close() { item_.clear(); }
    // Draws the box if it is this item's. `name`: for scripts. `right`: the screen's x at which it ends.
    void draw(model::Session& session, std::string_view item, std::string_view name, float right);

  private:
    void draw_line(model::Session& session, const std::string& name, float right);
    void draw_ways(model::Session& session, const std::string& name, const model::TrialResult& result) const;

    std::string item_;                        // of the open box; empty: none
    std::string text_;                        // what is in the line
    std::string tried_;                       // what was tried
    bool reveal_ = false, settling_ = false;  // scrolls to the box until its result is in sight
};

}  // namespace shardscope::viewer::widgets
