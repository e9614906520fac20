// Allocations and frees: which are the model's, and which of them are gradients.
#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/lift/step_lifting.h"

namespace shardscope::trainer::lift {

namespace {

using traces::MemoryCategory;
using traces::Phase;

constexpr std::string_view kGradient = ".grad";

}  // namespace

bool StepLifter::is_engine_memory(std::size_t m) const {
    if (!options_.ours) return false;
    const MemoryCategory category = trace_.memory.category[m];
    const Phase phase = trace_.memory.phase[m];
    if (category != MemoryCategory::activations && category != MemoryCategory::other) return true;
    return phase != Phase::data && phase != Phase::forward && phase != Phase::backward &&
           phase != Phase::recompute;
}

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
    // After the backward the loop's variables go out of scope, all together.
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

}  // namespace shardscope::trainer::lift
