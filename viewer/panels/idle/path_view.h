// The critical path on the screen: its composition on every rank, what-if sliders, and its contents by name,
// by module and piece by piece. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "viewer/model/session.h"
#include "viewer/panels/idle/path_rows.h"
#include "viewer/tables/table.h"
#include "viewer/widgets/kept_model.h"

namespace shardscope::viewer::panels {

class PathView {
  public:
    void draw(model::Session& session);
    // Drops the table of pieces, which reads a trace that has gone.
    void forget() {
        for (widgets::KeptModel& model : models_) model.forget();
        for (tables::TableState& state : states_) state.forget_model();
    }

  private:
    using Report = std::shared_ptr<const traces::analysis::CriticalPathReport>;
    const traces::analysis::RankPath* chosen(const Report& report, const model::Session& session) const;
    void draw_paths(model::Session& session, const Report& report, const traces::analysis::RankPath& path,
                    float most);
    void draw_what_if(model::Session& session, const traces::analysis::RankPath& path);
    void draw_sliders();
    void draw_prediction(model::Session& session, const traces::analysis::RankPath& path);
    void draw_table_of(model::Session& session, const Report& report, const traces::analysis::RankPath& path);
    void go_to_longest(model::Session& session, const Report& report, const traces::analysis::RankPath& path);
    void go_to(model::Session& session, const traces::analysis::PathPiece& piece);

    bool job_ = true;  // show the job's path, if there is one; else that of the chosen rank
    traces::store::RankIndex last_rank_;
    int view_ = 0;  // names, modules, pieces
    traces::analysis::PathFactors sliders_ = traces::analysis::kUnscaled,
                                  asked_ = traces::analysis::kUnscaled;
    std::optional<std::size_t> wanted_share_;  // a name that was opened: its longest piece is searched for
    tables::TableState states_[3];
    widgets::KeptModel models_[3];
};

}  // namespace shardscope::viewer::panels
