// Tables of the compare panel's parts: kernels, operators, collectives and units by name, modules as a tree
// joined by path. Each has every run's time with bars in the run's colour, and for every run but the first
// the difference from the first. Pure numbers and text over an analysis result, no drawing; any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "traces/analysis/compare/compare_parts.h"
#include "viewer/tables/tree_model.h"

namespace shardscope::viewer {

struct RunHead {
    std::string name;
    Color color = 0;
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

// Times in us, data in MB (2^20 bytes), averaged over the ranks; per step, or over all kept steps.
class PartsModel final : public TableModel {
  public:
    PartsModel(std::shared_ptr<const traces::PartsComparison> comparison, const std::vector<RunHead>& runs,
               bool per_step);

    std::size_t rows() const override { return comparison_->parts.size(); }
    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override;
    Color ink(std::size_t row, std::size_t column) const override;

    const traces::ComparedPart& part(std::size_t row) const { return comparison_->parts[row]; }

  private:
    enum class What { name, time, difference, change, times, bytes, spread };
    struct Column {
        What what = What::name;
        std::size_t run = 0;
    };
    void add(What what, std::size_t run, TableColumn column);
    bool inside(const traces::ComparedPart& part, std::size_t run) const;

    std::shared_ptr<const traces::PartsComparison> comparison_;
    std::vector<double> factor_;  // by run: 1, or the number of kept steps
    std::vector<Column> what_;
};

// Rows are the modules of all runs. A row's total is its own device time and its children's.
class ComparedModules final : public TreeModel {
  public:
    ComparedModules(std::shared_ptr<const traces::PartsComparison> comparison,
                    const std::vector<RunHead>& runs, bool per_step);

    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override;
    Color ink(std::size_t row, std::size_t column) const override;

  private:
    enum class What { path, total, difference, change, own, times };
    struct Column {
        What what = What::path;
        std::size_t run = 0;
    };
    struct Sums {
        bool present = false;  // the module or one inside it
        double total = 0, own = 0, times = 0;
    };
    void add(What what, std::size_t run, TableColumn column);
    void build(const std::vector<double>& factor);

    std::shared_ptr<const traces::PartsComparison> comparison_;
    std::size_t runs_ = 0;
    std::vector<Column> what_;
    std::vector<Sums> sums_;  // by row * runs
};

}  // namespace shardscope::viewer
