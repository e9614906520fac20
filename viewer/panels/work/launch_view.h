// Launch sizes and copies as the trace's database tells them (launch_rows.h), read on a thread when they are
// asked for. Another trace than a database is imported to a temporary one first, if the person wants that.
// Drawing layer (Dear ImGui); frame thread only.
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

namespace shardscope::viewer {

class LaunchView {
  public:
    // For scripts: the tables "kernels.launches" and "kernels.copies", "kernels.import".
    void draw_launches(Session& session);
    void draw_copies(Session& session);
    bool busy() const { return runner_.running(); }
    // Only rows that hold this text; empty shows all.
    void show_only(const std::string& name) { launches_state_.filter = name; }

  private:
    enum Part { launches, copies };
    struct Asked {
        std::weak_ptr<const traces::Trace> of;  // for this trace in this limit range
        std::optional<TimeRange> limit;
        bool there = false;
        std::string error;
    };
    bool ready(Session& session, Part part);  // else says why not, and asks where it may
    bool may_ask(Session& session, const TraceFiles& files);
    void take_answer();
    static void go_to(Session& session, int rank, std::int64_t start, std::int64_t length);

    QueryRunner runner_;
    Asked asked_[2];
    std::optional<Part> pending_;
    std::shared_ptr<const std::vector<Launches>> launches_;
    std::shared_ptr<const std::vector<Copies>> copies_;
    std::weak_ptr<const traces::Trace> seen_;
    bool database_ = false, allowed_ = false;  // of seen_: needs no import; the import was asked for
    TableState launches_state_, copies_state_;
    KeptModel launches_model_, copies_model_;
};

}  // namespace shardscope::viewer
