#include "trainer/lift/step_lifter.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "traces/store/names.h"
#include "traces/store/trace.h"
#include "trainer/lift/operator_parameters.h"

namespace shardscope::trainer::lift {

namespace {

using traces::DeviceKind;
using traces::MemoryCategory;
using traces::ModuleRow;
using traces::Operation;
using traces::Phase;
using traces::RangeKind;
using traces::Trace;

constexpr std::string_view kGradient = ".grad", kSharded = "FSDP";

// "Linear_0" -> "Linear"; a name without a number stays.
std::string class_of(std::string_view name) {
    const auto mark = name.rfind('_');
    if (mark == name.npos || mark + 1 == name.size()) return std::string(name);
    const std::string_view digits = name.substr(mark + 1);
    const bool number =
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    return std::string(number ? name.substr(0, mark) : name);
}

bool is_wrapper(std::string_view class_name) {
    return class_name == "FullyShardedDataParallel" || class_name == "DistributedDataParallel";
}

// Where own work of the model goes: a segment of a call; node -1: the loss.
struct Place {
    int node = -1;
    std::size_t call = 0, segment = 0;
    std::int64_t since = 0;  // when its forward began
};

class StepLifter {
  public:
    StepLifter(const Trace& trace, const HostRangeRoles& roles, const HostPoints& points,
               traces::Interval host, const StepLifterOptions& options)
        : trace_(trace),
          roles_(roles),
          all_(points),
          rank_(points.rank()),
          host_(host),
          options_(options),
          points_(points.of(host)) {
        for (const ModuleRow& row : trace.modules) rows_.emplace(row.id, &row);
    }

    LiftedRecording run();

  private:
    enum class Part : std::uint8_t { before, data, forward, loss, backward, tail };

    void find_parts();
    Part part_of(std::int64_t time) const;
    void take(const Point& point);
    void open(const Point& point);
    void close(const Point& point);
    void work(const Point& point);
    void collective(const Point& point, std::int32_t row);
    // The host's time so far is not the model's.
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
    void read_buckets();
    void place_gradients();
    const Place* place_at(std::int64_t time) const;
    std::vector<Item>& items_of(const Place& place) {
        if (place.node < 0) return out_.step.loss.backward;
        return node(place.node).calls[place.call].own[place.segment].backward;
    }
    std::string_view text(traces::StringId id) const { return trace_.strings[id]; }
    Node& node(int id) { return out_.step.nodes[static_cast<std::size_t>(id)]; }
    const ModuleRow* row_of(std::int32_t range) const {
        const auto found = rows_.find(trace_.ranges.module[static_cast<std::size_t>(range)]);
        return found == rows_.end() ? nullptr : found->second;
    }

    const Trace& trace_;
    const HostRangeRoles& roles_;
    const HostPoints& all_;
    const int rank_;
    const traces::Interval host_;
    const StepLifterOptions& options_;
    const std::vector<Point> points_;
    std::unordered_map<int, const ModuleRow*> rows_;
    LiftedRecording out_;

    traces::Interval root_{}, backward_{};  // of the last micro-batch
    std::int64_t micro_start_ = 0;

    struct Open {
        std::int32_t range = -1;
        int node = -1;  // -1: a wrapper
    };
    std::vector<Open> open_;
    bool wrapped_ = false;  // the next module that opens is inside a wrapper of its own
    std::map<std::pair<int, std::string>, int> known_;  // node by parent and name
    std::map<int, int> node_of_row_;                    // ModuleRow::id -> node
    std::map<std::string, int, std::less<>> node_of_name_;
    std::vector<std::string> paths_;  // by node
    std::vector<Place> places_;       // in order of time
    std::vector<Place> open_places_;  // by open module
    std::size_t next_place_ = 0;      // of the backward: from the end of places_ on
    std::int32_t group_ = -2;         // autograd's node that the backward is in
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
    std::vector<std::int64_t> gathers_;  // bytes, of the forward

