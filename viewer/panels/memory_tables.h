// The rows of the Memory panel's tables, from the results of traces/analysis. Sizes in MB of 2^20 bytes. No
// Dear ImGui; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/allocations.h"
#include "traces/analysis/memory_explanation.h"
#include "viewer/app/analysis_cache.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer {

using ModelPtr = std::shared_ptr<const TableModel>;

// What the live bytes are told apart by.
enum class HolderKind { unit, module, buffer, annotation, stack };
inline constexpr int kHolderKinds = 5;
std::string_view holder_title(HolderKind kind);  // "FSDP unit"
const std::vector<traces::MemoryHolder>& holders_of(const traces::RankMemory& memory, HolderKind kind);
// Those that tell anything here: a list of one that names nobody ("(no unit)") does not.
std::vector<HolderKind> told_kinds(const traces::RankMemory& memory);

// Whether a stored prediction stands beside what is shown.
bool has_prediction(const traces::RankMemory& memory);

ModelPtr category_table(const traces::RankMemory& memory);
ModelPtr holder_table(const traces::RankMemory& memory, HolderKind kind);
ModelPtr step_table(const traces::RankExplanation& rank);
ModelPtr rank_table(const traces::MemoryReport& report);
// Reserved, active and allocated bytes, and how the allocator's memory lies.
ModelPtr pool_table(const traces::RankExplanation& rank);
// Two peaks side by side: categories, or what holds them joined by name.
ModelPtr compared_categories(const traces::RankMemory& here, const traces::RankMemory& there);
ModelPtr compared_holders(const traces::RankMemory& here, const traces::RankMemory& there, HolderKind kind);

// "The peak was reached by allocating 4.00 MB (qkv.weight) for blocks.3, in the backward of step 2."; empty
// where the trace does not tell.
std::string moment_sentence(const traces::RankExplanation& rank);

// Every allocation, as a table of any length: a row costs nothing until it is looked at.
class AllocationTable final : public TableModel {
  public:
    AllocationTable(TracePtr trace, std::shared_ptr<const traces::Allocations> allocations);
    std::size_t rows() const override { return allocations_->size(); }
    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override;
    Color swatch(std::size_t row) const override;
    // Row of Trace::memory.
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
    std::vector<Field> fields_;                      // of columns_
    std::vector<std::string_view> units_, modules_;  // by id
};

}  // namespace shardscope::viewer
