// The results of a planner (SHARD_PLAN), as the Plan panel shows them: the rows in the order in which
// `shardscope-train plan` prints them, and their cells. No Dear ImGui; any thread. Only values that the
// planner has stored are shown; nothing is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/store/columns/trace.h"
#include "viewer/tables/table_model.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {

// The outcome for a configuration.
enum class PlanFate : std::uint8_t { front, fits, too_large, impossible, not_run };
inline constexpr std::size_t kPlanFates = 5;
PlanFate fate_of(const traces::schema::PlanRow& row);
std::string_view fate_words(PlanFate fate);  // "on the Pareto front", "does not fit"
theme::Color fate_color(PlanFate fate);

inline bool is_known(PlanFate fate) {  // it has a peak
    return fate != PlanFate::impossible && fate != PlanFate::not_run;
}

using PlanSettings = std::vector<std::pair<std::string, std::string>>;  // "fsdp.wrap", "module:Block"

struct PlanItem {
    const traces::schema::PlanRow* row = nullptr;
    PlanFate fate = PlanFate::not_run;
    PlanSettings settings;  // empty if the file's settings are not a JSON object
};

// A column that identifies a row: a key of its job, or a name for several keys (the strategy).
struct PlanChoice {
    std::string id, title;
    float width = 6;  // the column's, in font sizes
    std::function<std::string(const PlanSettings&)> value;
};

// The rows of a trace's plan: the front, fastest first; those that fit, fastest first; those that do not,
// smallest first; those that are impossible.
struct PlanList {
    std::shared_ptr<const traces::store::Trace> trace;  // keeps the rows alive
    std::vector<PlanItem> items;
    std::vector<PlanChoice> choices;  // keys that were given on the command line first
    std::vector<std::size_t> counts = std::vector<std::size_t>(kPlanFates);
    bool same_batch = true;  // all rows have the same number of samples per step, so that steps compare
    bool tokens = false;     // the model counts tokens, otherwise samples
    bool priced = false;
};
double ns_per_sample(const traces::schema::PlanRow& row);  // 0: unknown
bool is_time(double ns);                                   // finite and above 0

PlanList plan_list(std::shared_ptr<const traces::store::Trace> trace);

// The item with this row number; items.size() if there is none.
std::size_t item_of(const PlanList& list, int number);

// "504 configurations of gpt_7b.toml on h100_ib (NVIDIA H100): 212 fit, 280 do not, 12 are impossible"
std::string plan_counts(const PlanList& list);
// Why no configuration fits: the smallest peak and its configuration; empty if one fits.
std::string nothing_fits(const PlanList& list);

// --- the table --------------------------------------------------------------------------------------------

enum class PlanShow : std::uint8_t { all, fits, front };
struct PlanTable {
    std::shared_ptr<const tables::TableModel> model;
    std::vector<std::size_t> items;  // by row of the model
    std::string alike;               // settings common to all rows: "param=bf16, batch=2"
};
// `repeated`: includes rows with the same figures as an earlier one.
PlanTable plan_table(const PlanList& list, PlanShow show, bool repeated);

// --- one row ----------------------------------------------------------------------------------------------

struct PlanFact {
    std::string label, value;
};
// "wrap module:Block", "strategy FULL_SHARD": the row's cells in the columns of choices.
std::vector<PlanFact> plan_choices(const PlanList& list, const PlanItem& item);
// Peak, reserved, step time, throughput: those that are known, with units.
std::vector<PlanFact> plan_figures(const PlanList& list, const traces::schema::PlanRow& row);
// "--fsdp.wrap=root --data.batch=2", for a command line.
std::string plan_flags(const PlanSettings& settings);

}  // namespace shardscope::viewer::panels
