#include "trainer/lift/step_lifter.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"
#include "trainer/lift/module_places.h"
#include "trainer/lift/step_parameters.h"
#include "trainer/lift/step_parts.h"

namespace shardscope::trainer::lift {

namespace {

using traces::schema::MemoryCategory;
using traces::schema::Operation;
using traces::schema::Phase;
using traces::store::DeviceKind;
using traces::store::Trace;

constexpr std::string_view kGradient = ".grad";

// Walks the points of a step on the host: each becomes an item at the model's current place, or a cost of the
// engine around the model.
class StepLifter {
  public:
    StepLifter(const Trace& trace, const HostRangeRoles& roles, const HostPoints& points,
               traces::analysis::Interval host, const StepLifterOptions& options)
        : trace_(trace),
          roles_(roles),
          all_(points),
          rank_(points.rank()),
          options_(options),
          points_(points.of(host)),
          parts_(find_parts(trace, roles, points_, host)),
          places_(trace, options.ours, out_.step),
          now_(host.start) {}

    LiftedRecording run(std::int64_t previous);

  private:
    void take(const Point& point);
    std::int64_t end_of(const Point& point) const;
    void work(const Point& point);
    void collective(const Point& point, std::int32_t row);
    // Charges the host time before this point to the engine or the optimizer, not to the model.
    void charge_engine(const Point& point) {
        const bool optimizer = roles_.optimizer(point.range);
        (optimizer ? out_.engine.optimizer_host_ns : out_.engine.host_ns) += std::exchange(gap_, 0);
    }
    void allocate(const Point& point);
    void free(const Point& point);
    void find_carried(std::int64_t previous);
    int add_buffer(std::size_t m);
    void count_optimizer(const Point& point);
    bool is_engine(const Point& point) const;
    bool is_engine_memory(std::size_t m) const;
    void add(const Point& point, Item item);
    std::vector<Item>& backward_items(const Point& point);
    void flush_ready();
    int gradient_of(const Point& point, Place& place);
    int parameter_named(std::string_view path, int reader, std::int64_t elements);
    Part part_of(std::int64_t time) const { return parts_.at(time); }
    std::string_view text(traces::schema::StringId id) const { return trace_.strings[id]; }
    Node& node(int id) { return out_.step.nodes[static_cast<std::size_t>(id)]; }

    const Trace& trace_;
    const HostRangeRoles& roles_;
    const HostPoints& all_;
    const traces::store::RankIndex rank_;
    const StepLifterOptions& options_;
    const std::vector<Point> points_;
    const StepParts parts_;
    LiftedRecording out_;
    ModulePlaces places_;
    UnitTraffic traffic_;

    std::int32_t group_ = -2;  // the autograd node of the backward's current position
    Place group_place_;
    std::vector<std::pair<int, Place>> ready_;                // parameters that the group completes
    std::unordered_map<std::uint64_t, int> live_;             // address -> buffer; -1: not the model's
    std::unordered_map<std::uint64_t, std::size_t> carried_;  // address -> index in MemoryEvents
    std::vector<Item> carried_items_;
    std::map<std::pair<int, int>, bool> has_gradient_;  // (parameter, node)
    std::map<std::string, int> parameter_of_path_;

