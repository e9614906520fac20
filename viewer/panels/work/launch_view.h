// Launch sizes and copies from the trace's database (launch_rows.h), read on a thread on demand. A trace that
// is not a database is imported to a temporary one first, if the user agrees. Drawing layer (Dear ImGui);
// frame thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/session.h"
#include "viewer/panels/query/query_runner.h"
#include "viewer/panels/work/launch_rows.h"
#include "viewer/tables/table.h"
#include "viewer/widgets/kept_model.h"

namespace shardscope::viewer::panels {

class LaunchView {
  public:
    // `import`: the name, for scripts, of the button that agrees to the import.
    explicit LaunchView(const char* import) : import_(import) {}

    void draw_launches(model::Session& session);  // the table "kernels.launches"
    // `id`: of the table; `name`: of its exports.
    void draw_copies(model::Session& session, const char* id, const char* name);
    bool busy() const { return runner_.running(); }
    // Only rows that hold this text; empty shows all.
    void show_only(const std::string& name) { launches_state_.filter = name; }

  private:
    enum Part { launches, copies };
    struct Asked {
        std::weak_ptr<const traces::store::Trace> of;  // the trace and limit range they are for
        std::optional<model::TimeRange> limit;
        TraceFiles files;
        std::size_t ranks = 0;
        bool there = false;
        std::string error;
    };
    bool ready(model::Session& session,
               Part part);  // else shows the reason, and asks for the import if needed
    bool may_ask(model::Session& session, const TraceFiles& files);
    void take_answer();
    static void go_to(model::Session& session, traces::store::RankIndex rank, std::int64_t start,
                      std::int64_t length);

    const char* import_;
    QueryRunner runner_;
    Asked asked_[2];
    std::optional<Part> pending_;
    std::shared_ptr<const std::vector<Launches>> launches_;
    std::shared_ptr<const std::vector<Copies>> copies_;
    std::weak_ptr<const traces::store::Trace> seen_;
    TraceFiles seen_files_;
    bool database_ = false, allowed_ = false;  // about seen_: needs no import; the import was allowed
    tables::TableState launches_state_, copies_state_;
    widgets::KeptModel launches_model_, copies_model_;
};

}  // namespace shardscope::viewer::panels