    std::int64_t now_ = 0;       // the host's time up to which all is accounted for
    std::int64_t gap_ = 0;       // since then, for the next thing
    bool engine_since_ = false;  // engine work was seen since the model's last kernel
    std::map<int, std::int64_t> stream_end_;
};

// The last call of the root in the step, and where its backward is.
void StepLifter::find_parts() {
    std::int64_t longest = -1;
    traces::StringId root_name{};
    int depth = 0;
    std::vector<traces::Interval> calls;
    std::vector<traces::StringId> names;
    for (const Point& point : points_) {
        if (point.kind == Point::Kind::open && depth++ == 0) {
            const auto r = static_cast<std::size_t>(point.index);
            calls.push_back({trace_.ranges.start[r], trace_.ranges.end[r]});
            names.push_back(trace_.ranges.name[r]);
            if (calls.back().length() > longest) {
                longest = calls.back().length();
                root_name = names.back();
            }
        }
        if (point.kind == Point::Kind::close) --depth;
    }
    // Autograd's outermost nodes of this rank and step.
    std::vector<traces::Interval> nodes;
    std::int32_t last = -1;
    for (const Point& point : points_) {
        const std::int32_t n = roles_.node(point.range);
        if (n < 0 || n == last) continue;
        last = n;
        const auto i = static_cast<std::size_t>(n);
        nodes.push_back({trace_.ranges.start[i], trace_.ranges.end[i]});
    }
    out_.has_modules = !calls.empty();
    out_.has_backward = !nodes.empty();
    out_.micro_batches = 0;
    micro_start_ = host_.start;
    if (out_.has_modules) {
        for (std::size_t c = 0; c < calls.size(); ++c) {
            if (names[c] != root_name) continue;
            ++out_.micro_batches;
            root_ = calls[c];
        }
        for (const traces::Interval& n : nodes)
            if (n.end <= root_.start) micro_start_ = std::max(micro_start_, n.end);
    } else {
        out_.micro_batches = 1;
        root_ = {host_.start, nodes.empty() ? host_.end : nodes.front().start};
    }
    backward_ = {root_.end, root_.end};
    bool first = true;
    for (const traces::Interval& n : nodes) {
        if (n.start < root_.end) continue;
        if (std::exchange(first, false)) backward_.start = n.start;
        backward_.end = std::max(backward_.end, n.end);
    }
    if (first) backward_ = {host_.end, host_.end};
}

StepLifter::Part StepLifter::part_of(std::int64_t time) const {
    if (time < micro_start_) return Part::before;
    if (time < root_.start) return Part::data;
    if (time < root_.end) return Part::forward;
    if (time < backward_.start) return Part::loss;
    return time < backward_.end ? Part::backward : Part::tail;
}

bool StepLifter::is_engine_memory(std::size_t m) const {
    if (!options_.ours) return false;
    const MemoryCategory category = trace_.memory.category[m];
    const Phase phase = trace_.memory.phase[m];
    if (category != MemoryCategory::activations && category != MemoryCategory::other) return true;
    return phase != Phase::data && phase != Phase::forward && phase != Phase::backward &&
           phase != Phase::recompute;
}

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

LiftedRecording StepLifter::run() {
    find_parts();
    if (!out_.has_modules) {
        Node root;
        root.name = root.class_name = "model";
        root.calls.push_back({{Segment{}}, {}});
        out_.step.nodes.push_back(root);
        paths_.emplace_back();
        places_.push_back({0, 0, 0, root_.start});
        open_places_.push_back(places_.back());
    }
    now_ = host_.start;
    for (const Point& point : points_) take(point);
    flush_ready();
    complete_parameters();
    return std::move(out_);
}

// The host's time since the point before belongs to whoever comes next.
void StepLifter::take(const Point& point) {
    gap_ += std::max<std::int64_t>(0, point.time - now_);
    const bool launches = point.kind == Point::Kind::work;
    const bool engine = is_engine(point);
    now_ = std::max(now_, point.end);
    switch (point.kind) {
        case Point::Kind::open:
            open(point);
            return;
        case Point::Kind::close:
            close(point);
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
            if (engine || options_.ours || part_of(point.time) == Part::before) {
                charge_engine(point);
            } else {
                add(point, {.kind = Item::Kind::wait});
            }
            return;
        case Point::Kind::other:  // cudaMalloc, a query: the next one's time
            gap_ += point.end - point.time;
            return;
    }
    if (!launches) return;
    out_.launch_ns.push_back(point.end - point.time);
    // What this call took beyond a typical one is the next one's.
    gap_ += point.end - point.time - options_.launch_ns;
}

// --- the forward: modules open and close -------------------------------------------------------------------

void StepLifter::open(const Point& point) {
    const auto r = static_cast<std::size_t>(point.index);
    if (trace_.ranges.start[r] < root_.start || trace_.ranges.start[r] >= root_.end) return;
    const ModuleRow* row = row_of(point.index);
    std::string name = row ? row->name : std::string(text(trace_.ranges.name[r]));
    if (name.starts_with(traces::kModulePrefix)) name = name.substr(traces::kModulePrefix.size());
    std::string class_name = row && !row->class_name.empty() ? row->class_name : class_of(name);
    // fully_shard makes a class FSDPBlock of Block.
    const bool sharded = !options_.ours && class_name.starts_with(kSharded) &&
                         class_name.size() > kSharded.size() && class_name[kSharded.size()] >= 'A' &&
                         class_name[kSharded.size()] <= 'Z';
    if (sharded) class_name = class_name.substr(kSharded.size());
    if (is_wrapper(class_name)) {
        open_.push_back({point.index, -1});
        wrapped_ = class_name == "FullyShardedDataParallel";
        return;
    }
    int parent = -1;
    for (auto o = open_.rbegin(); o != open_.rend() && parent < 0; ++o) parent = o->node;
    if (parent < 0 && !out_.step.nodes.empty()) parent = 0;  // beside the root: as if inside
    const auto [known, fresh] = known_.try_emplace({parent, name}, static_cast<int>(out_.step.nodes.size()));
    const int id = known->second;
    if (fresh) {
        Node made;
        made.parent = parent;
        made.name = name;
        made.class_name = class_name;
        std::string path = row ? row->path : name;
        if (parent >= 0) {
            const std::string& above = paths_[static_cast<std::size_t>(parent)];
            const bool below = row && path.starts_with(above + ".");
            made.attribute = below ? path.substr(above.size() + 1) : row && above.empty() ? path : name;
            if (!row) path = above.empty() ? name : above + "." + name;
            node(parent).children.push_back(id);
        } else {
            path = row ? row->path : "";
        }
        made.unit = wrapped_ || sharded;
        out_.step.nodes.push_back(std::move(made));
        paths_.push_back(path);
        if (row) node_of_row_.emplace(row->id, id);
        node_of_name_.emplace(name, id);
    }
    wrapped_ = false;
    node(id).calls.push_back({{Segment{}}, {}});
    if (!open_places_.empty())
        node(open_places_.back().node).calls[open_places_.back().call].children.push_back(id);
    const Place place{id, node(id).calls.size() - 1, 0, point.time};
    places_.push_back(place);
    open_places_.push_back(place);
    open_.push_back({point.index, id});
}

void StepLifter::close(const Point& point) {
    const auto found =
        std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.range == point.index; });
    if (found == open_.end()) return;
    const bool was_module = found->node >= 0;
    open_.erase(found, open_.end());
    wrapped_ = false;
    if (!was_module) return;
    open_places_.pop_back();
    if (open_places_.empty()) return;
    Place& parent = open_places_.back();
    node(parent.node).calls[parent.call].own.emplace_back();
    ++parent.segment;
    parent.since = point.time;
    places_.push_back(parent);
}

