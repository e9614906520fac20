// Tables of the compare panel: kernels, operators, collectives and units by name, modules as a tree joined by
// path, and what was allocated at the peaks. Each has every run's figure with bars in the run's colour, and
// for every run but the first the difference from the first. Pure numbers and text over analysis results, no
// drawing; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/compare/compare_parts.h"
#include "traces/analysis/memory/memory.h"
#include "viewer/tables/tree_model.h"

namespace shardscope::viewer::panels {

struct RunHead {
    std::string name;
    theme::Color color = 0;
};

// The headers of the runs' columns: "1: wrap=root", or "Run 1" for all if a name is too long for the width of
// so many columns; and the columns' width, in font sizes.
struct RunColumnHeads {
    std::vector<std::string> titles;
    float width = 8;
};
RunColumnHeads run_column_heads(const std::vector<RunHead>& runs);

// "+5.2", "-59.3", "0.0"; "new" and "gone" if a run does not have the part. `inside`: "~" is appended.
std::string change_text(bool present, double value, bool first_present, double first, bool inside);

// The figure of a run in a row; 0 if the run does not have the part.
struct RunValue {
    bool present = false;
    double value = 0;
};

// The number columns of such a table, each described once.
class RunColumns {
  public:
    using Value = std::function<RunValue(std::size_t row, std::size_t run)>;
    using Inside =
        std::function<bool(std::size_t row, std::size_t run)>;  // the difference is inside the spread
    static constexpr int kWholeOrTwo = -1;                      // decimals: none for a whole number, else two

    // Columns are appended to the model's. `judge_missing`: a part that only one run has is also coloured as
    // better or worse.
    explicit RunColumns(std::vector<tables::TableColumn>& columns, bool judge_missing = false)
        : columns_(columns), judge_missing_(judge_missing) {}

    // By run: its figure (id "run1_us" for the key "us"), the difference and the change. `meaning` follows
    // the run's name; `more` is a verb: "takes".
    struct Compared {
        std::string key, unit, meaning, more, change_meaning;
        int decimals = 1;
        Value value;
        Inside inside = {};
    };
    void compare(const std::vector<RunHead>& runs, const Compared& what);
    void add(tables::TableColumn column, std::size_t run, int decimals, Value value);
    // Bars of all runs have the same scale.
    void share_scale(std::size_t rows);

    // For columns after the first, which has the names.
    std::string text(std::size_t row, std::size_t column) const;
    double number(std::size_t row, std::size_t column) const;
    theme::Color ink(std::size_t row, std::size_t column) const;

  private:
    enum class What { value, difference, change };
    struct Column {
        What what = What::value;
        std::size_t run = 0;
        int decimals = 1;
        Value value;
        Inside inside;
    };
    std::vector<tables::TableColumn>& columns_;
    bool judge_missing_;
    std::vector<Column> what_ = {{}};  // by column
};

// The panel's texts for a kind of parts.
struct PartWords {
    std::string_view title, plural;
    std::string_view measured;  // "Device time by kernel"
    std::string_view record;    // what a trace needs in order to have them
};
const PartWords& words_of(traces::analysis::CompareBy by);

// Times in us, data in MiB, averaged over the ranks; per step, or over all kept steps.
class PartsModel final : public tables::TableModel {
  public:
    PartsModel(std::shared_ptr<const traces::analysis::PartsComparison> comparison,
               const std::vector<RunHead>& runs, bool per_step);

    std::size_t rows() const override { return comparison_->parts.size(); }
    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override { return figures_.number(row, column); }
    theme::Color ink(std::size_t row, std::size_t column) const override { return figures_.ink(row, column); }

  private:
    std::shared_ptr<const traces::analysis::PartsComparison> comparison_;
    RunColumns figures_{columns_};
};

// Rows are the modules of all runs. A row's total is its own device time and its children's.
class ComparedModules final : public tables::TreeModel {
  public:
    ComparedModules(const std::shared_ptr<const traces::analysis::PartsComparison>& comparison,
                    const std::vector<RunHead>& runs, bool per_step);

    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override { return figures_.number(row, column); }
    theme::Color ink(std::size_t row, std::size_t column) const override { return figures_.ink(row, column); }

  private:
    struct Sums {
        bool present = false;  // the module or one inside it
        double total = 0, own = 0, times = 0;
    };
    void build(const traces::analysis::PartsComparison& comparison, const std::vector<double>& factor);

    std::size_t runs_ = 0;
    std::vector<Sums> sums_;  // index: row * runs_ + run
    RunColumns figures_{columns_};
};

enum class MemoryBy { category, unit, module, buffer };

// The rank with the largest peak; nullptr if no rank has one.
const traces::analysis::RankMemory* largest_rank(const traces::analysis::MemoryReport& report);

// Sizes in MiB. The first row is the peak itself; the others sum to it.
class MemoryModel final : public tables::TableModel {
  public:
    // One rank for each run; nullptr: the run recorded no allocations.
    MemoryModel(const std::vector<RunHead>& runs,
                const std::vector<const traces::analysis::RankMemory*>& ranks, MemoryBy by);

    std::size_t rows() const override { return rows_.size(); }
    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override { return figures_.number(row, column); }
    theme::Color swatch(std::size_t row) const override { return rows_[row].swatch; }
    theme::Color ink(std::size_t row, std::size_t column) const override { return figures_.ink(row, column); }

  private:
    struct Row {
        std::string name;
        std::vector<RunValue> bytes;  // by run
        theme::Color swatch = 0;
    };
    RunValue& value_of(const std::string& name, std::size_t run, theme::Color swatch = 0);

    std::vector<Row> rows_;
    RunColumns figures_{columns_, true};
};

}  // namespace shardscope::viewer::panels
