// How a step is lifted: the state of lift_step (step_lifter.h). Internal to the library: the forward, the
// backward and their items are in step_lifter.cpp, memory in step_memory.cpp, parameters in
// step_parameters.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/store/columns/trace.h"
#include "trainer/lift/step_lifter.h"

namespace shardscope::trainer::lift {

// Where the model's own work goes: a segment of a call; node -1: the loss.
struct Place {
    int node = -1;
    std::size_t call = 0, segment = 0;
    std::int64_t since = 0;  // when its forward began
};

class StepLifter {
  public:
    StepLifter(const traces::Trace& trace, const HostRangeRoles& roles, const HostPoints& points,
               traces::Interval host, const StepLifterOptions& options)
        : trace_(trace),
          roles_(roles),
          all_(points),
          rank_(points.rank()),
          host_(host),
          options_(options),
          points_(points.of(host)) {
        for (const traces::ModuleRow& row : trace.modules) rows_.emplace(row.id, &row);
    }

    LiftedRecording run();

  private:
    enum class Part : std::uint8_t { before, data, forward, loss, backward, tail };

    void find_parts();
    void add_whole_model();
    Part part_of(std::int64_t time) const;
    void take(const Point& point);
    void open(const Point& point);
    void close(const Point& point);
    void work(const Point& point);
    void collective(const Point& point, std::int32_t row);
    // The host's time so far does not belong to the model.
    void charge_engine(const Point& point) {
        const bool optimizer = roles_.optimizer(point.range);
        (optimizer ? out_.engine.optimizer_host_ns : out_.engine.host_ns) += std::exchange(gap_, 0);
    }
    void allocate(const Point& point);
    void free(const Point& point);
    bool is_engine(const Point& point) const;
    bool is_engine_memory(std::size_t m) const;
    void add(const Point& point, Item item);
    std::vector<Item>& backward_items(const Point& point);
    Place* place_of_module(int node);
    void flush_ready();
    int gradient_of(const Point& point, Place& place);
    int parameter_named(std::string_view path, int node, std::int64_t elements);
    int node_of_path(std::string_view path) const;
    int add_parameter(int owner, LiftedParameter parameter);
    void complete_parameters();
    void complete_by_table();
    void read_shapes();
    void read_gathers();
    struct UnitParameters;
    UnitParameters parameters_of_unit(int unit, std::int64_t element_bytes);
    std::vector<std::pair<int, int>> gathered_once(UnitParameters& known, std::int64_t elements);
    void share(std::vector<std::pair<int, int>> pairs);
    void replace_parameter(int gone, int kept);
    void complete_by_buckets();
    void read_buckets();
    void place_gradients();
    const Place* place_at(std::int64_t time) const;
    std::vector<Item>& items_of(const Place& place) {
        if (place.node < 0) return out_.step.loss.backward;
        return node(place.node).calls[place.call].own[place.segment].backward;
    }
    std::string_view text(traces::StringId id) const { return trace_.strings[id]; }
    Node& node(int id) { return out_.step.nodes[static_cast<std::size_t>(id)]; }
    const traces::ModuleRow* row_of(std::int32_t range) const {
        const auto found = rows_.find(trace_.ranges.module[static_cast<std::size_t>(range)]);
        return found == rows_.end() ? nullptr : found->second;
    }

    const traces::Trace& trace_;
    const HostRangeRoles& roles_;
    const HostPoints& all_;
    const int rank_;
    const traces::Interval host_;
    const StepLifterOptions& options_;
    const std::vector<Point> points_;
    std::unordered_map<int, const traces::ModuleRow*> rows_;
    LiftedRecording out_;

    traces::Interval root_{}, backward_{};  // in the last micro-batch
    std::int64_t micro_start_ = 0;

    struct Open {
        std::int32_t range = -1;
        int node = -1;  // -1: a wrapper
    };
    std::vector<Open> open_;
    bool wrapped_ = false;                              // the next module to open is inside its own wrapper
    std::map<std::pair<int, std::string>, int> known_;  // node by parent and name
    std::map<int, int> node_of_row_;                    // traces::ModuleRow::id -> node
    std::map<std::string, int, std::less<>> node_of_name_;
    std::vector<std::string> paths_;  // by node
    std::vector<Place> places_;       // in order of time
    std::vector<Place> open_places_;  // by open module
    std::size_t next_place_ = 0;      // the backward's, from the end of places_ down
    std::int32_t group_ = -2;         // the autograd node that the backward is in
    Place group_place_;
    std::vector<std::pair<int, Place>> ready_;          // parameters that the group completes
    std::unordered_map<std::uint64_t, int> live_;       // address -> buffer, -1: not the model's
    std::map<std::pair<int, int>, bool> has_gradient_;  // (parameter, node)
    std::map<std::string, int> parameter_of_path_;

    struct BucketMark {
        Place place;
        std::size_t position = 0;
        std::int64_t bytes = 0;
    };
    std::vector<BucketMark> buckets_;
    std::vector<std::int64_t> gathers_;  // bytes, in the forward

    std::int64_t now_ = 0;       // the host time that is accounted for so far
    std::int64_t gap_ = 0;       // host time since then, for the next point
    bool engine_since_ = false;  // engine work was seen since the model's last kernel
    std::map<int, std::int64_t> stream_end_;
};

}  // namespace shardscope::trainer::lift