// --- items
// --------------------------------------------------------------------------------------------------

// The place of a node of autograd: that of its forward operator where it is known; else that of the module
// that the range names, the latest that the backward has not come past; else where the backward is.
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
            if (name.starts_with(traces::kModulePrefix) && name.ends_with(traces::kBackwardSuffix)) {
                name.remove_prefix(traces::kModulePrefix.size());
                name.remove_suffix(traces::kBackwardSuffix.size());
                if (const auto known = node_of_name_.find(name); known != node_of_name_.end())
                    named = known->second;
            }
            if (r == outer) break;
        }
        if (forward >= 0) {
            const std::int64_t time = trace_.ranges.start[static_cast<std::size_t>(forward)];
            const Place* place = place_at(time);
            group_place_ = place ? *place : Place{};
        } else if (const auto known = node_of_row_.find(module); known != node_of_row_.end()) {
            if (const Place* place = place_of_module(known->second)) group_place_ = *place;
        } else if (named >= 0) {
            if (const Place* place = place_of_module(named)) group_place_ = *place;
        }
    }
    return items_of(group_place_);
}

// Where the forward was at a time; null: not in the root.
const Place* StepLifter::place_at(std::int64_t time) const {
    const auto after = std::upper_bound(places_.begin(), places_.end(), time,
                                        [](std::int64_t t, const Place& p) { return t < p.since; });
    return time >= root_.end || after == places_.begin() ? nullptr : &*std::prev(after);
}

