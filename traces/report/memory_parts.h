// What both memory tables print, also for traces of other tools: the terms for what is counted, and the lines
// about the allocator, other memory spaces and failures. Internal to traces/report.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "traces/analysis/memory/memory.h"

namespace shardscope::traces::analysis {
struct RankAllocator;
}

namespace shardscope::traces::report {

// "Allocated device memory" or, if bytes count until their last use, "Active device memory ...".
std::string counted_title(const analysis::MemoryReport& report);
std::string counted_title(bool until_last_use, schema::MemorySpace space = schema::MemorySpace::device);

// "predicted 512 bytes (the same)": the prediction for the selected steps, compared with the measured peak;
// followed by the predicted peak of the whole run if that differs.
std::string predicted_text(const analysis::RankMemory& rank);
// " from step 1 on": the step from which the run has its predicted peak; else " in the whole run".
std::string since_step(const analysis::RankMemory& rank);

// Fragmentation at the peak; "" if the trace does not record segments.
std::string fragmentation_line(const analysis::RankMemory& rank);
// One line for each space besides the device's, and one for each failed allocation.
std::string spaces_and_failures(const analysis::RankMemory& rank);

// Says that communication memory grew from step to step, and the likely cause; "" if it did not grow.
std::string growth_text(const analysis::RankMemory& rank, std::size_t width);

nlohmann::ordered_json bytes_by_category(const analysis::CategoryBytes& bytes);
nlohmann::ordered_json memory_json(const analysis::RankMemory& rank);

// The failed requests (the first 40), each with whether it would have fitted in words.
analysis::ResultTable failed_requests_table(const analysis::RankAllocator& rank);

// One row per part, with the given columns in their order; columns of predictions are dropped if no part has
// one. Long names are shortened.
analysis::ResultTable parts_table(std::vector<analysis::MemoryPart> parts,
                                  std::initializer_list<analysis::ColumnChoice> columns);
// The same, closed by a row "total" below a rule.
analysis::ResultTable with_total(const std::vector<analysis::MemoryPart>& parts,
                                 std::initializer_list<analysis::ColumnChoice> columns);

// Whether any holder of memory has a name; "(no unit)" is not one.
bool names_somebody(const std::vector<analysis::MemoryHolder>& holders);

}  // namespace shardscope::traces::report
