#include "trainer/lift/step_lifter.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "traces/store/columns/names.h"
#include "trainer/lift/step_lifting.h"

namespace shardscope::trainer::lift {

namespace {

using traces::DeviceKind;
using traces::ModuleRow;
using traces::Operation;
using traces::Trace;

constexpr std::string_view kSharded = "FSDP";

// "Linear_0" -> "Linear"; a name without a number is unchanged.
std::string class_of(std::string_view name) {
    const auto mark = name.rfind('_');
    if (mark == name.npos || mark + 1 == name.size()) return std::string(name);
    const std::string_view digits = name.substr(mark + 1);
    const bool number =
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    return std::string(number ? name.substr(0, mark) : name);
}

}  // namespace

// The root's last call in the step, and the place of its backward.
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

// A root for everything the step did.
void StepLifter::add_whole_model() {
    Node root;
    root.name = root.class_name = "model";
    root.calls.push_back({{Segment{}}, {}});
    out_.step.nodes.push_back(root);
    paths_.emplace_back();
}

LiftedRecording StepLifter::run() {
    find_parts();
    if (!out_.has_modules) {
        add_whole_model();
        places_.push_back({0, 0, 0, root_.start});
        open_places_.push_back(places_.back());
    }
    now_ = host_.start;
    for (const Point& point : points_) take(point);
    flush_ready();
    if (out_.step.nodes.empty()) add_whole_model();  // a wrapper with nothing recorded inside
    complete_parameters();
    for (const BucketMark& mark : buckets_) out_.buckets.push_back(mark.bytes);
    out_.gathers = std::ssize(gathers_);
    return std::move(out_);
}

// The host's time since the previous point belongs to the point that follows.
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
        case Point::Kind::other:  // cudaMalloc, a query: counts for the next point
            gap_ += point.end - point.time;
            return;
    }
    if (!launches) return;
    out_.launch_ns.push_back(point.end - point.time);
    // The time of this call beyond a typical one counts for the next point.
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
    // fully_shard derives a class FSDPBlock from Block.
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
    if (parent < 0 && !out_.step.nodes.empty()) parent = 0;  // beside the root: treated as inside
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
    // Modules that another thread left open inside it end, too.
    auto modules = std::count_if(found, open_.end(), [](const Open& o) { return o.node >= 0; });
    open_.erase(found, open_.end());
    wrapped_ = false;
    for (; modules > 0; --modules) {
        open_places_.pop_back();
        if (open_places_.empty()) return;
        Place& parent = open_places_.back();
        node(parent.node).calls[parent.call].own.emplace_back();
        ++parent.segment;
        parent.since = point.time;
        places_.push_back(parent);
    }
}

// --- items -------------------------------------------------------------------------------------------

// The place of an autograd node: that of its forward operator where it is known; else that of the module that
// the range names, the latest that the backward has not passed; else the backward's current place.
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

// Where the forward was at a time; null: outside the root.
const Place* StepLifter::place_at(std::int64_t time) const {
    const auto after = std::upper_bound(places_.begin(), places_.end(), time,
                                        [](std::int64_t t, const Place& p) { return t < p.since; });
    return time >= root_.end || after == places_.begin() ? nullptr : &*std::prev(after);
}

Place* StepLifter::place_of_module(int id) {
    const auto n = places_.size();
    // The search starts where the backward is; the same place may be met again.
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
    // Where the stream was idle although work was queued, and no communication explains the wait, the launch
    // took that long, unless the work waited for a core.
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

// Records what a collective shows of units and buckets.
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

LiftedRecording lift_step(const Trace& trace, const HostRangeRoles& roles, const HostPoints& points,
                          traces::Interval host, const StepLifterOptions& options) {
    return StepLifter(trace, roles, points, host, options).run();
}

}  // namespace shardscope::trainer::lift
