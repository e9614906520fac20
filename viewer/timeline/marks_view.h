// The list of a trace's marks and ranges: go to one, rename it, delete it, limit the analyses to it. Drawing
// layer (Dear ImGui); frame thread only.
#pragma once

#include <memory>
#include <string>

#include "viewer/model/marks.h"
#include "viewer/model/session.h"
#include "viewer/tables/table.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

class MarksView {
  public:
    // Draws into the content region.
    void draw(model::Session& session, const TimelinePage& page, model::MarkFile& file);

    // The current mark; -1 none.
    int chosen() const { return chosen_; }
    // Chooses it; with `edit` its text can be overwritten once the list shows.
    void choose(const model::MarkFile& file, int index, bool edit = false);
    void go_to(model::Session& session, const TimelinePage& page, const model::MarkFile& file, int index);
    bool shown = false;  // the list

  private:
    void update(const model::MarkFile& file);
    void draw_editor(model::Session& session, model::MarkFile& file);

    int chosen_ = -1;
    bool edit_ = false;
    std::string text_;  // of the chosen mark while it is edited
    model::MarkBook model_of_;
    std::shared_ptr<const tables::TableModel> model_;
    tables::TableState table_;
};

}  // namespace shardscope::viewer::timeline
