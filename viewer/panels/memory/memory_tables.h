// The rows of the Memory panel's tables, from the results of traces/analysis. Sizes in MiB. No
// Dear ImGui; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/memory/memory_explanation.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

using ModelPtr = std::shared_ptr<const tables::TableModel>;

// What the live bytes are grouped by.
enum class HolderKind { unit, module, buffer, annotation, stack };
inline constexpr int kHolderKinds = 5;
std::string_view holder_title(HolderKind kind);  // "FSDP unit"
const std::vector<traces::analysis::MemoryHolder>& holders_of(const traces::analysis::RankMemory& memory,
                                                              HolderKind kind);
// The kinds that are informative for these bytes: a list with the single entry "(no unit)" is not.
std::vector<HolderKind> told_kinds(const traces::analysis::RankMemory& memory);

// Whether there is a stored prediction to compare with.
bool has_prediction(const traces::analysis::RankMemory& memory);

ModelPtr category_table(const traces::analysis::RankMemory& memory);
ModelPtr holder_table(const traces::analysis::RankMemory& memory, HolderKind kind);
ModelPtr step_table(const traces::analysis::RankExplanation& rank);
ModelPtr rank_table(const traces::analysis::MemoryReport& report);
// Reserved, active and allocated bytes, and the layout of the allocator's memory.
ModelPtr pool_table(const traces::analysis::RankExplanation& rank);
// Two peaks side by side: categories, or holders joined by name.
ModelPtr compared_categories(const traces::analysis::RankMemory& here,
                             const traces::analysis::RankMemory& there);
ModelPtr compared_holders(const traces::analysis::RankMemory& here, const traces::analysis::RankMemory& there,
                          HolderKind kind);

// "The peak was reached by allocating 4.00 MiB (qkv.weight) for blocks.3, in the backward of step 2."; empty
// if the trace does not contain it.
std::string moment_sentence(const traces::analysis::RankExplanation& rank);

}  // namespace shardscope::viewer::panels