Place* StepLifter::place_of_module(int id) {
    const auto n = places_.size();
    // From where the backward is on; the same place may be met again.
    for (std::size_t i = next_place_; i < n; ++i) {
        Place& place = places_[n - 1 - i];
        if (place.node != id) continue;
        next_place_ = i;
        return &place;
    }
    for (std::size_t i = 0; i < std::min(next_place_, n); ++i) {
        Place& place = places_[n - 1 - i];
        if (place.node == id) return &place;
    }
    return nullptr;
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
            if (open_places_.empty()) {  // in the root's wrapper
                (out_.step.nodes.empty() ? out_.step.data : out_.step.loss.forward)
                    .push_back(std::move(item));
            } else {
                const Place& place = open_places_.back();
                node(place.node).calls[place.call].own[place.segment].forward.push_back(std::move(item));
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
    const traces::DeviceEvents& device = trace_.device;
    const std::int64_t took = device.end[e] - device.start[e];
    if (is_engine(point)) {
        out_.engine.optimizer_launches += roles_.optimizer(point.range);
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
    // Where the stream was idle although the work was there, and nothing was communicated that it can have
    // waited for, starting it took that long.
    std::int64_t& end = stream_end_[device.stream[e]];
    std::int64_t ready = std::max(end, point.end);
    if (std::exchange(engine_since_, false))
        ready = std::max(ready, all_.communication_before(device.start[e]));
    const std::int64_t idle = end == 0 ? 0 : device.start[e] - ready;
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

// What it tells of units and buckets.
void StepLifter::collective(const Point& point, std::int32_t row) {
    if (row < 0 || options_.ours) return;
    const auto c = static_cast<std::size_t>(row);
    const std::int64_t bytes = trace_.collectives.bytes[c];
    const Part part = part_of(point.time);
    if (trace_.collectives.operation[c] == Operation::all_gather && part == Part::forward)
        gathers_.push_back(bytes);
    if (trace_.collectives.operation[c] == Operation::all_reduce && part == Part::backward) {
        std::vector<Item>& items = items_of(group_place_);
        buckets_.push_back({group_place_, items.size(), bytes});
    }
}

// --- memory
// -------------------------------------------------------------------------------------------------

int StepLifter::node_of_path(std::string_view path) const {
    for (std::size_t n = 0; n < paths_.size(); ++n)
        if (paths_[n] == path) return static_cast<int>(n);
    return -1;
}

int StepLifter::parameter_named(std::string_view path, int reader, std::int64_t elements) {
    const auto [known, fresh] =
        parameter_of_path_.try_emplace(std::string(path), static_cast<int>(out_.step.parameters.size()));
    if (fresh) {
        const auto dot = path.rfind('.');
        const std::string_view module = dot == path.npos ? std::string_view() : path.substr(0, dot);
        int owner = node_of_path(module);
        if (owner < 0) owner = std::max(reader, 0);
        LiftedParameter parameter;
        parameter.name = path.substr(dot == path.npos ? 0 : dot + 1);
        parameter.elements = elements;
        out_.step.parameters.push_back(std::move(parameter));
        node(owner).parameters.push_back(known->second);
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

// The parameter whose gradient is allocated; -1: it is none.
int StepLifter::gradient_of(const Point& point, Place& place) {
    const auto m = static_cast<std::size_t>(point.index);
    if (!options_.ours || part_of(point.time) != Part::backward) return -1;
    const MemoryCategory category = trace_.memory.category[m];
    const bool whole = category == MemoryCategory::unsharded_gradients ||
                       (category == MemoryCategory::gradients && options_.whole_gradients);
    std::string_view name = text(trace_.memory.name[m]);
    if (constexpr std::string_view kNew = " (new)"; name.ends_with(kNew)) name.remove_suffix(kNew.size());
    if (!whole || !name.ends_with(kGradient) || name.find(' ') != name.npos) return -1;
    backward_items(point);  // comes to the place
    place = group_place_;
    name.remove_suffix(kGradient.size());
    out_.parameters = ParametersFrom::gradients;
    return parameter_named(name, place.node, trace_.memory.bytes[m] / options_.gradient_size);
}

void StepLifter::allocate(const Point& point) {
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
    live_[address] = static_cast<int>(out_.step.buffers.size());
    LiftedBuffer buffer;
    buffer.name = text(trace_.memory.name[m]);
    if (buffer.name.empty()) buffer.name = "recorded";
    buffer.category = options_.ours ? trace_.memory.category[m] : MemoryCategory::activations;
    buffer.space = trace_.memory.space[m];
    buffer.bytes = trace_.memory.bytes[m];
    out_.step.buffers.push_back(std::move(buffer));
    add(point, {.kind = Item::Kind::allocate, .index = live_[address]});
}

void StepLifter::free(const Point& point) {
    const auto found = live_.find(trace_.memory.address[static_cast<std::size_t>(point.index)]);
    if (found == live_.end() || found->second < 0) {
        charge_engine(point);
        return;
    }
    const int buffer = found->second;
    live_.erase(found);
    // Behind the backward the loop's variables end, all together.
    if (part_of(point.time) == Part::tail) {
        charge_engine(point);
        return;
    }
    add(point, {.kind = Item::Kind::free, .index = buffer});
}

void StepLifter::flush_ready() {
    for (const auto& [parameter, place] : ready_) {
        items_of(place).push_back({.kind = Item::Kind::ready, .index = parameter});
    }
    ready_.clear();
}

// --- parameters
// ---------------------------------------------------------------------------------------------

int StepLifter::add_parameter(int owner, LiftedParameter parameter) {
    out_.step.parameters.push_back(std::move(parameter));
    const int id = static_cast<int>(out_.step.parameters.size()) - 1;
    node(owner).parameters.push_back(id);
    return id;
}

void StepLifter::complete_parameters() {
    if (options_.ours) {
        complete_by_table();
        return;
    }
    read_shapes();
    read_gathers();
    if (out_.step.parameters.empty()) {
        read_buckets();
        return;
    }
    place_gradients();
}

// What the module table says beyond the gradients that were seen: frozen parameters, or, where no gradient
// has memory of its own, one for all that a module owns.
void StepLifter::complete_by_table() {
    const bool named = out_.parameters == ParametersFrom::gradients;
    for (const auto& [row_id, id] : node_of_row_) {
        std::int64_t left = rows_.at(row_id)->parameters;
        for (const int p : node(id).parameters)
            left -= out_.step.parameters[static_cast<std::size_t>(p)].elements;
        if (left <= 0) continue;
        const int parameter = add_parameter(id, {named ? "frozen" : "parameters", left, 0, !named});
        if (named) continue;
        out_.parameters = ParametersFrom::gathers;
        std::vector<Item>& items = node(id).calls.front().own.front().backward;
        items.insert(items.begin(), {.kind = Item::Kind::gradient, .index = parameter});
        items.push_back({.kind = Item::Kind::ready, .index = parameter});
    }
    if (named || out_.step.parameters.empty()) return;
    out_.parameters = ParametersFrom::gradients;
}

// Of the operators of the forward that read parameters, those of each module's first call.
void StepLifter::read_shapes() {
    const traces::HostRanges& ranges = trace_.ranges;
    if (ranges.detail.empty() || !out_.has_modules) return;
    for (std::size_t r = 0; r < ranges.size(); ++r) {
        const std::int64_t start = ranges.start[r];
        if (start < root_.start || start >= root_.end || ranges.kind[r] != RangeKind::operation) continue;
        if (trace_.threads[ranges.thread[r]].rank != rank_ || !reads_parameters(text(ranges.name[r])))
            continue;
        // aten::addmm inside aten::linear reads the same.
        bool inside = false;
        for (std::int32_t p = ranges.parent[r]; p >= 0; p = ranges.parent[static_cast<std::size_t>(p)])
            inside = inside || reads_parameters(text(ranges.name[static_cast<std::size_t>(p)]));
        if (inside) continue;
        const Place* place = place_at(start);
        if (!place || place->node < 0 || place->call > 0) continue;
        for (const OperatorParameter& own : parameters_of(text(ranges.name[r]), text(ranges.detail[r]))) {
            add_parameter(place->node, {std::string(own.name), own.elements, own.rows});
            out_.parameters = ParametersFrom::shapes;
        }
    }
}

// The units' bytes, in the order in which they are gathered in the forward: what the shapes do not tell is a
// parameter of the unit's module.
void StepLifter::read_gathers() {
    std::vector<int> units;  // nodes, in the order of their forward
    for (std::size_t n = 0; n < out_.step.nodes.size(); ++n)
        if (n == 0 || out_.step.nodes[n].unit) units.push_back(static_cast<int>(n));
    if (gathers_.size() + 1 == units.size()) units.erase(units.begin());  // the root has none of its own
    if (gathers_.empty() || gathers_.size() != units.size()) return;
    std::vector<std::int64_t> known(units.size(), 0);
    for (std::size_t n = 0; n < out_.step.nodes.size(); ++n) {
        int up = static_cast<int>(n);
        while (up > 0 && !node(up).unit) up = node(up).parent;
        const auto unit = std::find(units.begin(), units.end(), up);
        if (unit == units.end()) continue;
        for (const int p : out_.step.nodes[n].parameters)
            known[static_cast<std::size_t>(unit - units.begin())] +=
                out_.step.parameters[static_cast<std::size_t>(p)].elements;
    }
    // Two bytes each where the shapes alone have more than half as many elements as there are bytes of four.
    for (std::size_t u = 0; u < units.size(); ++u)
        if (4 * known[u] > gathers_[u] + gathers_[u] / 16) out_.element_bytes = 2;
    for (std::size_t u = 0; u < units.size(); ++u) {
        const std::int64_t elements = gathers_[u] / out_.element_bytes, left = elements - known[u];
        if (left <= elements / 100) continue;  // padding
        add_parameter(units[u], {known[u] > 0 ? "others" : "parameters", left});
        if (out_.parameters == ParametersFrom::nothing) out_.parameters = ParametersFrom::gathers;
    }
}

// Each all-reduce of the backward is a bucket that was complete there.
void StepLifter::read_buckets() {
    for (auto mark = buckets_.rbegin(); mark != buckets_.rend(); ++mark) {
        const int id = add_parameter(0, {"bucket", mark->bytes / static_cast<std::int64_t>(sizeof(float))});
        std::vector<Item>& items = items_of(mark->place);
        const Item both[] = {{.kind = Item::Kind::gradient, .index = id},
                             {.kind = Item::Kind::ready, .index = id}};
        items.insert(items.begin() + static_cast<std::ptrdiff_t>(mark->position), both, both + 2);
        out_.parameters = ParametersFrom::buckets;
    }
}

// A gradient is complete when its module's backward is. Its memory is the allocation of its size there; an
// allocation that a gradient takes over is no activation, nor is its free.
void StepLifter::place_gradients() {
    std::set<int> taken;
    for (Node& own : out_.step.nodes) {
        if (own.calls.empty()) continue;
        std::vector<Segment>& segments = own.calls.front().own;
        const auto busy = std::find_if(segments.begin(), segments.end(),
                                       [](const Segment& s) { return !s.backward.empty(); });
        std::vector<Item>& items = (busy == segments.end() ? segments.front() : *busy).backward;
        for (const int id : own.parameters) {
            const std::int64_t elements = out_.step.parameters[static_cast<std::size_t>(id)].elements;
            const auto memory = std::find_if(items.begin(), items.end(), [&](const Item& item) {
                if (item.kind != Item::Kind::allocate) return false;
                const std::int64_t bytes = out_.step.buffers[static_cast<std::size_t>(item.index)].bytes;
                return bytes >= 2 * elements && bytes <= 4 * elements + 512 && !taken.contains(item.index);
            });
            if (memory == items.end()) {
                items.push_back({.kind = Item::Kind::gradient, .index = id});
            } else {
                taken.insert(memory->index);
                memory->kind = Item::Kind::gradient;
                memory->index = id;
            }
            items.push_back({.kind = Item::Kind::ready, .index = id});
        }
    }
    if (taken.empty()) return;
    out_.step.for_each_item([&](Item& item) {
        if (item.kind == Item::Kind::free && taken.contains(item.index)) item.kind = Item::Kind::host;
    });
}

}  // namespace

LiftedRecording lift_step(const Trace& trace, const HostRangeRoles& roles, const HostPoints& points,
                          traces::Interval host, const StepLifterOptions& options) {
    return StepLifter(trace, roles, points, host, options).run();
}

}  // namespace shardscope::trainer::lift