    std::int64_t optimizer_live_ = 0;  // bytes, since the optimizer's range began
    std::int64_t now_;                 // end of the host time accounted for so far
    std::int64_t gap_ = 0;             // host time not yet charged; goes to the next point
    bool engine_since_ = false;        // engine work ran after the model's last kernel
    std::map<int, std::int64_t> stream_end_;
};

bool StepLifter::is_engine(const Point& point) const {
    if (roles_.engine(point.range) || roles_.optimizer(point.range)) return true;
    if (options_.ours && part_of(point.time) == Part::tail) return true;  // the Plan reads the loss itself
    if (point.kind == Point::Kind::work) {
        const auto e = static_cast<std::size_t>(point.index);
        if (trace_.device.kind[e] == DeviceKind::communication) return true;
        const std::string_view name = text(trace_.device.name[e]);
        return options_.ours && (name == "copy_to_bucket" || name == "copy_from_bucket");
    }
    return false;
}

LiftedRecording StepLifter::run(std::int64_t previous) {
    out_.has_modules = parts_.has_modules;
    out_.has_backward = parts_.has_backward;
    out_.micro_batches = parts_.micro_batches;
    if (!parts_.has_modules) places_.open_whole_model(parts_.root.start);
    if (!options_.ours) find_carried(previous);
    for (const Point& point : points_) take(point);
    flush_ready();
    out_.step.data.insert(out_.step.data.begin(), carried_items_.begin(), carried_items_.end());
    if (out_.step.nodes.empty()) places_.add_whole_model();  // nothing was recorded inside the wrapper
    complete_parameters(trace_, rank_, parts_, places_, traffic_, options_, out_);
    for (const UnitTraffic::Bucket& bucket : traffic_.buckets) out_.buckets.push_back(bucket.bytes);
    out_.gathers = std::ssize(traffic_.gathers);
    return std::move(out_);
}

// When the host's thread is done with it: a kernel that it carries out itself ends later than its call.
std::int64_t StepLifter::end_of(const Point& point) const {
    if (point.kind != Point::Kind::work) return point.end;
    const auto e = static_cast<std::size_t>(point.index);
    return trace_.device.kind[e] == DeviceKind::communication ? point.end : trace_.device.end[e];
}

// Host time since the previous point belongs to the next one.
void StepLifter::take(const Point& point) {
    gap_ += std::max<std::int64_t>(0, point.time - now_);
    const bool launches = point.kind == Point::Kind::work;
    const bool engine = is_engine(point);
    if (options_.hosts && launches) gap_ += point.end - point.time;  // the call is part of the work
    now_ = std::max(now_, options_.hosts ? end_of(point) : point.end);
    switch (point.kind) {
        case Point::Kind::enter:
            if (gap_ > 0) add(point, {.kind = Item::Kind::host});
            return;
        case Point::Kind::leave:
            charge_engine(point);
            return;
        case Point::Kind::open:
            if (parts_.in_forward(trace_.ranges.start[static_cast<std::size_t>(point.index)]))
                places_.open(point.index, point.time);
            return;
        case Point::Kind::close:
            places_.close(point.index, point.time);
            return;
        case Point::Kind::work:
            work(point);
            break;
        case Point::Kind::allocate:
            allocate(point);
            break;
        case Point::Kind::free:
            free(point);
            break;
        case Point::Kind::event:
            out_.event_ns.push_back(point.end - point.time);
            engine_since_ = true;
            charge_engine(point);
            return;
        case Point::Kind::wait:
            engine_since_ = true;
            if (engine || options_.ours || options_.hosts || part_of(point.time) == Part::before) {
                charge_engine(point);
            } else {
                add(point, {.kind = Item::Kind::wait});
            }
            return;
        case Point::Kind::other:  // cudaMalloc, a query: its time goes to the next point
            gap_ += point.end - point.time;
            return;
    }
    if (!launches || options_.hosts) return;
    out_.launch_ns.push_back(point.end - point.time);
    // The excess of this call's time over a typical one goes to the next point.
    gap_ += point.end - point.time - options_.launch_ns;
}

// --- items -------------------------------------------------------------------------------------------

// The place of an autograd node: that of its forward operator if known; else the latest place of the module
// named by the range that the backward has not passed; else the backward's current place.
std::vector<Item>& StepLifter::backward_items(const Point& point) {
    const std::int32_t outer = roles_.node(point.range);
    if (outer != group_ && outer >= 0) {
        flush_ready();
        group_ = outer;
        const std::int32_t forward = roles_.forward_of(outer);
        int module = -1, named = -1;
        for (std::int32_t r = point.range; r >= 0; r = trace_.ranges.parent[static_cast<std::size_t>(r)]) {
            const int own = trace_.ranges.module[static_cast<std::size_t>(r)];
            if (own >= 0) module = own;
            std::string_view name = text(trace_.ranges.name[static_cast<std::size_t>(r)]);
            if (name.starts_with(traces::store::kModulePrefix) &&
                name.ends_with(traces::store::kBackwardSuffix)) {
                name.remove_prefix(traces::store::kModulePrefix.size());
                name.remove_suffix(traces::store::kBackwardSuffix.size());
                if (const int known = places_.node_named(name); known >= 0) named = known;
            }
            if (r == outer) break;
        }
        if (forward >= 0) {
            const std::int64_t time = trace_.ranges.start[static_cast<std::size_t>(forward)];
            const Place* place = time < parts_.root.end ? places_.at(time) : nullptr;
            group_place_ = place ? *place : Place{};
        } else if (const int known = places_.node_of_row(module); known >= 0) {
            if (const Place* place = places_.next_of(known)) group_place_ = *place;
        } else if (named >= 0) {
            if (const Place* place = places_.next_of(named)) group_place_ = *place;
        }
    }
    return backward_of(out_.step, group_place_);
}

void StepLifter::add(const Point& point, Item item) {
    item.host_ns = std::exchange(gap_, 0);
    switch (part_of(point.time)) {
        case Part::before:
            return;
        case Part::data:
            out_.step.data.push_back(std::move(item));
            return;
        case Part::forward:
            if (const Place* place = places_.current()) {
                node(place->node).calls[place->call].own[place->segment].forward.push_back(std::move(item));
            } else {  // in the root's wrapper
                (out_.step.nodes.empty() ? out_.step.data : out_.step.loss.forward)
                    .push_back(std::move(item));
            }
            return;
        case Part::loss:
            out_.step.loss.forward.push_back(std::move(item));
            return;
        case Part::backward:
            backward_items(point).push_back(std::move(item));
            return;
        case Part::tail:
            out_.step.tail.push_back(std::move(item));
            return;
    }
}

void StepLifter::work(const Point& point) {
    const auto e = static_cast<std::size_t>(point.index);
    const traces::store::DeviceEvents& device = trace_.device;
    const std::int64_t took = device.end[e] - device.start[e];
    if (is_engine(point)) {
        out_.engine.optimizer_launches += roles_.optimizer(point.range);
        if (roles_.optimizer(point.range)) out_.engine.optimizer_calls_ns += point.end - point.time;
        charge_engine(point);
        engine_since_ = true;
        std::int64_t& stream = stream_end_[device.stream[e]];
        stream = std::max(stream, device.end[e]);
        if (device.kind[e] == DeviceKind::communication) {
            collective(point, device.collective[e]);
        } else {
            (roles_.optimizer(point.range) ? out_.engine.optimizer_ns : out_.engine.kernels_ns) += took;
        }
        return;
    }
    // If the stream was idle although work was queued, the idle time counts as launch time of this work,
    // except for what communication or a wait for a core explains.
    std::int64_t& end = stream_end_[device.stream[e]];
    std::int64_t ready = std::max(end, point.end);
    if (std::exchange(engine_since_, false))
        ready = std::max(ready, all_.communication_before(device.start[e]));
    const std::int64_t idle =
        end == 0 ? 0 : device.start[e] - ready - options_.cores->full_inside({ready, device.start[e]});
    end = std::max(end, device.end[e]);
    Item item;
    item.kind = device.kind[e] == DeviceKind::memcpy   ? Item::Kind::memcpy
                : device.kind[e] == DeviceKind::memset ? Item::Kind::memset
                                                       : Item::Kind::kernel;
    item.device_ns = took + std::max<std::int64_t>(0, idle);
    item.bytes = device.bytes[e];
    item.copy_kind = device.copy_kind[e];
    item.name = text(device.name[e]);
    add(point, std::move(item));
}

// Records the sizes of units and buckets that a collective shows.
void StepLifter::collective(const Point& point, std::int32_t row) {
    if (row < 0 || options_.ours) return;
    const auto c = static_cast<std::size_t>(row);
    const std::int64_t bytes = trace_.collectives.bytes[c];
    const Part part = part_of(point.time);
    if (trace_.collectives.operation[c] == Operation::all_gather && part == Part::forward)
        traffic_.gathers.push_back(bytes);
    if (trace_.collectives.operation[c] == Operation::all_reduce && part == Part::backward) {
        const std::vector<Item>& items = backward_of(out_.step, group_place_);
        traffic_.buckets.push_back({group_place_, items.size(), bytes});
    }
}

// --- memory: which allocations are the model's, and which of those are gradients --------------------------

bool StepLifter::is_engine_memory(std::size_t m) const {
    if (!options_.ours) return false;
    const MemoryCategory category = trace_.memory.category[m];
    const Phase phase = trace_.memory.phase[m];
    if (category != MemoryCategory::activations && category != MemoryCategory::other) return true;
    return phase != Phase::data && phase != Phase::forward && phase != Phase::backward &&
           phase != Phase::recompute;
}

int StepLifter::parameter_named(std::string_view path, int reader, std::int64_t elements) {
    const auto [known, fresh] =
        parameter_of_path_.try_emplace(std::string(path), static_cast<int>(out_.step.parameters.size()));
    if (fresh) {
        const auto dot = path.rfind('.');
        const std::string_view module = dot == path.npos ? std::string_view() : path.substr(0, dot);
        int owner = places_.node_of_path(module);
        if (owner < 0) owner = std::max(reader, 0);
        LiftedParameter parameter;
        parameter.name = path.substr(dot == path.npos ? 0 : dot + 1);
        parameter.elements = elements;
        add_parameter(out_.step, owner, std::move(parameter));
    }
    const int id = known->second;
    if (reader >= 0) {
        Node& own = node(reader);
        const auto has = [&](const std::vector<int>& list) {
            return std::find(list.begin(), list.end(), id) != list.end();
        };
        if (!has(own.parameters) && !has(own.shared)) own.shared.push_back(id);
    }
    return id;
}

// The parameter whose gradient is allocated; -1: not a gradient.
int StepLifter::gradient_of(const Point& point, Place& place) {
    const auto m = static_cast<std::size_t>(point.index);
    if (!options_.ours || part_of(point.time) != Part::backward) return -1;
    const MemoryCategory category = trace_.memory.category[m];
    const bool whole = category == MemoryCategory::unsharded_gradients ||
                       (category == MemoryCategory::gradients && options_.whole_gradients);
    std::string_view name = text(trace_.memory.name[m]);
    if (constexpr std::string_view kNew = " (new)"; name.ends_with(kNew)) name.remove_suffix(kNew.size());
    if (!whole || !name.ends_with(kGradient) || name.find(' ') != name.npos) return -1;
    backward_items(point);  // advances to the place
    place = group_place_;
    name.remove_suffix(kGradient.size());
    out_.parameters = ParametersFrom::gradients;
    return parameter_named(name, place.node, trace_.memory.bytes[m] / options_.gradient_size);
}

void StepLifter::count_optimizer(const Point& point) {
    if (options_.ours) return;  // its Plan has its own
    if (!roles_.optimizer(point.range)) {
        optimizer_live_ = 0;
        return;
    }
    optimizer_live_ += trace_.memory.bytes[static_cast<std::size_t>(point.index)];
    out_.optimizer_rise = std::max(out_.optimizer_rise, optimizer_live_);
}

// Finds what the model allocated outside of the backward, from `previous` on, and did not free before this
// micro-batch: a loop's variables (loss, logits) keep their values until they are assigned again.
void StepLifter::find_carried(std::int64_t previous) {
    const traces::store::MemoryEvents& memory = trace_.memory;
    for (std::size_t m = 0; m < memory.size(); ++m) {
        const std::int64_t time = memory.time[m];
        if (memory.rank[m] != rank_.column() || time < previous || time >= parts_.micro_start) continue;
        const std::int32_t range = all_.innermost(time);
        if (memory.bytes[m] > 0 && !roles_.engine(range) && !roles_.optimizer(range) &&
            roles_.node(range) < 0)
            carried_[memory.address[m]] = m;
        else
            carried_.erase(memory.address[m]);
    }
}

int StepLifter::add_buffer(std::size_t m) {
    LiftedBuffer buffer;
    buffer.name = text(trace_.memory.name[m]);
    if (buffer.name.empty()) buffer.name = "recorded";
    buffer.category = options_.ours ? trace_.memory.category[m] : MemoryCategory::activations;
    buffer.space = trace_.memory.space[m];
    buffer.bytes = trace_.memory.bytes[m];
    out_.step.buffers.push_back(std::move(buffer));
    out_.freed_ns.push_back(std::numeric_limits<std::int64_t>::max());
    return static_cast<int>(out_.step.buffers.size()) - 1;
}

void StepLifter::allocate(const Point& point) {
    count_optimizer(point);
    const auto m = static_cast<std::size_t>(point.index);
    const std::uint64_t address = trace_.memory.address[m];
    Place place;
    if (const int parameter = gradient_of(point, place); parameter >= 0) {
        live_[address] = -1;
        bool& had = has_gradient_[{parameter, place.node}];
        if (std::exchange(had, true)) {
            charge_engine(point);
            return;
        }
        add(point, {.kind = Item::Kind::gradient, .index = parameter});
        ready_.emplace_back(parameter, place);
        return;
    }
    if (is_engine_memory(m) || is_engine(point)) {
        live_[address] = -1;
        charge_engine(point);
        return;
    }
    if (part_of(point.time) == Part::before) {
        live_[address] = -1;
        gap_ = 0;
        return;
    }
    live_[address] = add_buffer(m);
    add(point, {.kind = Item::Kind::allocate, .index = live_[address]});
}

void StepLifter::free(const Point& point) {
    count_optimizer(point);
    const std::uint64_t address = trace_.memory.address[static_cast<std::size_t>(point.index)];
    if (const auto carried = carried_.find(address);
        carried != carried_.end() && part_of(point.time) != Part::before) {
        live_[address] = add_buffer(carried->second);
        carried_items_.push_back({.kind = Item::Kind::allocate, .index = live_[address]});
        out_.carried_bytes += trace_.memory.bytes[carried->second];
        carried_.erase(carried);
    }
    const auto found = live_.find(address);
    if (found == live_.end() || found->second < 0) {
        charge_engine(point);
        return;
    }
    const int buffer = found->second;
    live_.erase(found);
    out_.freed_ns[static_cast<std::size_t>(buffer)] = point.time;
    // After the backward, all of the loop's variables go out of scope together.
    if (part_of(point.time) == Part::tail) {
        charge_engine(point);
        return;
    }
    add(point, {.kind = Item::Kind::free, .index = buffer});
}

void StepLifter::flush_ready() {
    for (const auto& [parameter, place] : ready_) {
        backward_of(out_.step, place).push_back({.kind = Item::Kind::ready, .index = parameter});
    }
    ready_.clear();
}

}  // namespace

LiftedRecording lift_step(const Trace& trace, const HostRangeRoles& roles, const HostPoints& points,
                          std::int64_t previous, traces::analysis::Interval host,
                          const StepLifterOptions& options) {
    return StepLifter(trace, roles, points, host, options).run(previous);
}

}  // namespace shardscope::trainer::lift
