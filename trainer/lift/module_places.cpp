#include "trainer/lift/module_places.h"

#include <algorithm>
#include <iterator>

#include "traces/store/columns/names.h"
#include "trainer/lift/host_points.h"

namespace shardscope::trainer::lift {

namespace {

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

ModulePlaces::ModulePlaces(const traces::store::Trace& trace, bool ours, LiftedStep& step)
    : trace_(trace), ours_(ours), step_(step) {
    for (const traces::schema::ModuleRow& row : trace.modules) rows_.emplace(row.id, &row);
}

void ModulePlaces::add_whole_model() {
    Node root;
    root.name = root.class_name = "model";
    root.calls.push_back({{Segment{}}, {}});
    step_.nodes.push_back(root);
    paths_.emplace_back();
}

void ModulePlaces::open_whole_model(std::int64_t time) {
    add_whole_model();
    places_.push_back({0, 0, 0, time});
    open_places_.push_back(places_.back());
}

void ModulePlaces::open(std::int32_t range, std::int64_t time) {
    const auto r = static_cast<std::size_t>(range);
    const traces::schema::ModuleRow* module = row(trace_.ranges.module[r]);
    std::string name = module ? module->name : std::string(trace_.strings[trace_.ranges.name[r]]);
    if (name.starts_with(traces::store::kModulePrefix))
        name = name.substr(traces::store::kModulePrefix.size());
    std::string class_name = module && !module->class_name.empty() ? module->class_name : class_of(name);
    // fully_shard derives a class FSDPBlock from Block.
    const bool sharded = !ours_ && class_name.starts_with(kSharded) && class_name.size() > kSharded.size() &&
                         class_name[kSharded.size()] >= 'A' && class_name[kSharded.size()] <= 'Z';
    if (sharded) class_name = class_name.substr(kSharded.size());
    if (is_wrapper(class_name)) {
        open_.push_back({range, -1});
        wrapped_ = class_name == "FullyShardedDataParallel";
        return;
    }
    const int id = add_node(module, name, class_name, wrapped_ || sharded);
    wrapped_ = false;
    node(id).calls.push_back({{Segment{}}, {}});
    if (!open_places_.empty())
        node(open_places_.back().node).calls[open_places_.back().call].children.push_back(id);
    const Place place{id, node(id).calls.size() - 1, 0, time};
    places_.push_back(place);
    open_places_.push_back(place);
    open_.push_back({range, id});
}

// The node of that name inside the open module; created if it is new.
int ModulePlaces::add_node(const traces::schema::ModuleRow* row, const std::string& name,
                           const std::string& class_name, bool unit) {
    int parent = -1;
    for (auto o = open_.rbegin(); o != open_.rend() && parent < 0; ++o) parent = o->node;
    if (parent < 0 && !step_.nodes.empty()) parent = 0;  // not inside the root: treated as if it were
    const auto [known, fresh] = known_.try_emplace({parent, name}, static_cast<int>(step_.nodes.size()));
    const int id = known->second;
    if (!fresh) return id;
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
    made.unit = unit;
    step_.nodes.push_back(std::move(made));
    paths_.push_back(path);
    if (row) node_of_row_.emplace(row->id, id);
    node_of_name_.emplace(name, id);
    return id;
}

void ModulePlaces::close(std::int32_t range, std::int64_t time) {
    const auto found =
        std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.range == range; });
    if (found == open_.end()) return;
    // This also ends the modules inside it that another thread left open.
    auto modules = std::count_if(found, open_.end(), [](const Open& o) { return o.node >= 0; });
    open_.erase(found, open_.end());
    wrapped_ = false;
    for (; modules > 0; --modules) {
        open_places_.pop_back();
        if (open_places_.empty()) return;
        Place& parent = open_places_.back();
        node(parent.node).calls[parent.call].own.emplace_back();
        ++parent.segment;
        parent.since = time;
        places_.push_back(parent);
    }
}

const Place* ModulePlaces::at(std::int64_t time) const {
    const auto after = std::upper_bound(places_.begin(), places_.end(), time,
                                        [](std::int64_t t, const Place& p) { return t < p.since; });
    return after == places_.begin() ? nullptr : &*std::prev(after);
}

const Place* ModulePlaces::next_of(int id) {
    const auto n = places_.size();
    // The search starts at the backward's position, which may match again.
    for (std::size_t i = next_place_; i < n; ++i) {
        const Place& place = places_[n - 1 - i];
        if (place.node != id) continue;
        next_place_ = i;
        return &place;
    }
    for (std::size_t i = 0; i < std::min(next_place_, n); ++i) {
        const Place& place = places_[n - 1 - i];
        if (place.node == id) return &place;
    }
    return nullptr;
}

int ModulePlaces::node_of_row(int module_row) const {
    const auto found = node_of_row_.find(module_row);
    return found == node_of_row_.end() ? -1 : found->second;
}

int ModulePlaces::node_named(std::string_view name) const {
    const auto found = node_of_name_.find(name);
    return found == node_of_name_.end() ? -1 : found->second;
}

int ModulePlaces::node_of_path(std::string_view path) const {
    for (std::size_t n = 0; n < paths_.size(); ++n)
        if (paths_[n] == path) return static_cast<int>(n);
    return -1;
}

const traces::schema::ModuleRow* ModulePlaces::row(int module_row) const {
    const auto found = rows_.find(module_row);
    return found == rows_.end() ? nullptr : found->second;
}

std::vector<Item>& backward_of(LiftedStep& step, const Place& place) {
    if (place.node < 0) return step.loss.backward;
    return step.nodes[static_cast<std::size_t>(place.node)].calls[place.call].own[place.segment].backward;
}

}  // namespace shardscope::trainer::lift
