// The comparison that ends a sweep; only formatting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/cli/sweep_grid.h"

namespace shardscope::trainer::cli {

// Whether a combination has figures, and if not, why.
enum class SweepOutcome : std::uint8_t { done, impossible, failed, stopped, not_run };

struct SweepFigures {
    std::int64_t peak_bytes = 0;                // allocated, on the rank with the largest peak
    std::int64_t reserved_bytes = 0;            // reserved by a rank's pool, largest of the ranks
    double step_us = 0;                         // mean over steps and ranks
    double first_loss = 0, last_loss = 0;       // NaN: there are none (a simulation)
    double collective_bytes = 0;                // full buffers, per step, mean over ranks
    double exposed_us = 0;                      // communication outside compute, per step, mean over ranks
    std::optional<double> utilization_percent;  // of the devices, in a simulation
    double to_loss_us = 0;                      // until SweepResult::to_loss was reached; NaN: it was not
};

// What the Plan predicts before anything runs.
struct SweepForecast {
    std::int64_t peak_bytes = 0;        // of each rank
    std::int64_t collectives = 0;       // per steady step
    std::int64_t collective_bytes = 0;  // full buffers, per steady step
    double learning_rate = 0;           // after the warm-up
    std::int64_t items = 0;             // tokens, images or samples of a step, over all ranks
    std::string item_name;              // "tokens"
};

struct SweepRow {
    std::vector<job::Override> settings;
    std::string trace;  // "" in a dry run
    SweepOutcome outcome = SweepOutcome::not_run;
    std::string error;                        // a sentence, if the outcome is not `done`
    std::optional<std::int64_t> diverged_at;  // the step from which its losses were too large, or not finite
    std::optional<SweepForecast> forecast;
    std::optional<SweepFigures> figures;
};

struct SweepResult {
    std::vector<SweepAxis> axes;
    std::vector<SweepRow> rows;
    bool dry_run = false;
    std::optional<double> to_loss;  // the times until this loss are wanted
};

// One row per combination.
std::string sweep_table(const SweepResult& result);

// {"runs":[{"settings":{"fsdp.wrap":"root"},"trace":"...","peak_bytes":n,...,"error":null}]}. Figures that a
// run does not have are absent; its error is then a sentence. "diverged_at" is there for a run that diverged.
std::string sweep_json(const SweepResult& result);

}  // namespace shardscope::trainer::cli
