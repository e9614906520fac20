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

namespace shardscope::viewer {

// A row costs nothing until it is shown.
class AllocationTable final : public TableModel {
  public:
    AllocationTable(TracePtr trace, std::shared_ptr<const traces::Allocations> allocations);
    std::size_t rows() const override { return allocations_->size(); }
    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override;
    Color swatch(std::size_t row) const override;
    // The allocation's row in Trace::memory.
    std::uint32_t memory_row(std::size_t row) const { return allocations_->row[row]; }
    std::int64_t freed_ns(std::size_t row) const { return allocations_->freed_ns[row]; }

  private:
    enum class Field {
        time,
        bytes,
        lifetime,
        category,
        unit,
        module,
        buffer,
        phase,
        space,
        address,
        annotation,
        stack
    };
    void add(Field field, TableColumn column);
    std::string_view name_of(const std::vector<std::string_view>& names, int id) const;

    TracePtr trace_;
    std::shared_ptr<const traces::Allocations> allocations_;
    std::vector<Field> fields_;                      // parallel to columns_
    std::vector<std::string_view> units_, modules_;  // by id
};

}  // namespace shardscope::viewer
