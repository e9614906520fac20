// A column of indices into another table that most traces fill and some leave empty (a trace of devices alone
// has no launches): without any value it takes no memory, whatever its length. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "traces/store/columns/column.h"

namespace shardscope::traces::store {

class IndexColumn {
  public:
    static constexpr std::int32_t kNone = -1;

    // Sets the number of rows, none with a value.
    void reset(std::size_t rows) {
        rows_ = rows;
        values_.clear();
    }
    void set(std::size_t row, std::int32_t value) {
        if (values_.empty()) {
            if (value == kNone) return;
            values_.assign(rows_, kNone);
        }
        values_[row] = value;
    }
    std::int32_t operator[](std::size_t row) const { return values_.empty() ? kNone : values_[row]; }
    std::size_t size() const { return rows_; }
    bool empty() const { return rows_ == 0; }
    // A plain vector with one value per row.
    std::vector<std::int32_t> all() const {
        return values_.empty() ? std::vector<std::int32_t>(rows_, kNone)
                               : std::vector<std::int32_t>(values_.begin(), values_.end());
    }
    // The values, none if there is none in any row; for what keeps a column in a file.
    const Column<std::int32_t>& values() const { return values_; }
    void set_values(std::size_t rows, Column<std::int32_t> values) {
        rows_ = rows;
        values_ = std::move(values);
    }
    std::size_t memory() const { return values_.memory(); }  // bytes on the heap

  private:
    std::size_t rows_ = 0;
    Column<std::int32_t> values_;
};

}  // namespace shardscope::traces::store
