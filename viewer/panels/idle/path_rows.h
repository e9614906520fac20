// The critical path as tables: its contents by name and by module, and piece by piece. Text and numbers over
// an analysis result (traces/analysis/path/critical_path.h), no drawing; any thread. Times in us, or ms since
// start.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/path/critical_path.h"
#include "traces/store/columns/trace.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

std::string_view path_kind_title(traces::analysis::PathKind kind);  // "Launch delay"
std::string_view path_kind_help(traces::analysis::PathKind kind);   // the definition
theme::Color path_kind_color(traces::analysis::PathKind kind);

std::string path_title(const traces::analysis::RankPath& path);  // "Rank 0", "Job"

std::shared_ptr<const tables::TableModel> path_share_table(const traces::analysis::RankPath& path,
                                                           bool stepped = true);
std::shared_ptr<const tables::TableModel> path_module_table(const traces::analysis::RankPath& path,
                                                            bool stepped = true);

// One row per piece, sorted by time. There may be millions: cells are made on demand.
class PathPieceTable final : public tables::LazyTable {
  public:
    // `path` points into `report`, which the table keeps alive with `trace`.
    PathPieceTable(std::shared_ptr<const traces::store::Trace> trace,
                   std::shared_ptr<const traces::analysis::CriticalPathReport> report,
                   const traces::analysis::RankPath& path);
    theme::Color swatch(std::size_t row) const override { return path_kind_color(piece(row).kind); }
    const traces::analysis::PathPiece& piece(std::size_t row) const { return path_.pieces[row]; }

  private:
    std::shared_ptr<const traces::store::Trace> trace_;
    std::shared_ptr<const traces::analysis::CriticalPathReport> report_;
    const traces::analysis::RankPath& path_;
};

// For each row of path_share_table() its longest piece, an index into RankPath::pieces; -1 none.
std::vector<std::int64_t> longest_pieces(const traces::analysis::RankPath& path);

// The factors as a part of the analyses' names: "1/0.5/1/1/1/1".
std::string factors_key(const traces::analysis::PathFactors& factors);
// The change that a what-if predicts: "-2.9 %".
std::string predicted_change(const traces::analysis::RankPath& path);

}  // namespace shardscope::viewer::panels
