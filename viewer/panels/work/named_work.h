// Work by name, as several panels show it: the largest names as a bar of shares, a table of all, and under it
// a line that leads to the chosen row's events in the timeline. Drawing layer (Dear ImGui); frame thread
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "viewer/model/session.h"
#include "viewer/panels/work/operator_rows.h"
#include "viewer/tables/table.h"

namespace shardscope::viewer::panels {

// Rows of DeviceEvents or HostRanges, sorted by start.
using Occurrences = std::shared_ptr<const std::vector<std::uint32_t>>;

// One rank of a report. For scripts, with the panel's name as ID: "ID.shares" if there are shares, the table
// "ID"; "ID.longest", "ID.previous", "ID.next" and "ID.occurrence" ("3 of 32") of the line under it.
class NamedWork {
  public:
    struct Rows {
        std::shared_ptr<const tables::TableModel> model;
        std::vector<NameShare> shares;
    };
    struct Chosen {
        std::string name;
        Occurrences events;  // nullptr: not found yet
    };

    explicit NamedWork(const char* id, model::EventKind kind) : id_(id), kind_(kind) {}

    // make() returns the Rows; called when the report or the rank changes.
    template <class Make>
    void take(const std::shared_ptr<const void>& report, const void* rank, const Make& make) {
        if (report_ == report && rank_ == rank) return;
        report_ = report;
        rank_ = rank;
        rows_ = make();
    }

    // `chosen` returns the events of the chosen row.
    void draw(model::Session& session, const std::function<Chosen(std::size_t row)>& chosen);

    const std::string& name() const { return name_; }  // of the chosen row; empty: none

  private:
    const char* id_;
    model::EventKind kind_;
    std::shared_ptr<const void> report_;
    const void* rank_ = nullptr;
    Rows rows_;
    tables::TableState state_;
    std::string name_;
    bool wants_longest_ = false;
};

}  // namespace shardscope::viewer::panels
