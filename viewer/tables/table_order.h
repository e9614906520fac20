// Which rows of a table are shown, and in which order: filtered by text, sorted by one column, stably. Large
// tables are sorted on a thread; until then the previous order stays, and busy() is true. Frame thread; no
// Dear ImGui.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/tables/table_model.h"

namespace shardscope::viewer::tables {

struct TableSort {
    int column = -1;  // -1: the model's order
    bool descending = false;
    bool operator==(const TableSort&) const = default;
};

// For work on a thread: `cancel` makes it end early, `done` grows from 0 to 1.
struct OrderProgress {
    std::atomic<bool> cancel = false;
    std::atomic<float> done = 0;
};

// Computes the order. Keeps rows in which any cell's text contains `filter` (ignoring case). Numbers come
// before kNoNumber in both directions; texts are compared by natural_less(). nullopt: it was cancelled.
std::optional<std::vector<std::uint32_t>> table_order(const TableModel& model, const TableSort& sort,
                                                      const std::string& filter, OrderProgress& progress);
std::vector<std::uint32_t> table_order(const TableModel& model, const TableSort& sort,
                                       const std::string& filter);

// "layers.2" before "layers.10", "a" beside "A": digits compare as numbers, letters ignoring case; ties are
// broken byte by byte, so that the order is total.
bool natural_less(std::string_view a, std::string_view b);

class TableOrder {
  public:
    TableOrder() = default;
    ~TableOrder();  // cancels; waits at most for one row's texts
    TableOrder(TableOrder&&) noexcept = default;
    TableOrder& operator=(TableOrder&&) noexcept;

    // The order for these arguments; asked every frame. Models are identified by their address and kept alive
    // here.
    const std::vector<std::uint32_t>& of(const std::shared_ptr<const TableModel>& model,
                                         const TableSort& sort, const std::string& filter);
    // The same as a shared pointer, to keep; nullptr while the order is not there yet.
    std::shared_ptr<const std::vector<std::uint32_t>> shared() const { return order_; }
    bool busy() const { return next_.valid(); }
    float progress() const { return progress_ ? progress_->done.load() : 1.0F; }
    static bool any_busy();  // of all tables of the program

    static constexpr std::size_t kAtOnce = 20'000;  // rows; larger tables are sorted on a thread

  private:
    struct Wanted {
        std::shared_ptr<const TableModel> model;
        TableSort sort;
        std::string filter;
        bool operator==(const Wanted&) const = default;
    };
    void cancel();

    Wanted shown_, next_for_;  // what `order_` is for, and what is being computed
    std::shared_ptr<const std::vector<std::uint32_t>> order_;
    std::shared_ptr<OrderProgress> progress_;
    std::future<std::optional<std::vector<std::uint32_t>>> next_;
};

// --- The tables' settings by id: sorting and hidden columns, so that they can be restored next time. Frame
// thread only. No Dear ImGui.

struct SavedTable {
    std::string sorted_by;  // a column's id; empty: the model's order
    bool descending = false;
    std::vector<std::string> hidden;  // columns' ids
    bool operator==(const SavedTable&) const = default;
};

// The settings of the running program; empty at first.
std::map<std::string, SavedTable>& table_memory();

}  // namespace shardscope::viewer::tables
