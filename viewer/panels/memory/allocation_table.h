// Every allocation of a rank as a table of any length. Times in ms, sizes in bytes. No Dear ImGui; any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/memory/allocations.h"
#include "viewer/model/analysis_cache.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

// A row costs nothing until it is shown.
class AllocationTable final : public tables::LazyTable {
  public:
    AllocationTable(model::TracePtr trace, std::shared_ptr<const traces::analysis::Allocations> allocations);
    theme::Color swatch(std::size_t row) const override {
        return theme::category_color(trace_->memory.category[memory_row(row)]);
    }
    // The allocation's row in Trace::memory.
    std::uint32_t memory_row(std::size_t row) const { return allocations_->row[row]; }
    std::int64_t freed_ns(std::size_t row) const { return allocations_->freed_ns[row]; }

  private:
    model::TracePtr trace_;
    std::shared_ptr<const traces::analysis::Allocations> allocations_;
    std::vector<std::string_view> units_, modules_;  // by id
};

}  // namespace shardscope::viewer::panels
