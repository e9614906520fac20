// What the Collectives and Distributed panels show of traces/analysis: tables, and collectives counted by
// size. No drawing; any thread. Times in microseconds, GB/s = 10^9 bytes per second.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/communication/stragglers.h"
#include "viewer/tables/table_model.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::viewer::panels {

// One rank's collectives by operation. `stepped`: the trace names steps, so that there are figures per step.
std::shared_ptr<const tables::CellTable> operation_table(const traces::analysis::RankCollectives& rank,
                                                         bool stepped = true);

// When ranks arrived at collectives; `kind` none: over all operations, else index into
// StragglersReport::kinds.
std::shared_ptr<const tables::CellTable> straggler_table(const traces::analysis::StragglersReport& report,
                                                         int kind);

// One row per group, operation and size class.
std::shared_ptr<const tables::CellTable> traffic_table(const traces::analysis::DistributedReport& report);

// One row per axis of the mesh; null if no communicator's axis is known.
std::shared_ptr<const tables::CellTable> axis_table(const traces::analysis::DistributedReport& report);

// One row per rank, averaged over steps; over the whole trace if it names no steps.
std::shared_ptr<const tables::CellTable> rank_table(const traces::analysis::DistributedReport& report,
                                                    bool stepped = true);

// The collectives that the ranks waited for longest.
std::shared_ptr<const tables::CellTable> slowest_table(const traces::analysis::DistributedReport& report);

// One row per host; and one per kind of collective within and between hosts.
std::shared_ptr<const tables::CellTable> host_table(const traces::analysis::HostsReport& report);
std::shared_ptr<const tables::CellTable> host_traffic_table(const traces::analysis::HostsReport& report);

// The number of collectives of each operation by size: size classes as in Traffic, then the unknown sizes.
inline constexpr std::size_t kHistogramClasses = std::size(traces::analysis::kSizeClasses) + 2;
struct SizeHistogram {
    struct Operation {
        traces::schema::Operation operation = traces::schema::Operation::other;
        std::array<std::int64_t, kHistogramClasses> count{}, bytes{};
    };
    std::vector<Operation> operations;  // in the order of their first traffic
    std::int64_t most = 0;              // the highest count of a class, all operations together
};
SizeHistogram size_histogram(const traces::analysis::DistributedReport& report);
std::string size_class_text(std::size_t index);  // "64 KiB - 1 MiB", "size unknown"

theme::Color operation_color(traces::schema::Operation operation);

// --- The table of all collectives, one row each (traces/analysis/communication/collectives.h). No drawing;
// any thread. Times in microseconds, GB/s = 10^9 bytes per second.

class CollectiveTable final : public tables::LazyTable {
  public:
    CollectiveTable(std::shared_ptr<const std::vector<traces::analysis::CollectiveTimes>> list,
                    const traces::store::Trace& trace);
    theme::Color swatch(std::size_t row) const override { return operation_color((*list_)[row].operation); }

  private:
    std::shared_ptr<const std::vector<traces::analysis::CollectiveTimes>> list_;
    std::vector<std::string> units_;
};

}  // namespace shardscope::viewer::panels
