// A column of indices into another table that most traces fill and some leave empty (a trace of devices alone
// has no launches): without any value it takes no memory, whatever its length. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscope::traces::store {

class IndexColumn {
  public:
    static constexpr std::int32_t kNone = -1;

    // Sets the number of rows, none with a value.
    void reset(std::size_t rows) {
        rows_ = rows;
        values_.clear();
        values_.shrink_to_fit();
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
        return values_.empty() ? std::vector<std::int32_t>(rows_, kNone) : values_;
    }
    std::size_t memory() const { return values_.capacity() * sizeof(std::int32_t); }  // bytes on the heap

  private:
    std::size_t rows_ = 0;
    std::vector<std::int32_t> values_;
};

}  // namespace shardscope::traces::store
