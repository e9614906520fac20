// Follows the modules of a step's forward as their ranges open and close: builds the nodes of the LiftedStep
// and records which part of them was running at each time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/store/columns/trace.h"
#include "trainer/lift/lifted.h"

namespace shardscope::trainer::lift {

// A place for the model's own work: a segment of a call; node -1: the loss.
struct Place {
    int node = -1;
    std::size_t call = 0, segment = 0;
    std::int64_t since = 0;  // when its forward began
};

class ModulePlaces {
  public:
    // Adds nodes to `step`. `ours`: the trace is from our trainer.
    ModulePlaces(const traces::store::Trace& trace, bool ours, LiftedStep& step);

    // Adds a root for everything that the step did.
    void add_whole_model();
    // The same, and its forward begins at `time`.
    void open_whole_model(std::int64_t time);
    // Called when a module's range opens and closes.
    void open(std::int32_t range, std::int64_t time);
    void close(std::int32_t range, std::int64_t time);

    // The innermost open module; null: none is open.
    const Place* current() const { return open_places_.empty() ? nullptr : &open_places_.back(); }
    // The forward's place at a time; null: before the first module.
    const Place* at(std::int64_t time) const;
    // The module's latest place that the backward, which visits places in reverse, has not passed yet; null:
    // the module was not called.
    const Place* next_of(int node);

    // Each returns -1 if there is no such node.
    int node_of_row(int module_row) const;  // traces::schema::ModuleRow::id
    int node_named(std::string_view name) const;
    int node_of_path(std::string_view path) const;
    // Nodes by the row of the module table.
    const std::map<int, int>& nodes_of_rows() const { return node_of_row_; }
    const traces::schema::ModuleRow* row(int module_row) const;

  private:
    struct Open {
        std::int32_t range = -1;
        int node = -1;  // -1: a wrapper
    };
    Node& node(int id) { return step_.nodes[static_cast<std::size_t>(id)]; }
    int add_node(const traces::schema::ModuleRow* row, const std::string& name, const std::string& class_name,
                 bool unit);

    const traces::store::Trace& trace_;
    const bool ours_;
    LiftedStep& step_;
    std::unordered_map<int, const traces::schema::ModuleRow*> rows_;
    std::vector<Open> open_;
    bool wrapped_ = false;                              // the next module to open has its own FSDP wrapper
    std::map<std::pair<int, std::string>, int> known_;  // node by parent and name
    std::map<int, int> node_of_row_;
    std::map<std::string, int, std::less<>> node_of_name_;
    std::vector<std::string> paths_;  // by node
    std::vector<Place> places_;       // in order of time
    std::vector<Place> open_places_;  // by open module
    std::size_t next_place_ = 0;      // position of the backward, counted from the end of places_
};

// Items of the backward at a place.
std::vector<Item>& backward_of(LiftedStep& step, const Place& place);

}  // namespace shardscope::trainer::lift
