// The Units panel's tables: the rows of traces/analysis/fsdp/units.h. Sums as the analysis returns them (and
// JSON prints them), or divided by the steps (as in the text table). No drawing; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "traces/analysis/fsdp/shard_states.h"
#include "traces/analysis/fsdp/units.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

// Unit and phase together name a row: "blocks.0 forward". `means_of`: steps to average over; none: sums.
std::shared_ptr<const tables::CellTable> unit_table(const std::vector<traces::analysis::UnitPhase>& rows,
                                                    std::optional<std::int64_t> means_of);
// One row per rank, all units together: means over steps, or sums.
std::shared_ptr<const tables::CellTable> unit_rank_table(const traces::analysis::UnitsReport& report,
                                                         bool means);

std::string unit_row_name(const traces::analysis::UnitPhase& row);

// A sentence about units that are gathered again right after they were freed, empty if there are none.
// `stepped`: the trace names steps.
std::string regather_text(const std::vector<traces::analysis::UnitPhase>& rows, std::int64_t steps,
                          bool stepped);

// The unit's first gather on the rank at or after `from`: a DeviceEvents row, -1 none. With several phases:
// the first that starts in the phase, if collectives record it.
std::int32_t first_gather(const traces::store::Trace& trace, const traces::analysis::ShardStates& states,
                          traces::store::RankIndex rank, std::string_view unit, traces::schema::Phase phase,
                          std::int64_t from);

}  // namespace shardscope::viewer::panels
