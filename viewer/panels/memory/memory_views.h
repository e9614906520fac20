// The lower half of the Memory panel: what is allocated at the peak or at the cursor, the peak of every step
// and rank, every allocation, the pool, and a comparison with another run. Drawing layer; frame thread only.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "traces/analysis/memory/allocations.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "viewer/draw/fold.h"
#include "viewer/model/session.h"
#include "viewer/panels/memory/memory_tables.h"
#include "viewer/tables/table.h"
#include "viewer/widgets/kept_model.h"

namespace shardscope::viewer::panels {

// What the panel has computed for this frame.
struct MemoryFacts {
    model::TracePtr trace;
    model::OpenTrace* entry = nullptr;
    traces::store::RankIndex rank_index;
    traces::schema::MemorySpace space = traces::schema::MemorySpace::device;
    std::shared_ptr<const traces::analysis::MemoryReport> report;
    const traces::analysis::RankMemory* memory = nullptr;  // the rank's, in *report
    std::shared_ptr<const draw::CategoryCurve> curve;
    std::shared_ptr<const traces::analysis::MemoryExplanation>
        explanation;  // nullptr: other space, or not computed yet
    const traces::analysis::RankExplanation* explained = nullptr;  // the rank's, in *explanation
    const model::OpenTrace* other = nullptr;                       // the run to compare with
    std::shared_ptr<const traces::analysis::MemoryReport> other_report;
    const traces::analysis::RankMemory* other_memory = nullptr;
};

class MemoryViews {
  public:
    void draw(model::Session& session, const MemoryFacts& facts);
    // The cursor was set on a curve: shows what is allocated at that time.
    void show_cursor() {
        view_ = View::live;
        at_cursor_ = 1;
    }
    void forget(const traces::store::Trace& trace, const model::TracePtr& successor);

  private:
    enum class View { live, steps, allocations, ranks, pool, other_run };
    void draw_live(model::Session& session, const MemoryFacts& facts);
    void draw_holders(const MemoryFacts& facts,
                      const std::shared_ptr<const traces::analysis::MemoryReport>& report,
                      const traces::analysis::RankMemory& memory, std::size_t place);
    void draw_steps(model::Session& session, const MemoryFacts& facts);
    void draw_allocations(model::Session& session, const MemoryFacts& facts);
    void draw_ranks(model::Session& session, const MemoryFacts& facts);
    void draw_pool(const MemoryFacts& facts);
    void draw_other_run(const MemoryFacts& facts);
    bool choose_kind(const char* id, const std::vector<HolderKind>& told, HolderKind& kind);
    // The report for the cursor's instant; while it is being computed, the previous one.
    std::shared_ptr<const traces::analysis::MemoryReport> at_cursor(model::Session& session,
                                                                    const MemoryFacts& facts);

    View view_ = View::live;
    int at_cursor_ = 0;  // view of live memory: 0 at the peak, 1 at the cursor

    struct Holders {
        HolderKind kind = HolderKind::unit;
        bool chosen = false;  // chosen by the user
        widgets::KeptModel model;
        tables::TableState state;
    };
    std::array<Holders, 2> holders_;

    struct Instant {
        model::TracePtr trace;
        int rank = -1;
        traces::schema::MemorySpace space = traces::schema::MemorySpace::device;
        std::int64_t time = 0;
        bool operator==(const Instant&) const = default;
    };
    Instant asked_, shown_;
    bool waiting_ = false;
    std::shared_ptr<const traces::analysis::MemoryReport> instant_;

    widgets::KeptModel categories_model_, steps_model_, ranks_model_, pool_model_, allocations_model_,
        compared_categories_model_, compared_holders_model_;
    tables::TableState categories_, steps_, ranks_, pool_, allocations_, compared_categories_,
        compared_holders_;
    HolderKind compared_kind_ = HolderKind::unit;
};

}  // namespace shardscope::viewer::panels
