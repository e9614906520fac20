// Which rows of a table are shown, in which order: filtered by text, sorted by one column, stably. Large
// tables are put in order on a thread; until then the order before stays, and busy() says so. Frame thread;
// no Dear ImGui.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/tables/table_model.h"

namespace shardscope::viewer {

struct TableSort {
    int column = -1;  // -1: the model's order
    bool descending = false;
    bool operator==(const TableSort&) const = default;
};

// The order itself. Rows where any cell's text holds `filter` (letters' case is ignored). Numbers before
// kNoNumber whatever the direction.
std::vector<std::uint32_t> table_order(const TableModel& model, const TableSort& sort,
                                       const std::string& filter);

class TableOrder {
  public:
    // The order for this; asked every frame. Models are told apart by their address and kept alive here.
    const std::vector<std::uint32_t>& of(const std::shared_ptr<const TableModel>& model,
                                         const TableSort& sort, const std::string& filter);
    bool busy() const { return next_.valid(); }

    static constexpr std::size_t kAtOnce = 20'000;  // rows; more are put in order on a thread

  private:
    std::shared_ptr<const TableModel> model_, wanted_model_;
    TableSort sort_, wanted_sort_;
    std::string filter_, wanted_filter_;
    std::vector<std::uint32_t> order_;
    std::future<std::vector<std::uint32_t>> next_;
};

}  // namespace shardscope::viewer
