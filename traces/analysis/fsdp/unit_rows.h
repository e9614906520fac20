// Builds the rows of the report on units (units.h): one for each rank, unit and phase. Internal to the
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/analysis/fsdp/units.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::analysis {

class UnitRows {
  public:
    explicit UnitRows(const std::vector<std::string>& names) : names_(names) {}

    // Position of the costs of a unit (or of none) in a step of its rank; `number`: the step's.
    struct Place {
        std::size_t row = 0, step = 0;
    };
    Place place(store::RankIndex rank, store::UnitIndex unit, schema::Phase phase, std::int32_t step,
                std::int64_t number);

    UnitCosts& costs(Place place) { return rows_[place.row].result.steps[place.step].costs; }
    // By unit: how much of the row's collectives its compute hid; the caller adds to it.
    std::unordered_map<store::UnitIndex, std::int64_t>& hidden(Place place) {
        return rows_[place.row].hidden;
    }

    // Moves the rows to their ranks, summed over their steps, and sums them over all ranks. `place_of_rank`:
    // by rank index, index into report.ranks.
    void finish(UnitsReport& report, std::span<const std::size_t> place_of_rank);

  private:
    struct Row {
        store::RankIndex rank;
        UnitPhase result;
        std::unordered_map<store::UnitIndex, std::int64_t> hidden;
        std::int32_t last_step = -1;
        std::size_t last_place = 0;
        std::vector<std::pair<std::int32_t, std::size_t>> order;  // step -> index into result.steps, sorted
    };
    std::size_t row(store::RankIndex rank, store::UnitIndex unit, schema::Phase phase);
    static std::size_t step(Row& row, std::int32_t step, std::int64_t number);
    std::string_view name(store::UnitIndex unit) const;
    void sum_over_steps(Row& row) const;
    void in_order(std::vector<UnitPhase>& rows);
    void sum_over_ranks(UnitsReport& report);

    const std::vector<std::string>& names_;  // of the units
    std::vector<Row> rows_;
    std::unordered_map<std::size_t, std::size_t> row_of_;      // by rank, unit and phase
    std::unordered_map<std::string_view, std::size_t> order_;  // by name
};

}  // namespace shardscope::traces::analysis
