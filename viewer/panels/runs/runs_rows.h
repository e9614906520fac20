// The rows of the Runs panel's tables: the open files side by side, from the results of traces/analysis. No
// Dear ImGui; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/compare/compare.h"
#include "traces/analysis/facts/info.h"
#include "viewer/model/session.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

// One open file; nullptr members are still being read or computed.
struct RunFacts {
    const model::OpenTrace* entry = nullptr;
    std::shared_ptr<const traces::analysis::TraceInfo> info;
    std::shared_ptr<const std::vector<std::string>> faults, notes;
    std::shared_ptr<const traces::analysis::Comparison> figures;  // of this run alone, within its limit range
};

// "reading, 40 %", "cannot be read", else as run_state() says: "running, step 33, 1 s ago", "finished".
std::string state_of(const RunFacts& run);

// The faults that check found; a missing end is not a fault while the run is still going. nullopt: check is
// still running.
std::optional<std::vector<std::string>> faults_of(const RunFacts& run);

// A row of key figures for every file.
std::shared_ptr<const tables::TableModel> runs_table(const std::vector<RunFacts>& runs);

// A row for every configuration key with a column for every run; keys that differ are marked and come first.
// `only_differences`: omits the others.
std::shared_ptr<const tables::TableModel> configuration_table(const std::vector<RunFacts>& runs,
                                                              bool only_differences);
// Whether any run has a configuration; how many of its keys differ.
struct ConfigurationCount {
    std::size_t keys = 0, different = 0;
};
ConfigurationCount count_configuration(const std::vector<RunFacts>& runs);

// A row for every kind of row that a file may hold, with a column for every run.
std::shared_ptr<const tables::TableModel> counts_table(const std::vector<RunFacts>& runs);

// The ranks of a run: host, device and its memory.
std::shared_ptr<const tables::TableModel> devices_table(const traces::store::Trace& trace);

}  // namespace shardscope::viewer::panels
