// The parameters of each module, and where in its backward their gradients are complete.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "trainer/lift/operator_parameters.h"
#include "trainer/lift/step_lifting.h"

namespace shardscope::trainer::lift {

namespace {

using traces::RangeKind;

}  // namespace

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
    if (gathers_.empty()) complete_by_buckets();
    place_gradients();
}

// Adds what the module table lists beyond the gradients that were seen: frozen parameters, or, where no
// gradient has memory of its own, one for all that a module owns.
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

// Reads the parameters from the forward's operators, those of each module's first call.
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

// How a unit's gather exceeds its parameters. fully_shard pads each to the same rows on every rank;
// FullyShardedDataParallel aligns each to 16 bytes, if at all, and pads their sum.
struct StepLifter::UnitParameters {
    std::vector<int> ids;
    std::int64_t gathered = 0;  // elements in their gather
    std::int64_t padding = 0;   // extra elements that it may have
};

StepLifter::UnitParameters StepLifter::parameters_of_unit(int unit, std::int64_t element_bytes) {
    UnitParameters out;
    const std::int64_t ranks = std::max<std::int64_t>(options_.shard_ranks, 1);
    for (std::size_t n = 0; n < out_.step.nodes.size(); ++n) {
        int up = static_cast<int>(n);
        while (up > 0 && !node(up).unit) up = node(up).parent;
        if (std::max(up, 0) != unit) continue;
        for (const int p : out_.step.nodes[n].parameters) {
            const LiftedParameter& parameter = out_.step.parameters[static_cast<std::size_t>(p)];
            out.ids.push_back(p);
            const std::int64_t rows = options_.fully_shard ? std::max<std::int64_t>(parameter.rows, 0) : 0;
            const std::int64_t missing = rows > 0 ? (ranks - rows % ranks) % ranks : 0;
            out.gathered += parameter.elements + (rows > 0 ? missing * (parameter.elements / rows) : 0);
            if (!options_.fully_shard) out.padding += 16 / element_bytes - 1;
        }
    }
    if (!options_.fully_shard) out.padding += ranks - 1;
    return out;
}

// A parameter that two modules of a unit read (tied embeddings) is gathered once: where the shapes have more
// elements than the gather, the later one of two of the same shape is the earlier one. The pairs are (later,
// earlier).
std::vector<std::pair<int, int>> StepLifter::gathered_once(UnitParameters& known, std::int64_t elements) {
    const auto shape = [&](int id) {
        const LiftedParameter& p = out_.step.parameters[static_cast<std::size_t>(id)];
        return std::pair(p.elements, p.rows);
    };
    std::vector<std::pair<int, int>> pairs;
    for (std::size_t i = known.ids.size(); i-- > 1;) {
        const int id = known.ids[i];
        if (shape(id).first > known.gathered - elements) continue;
        const auto before = known.ids.begin() + static_cast<std::ptrdiff_t>(i);
        const auto twin =
            std::find_if(known.ids.begin(), before, [&](int o) { return shape(o) == shape(id); });
        if (twin == before) continue;
        pairs.emplace_back(id, *twin);
        known.gathered -= shape(id).first;
    }
    return pairs;
}

void StepLifter::share(std::vector<std::pair<int, int>> pairs) {
    std::sort(pairs.begin(), pairs.end());
    while (!pairs.empty()) {
        const auto [gone, kept] = pairs.back();
        pairs.pop_back();
        replace_parameter(gone, kept);
        for (auto& [other, of] : pairs) of -= of > gone;
    }
}

// Nodes that own or read `gone` get `kept`; the numbers above it move down.
void StepLifter::replace_parameter(int gone, int kept) {
    for (Node& own : out_.step.nodes) {
        const auto has = [](const std::vector<int>& list, int id) {
            return std::find(list.begin(), list.end(), id) != list.end();
        };
        if (has(own.parameters, gone) && !has(own.parameters, kept) && !has(own.shared, kept))
            own.shared.push_back(kept);
        for (std::vector<int>* list : {&own.parameters, &own.shared}) {
            std::erase(*list, gone);
            for (int& id : *list) id -= id > gone;
        }
    }
    out_.step.parameters.erase(out_.step.parameters.begin() + gone);
}

// The units' bytes, in the order in which they are gathered in the forward, override the shapes: what only
// elementwise operators read (the weight of a norm, a position embedding) is a parameter of the unit's
// module.
void StepLifter::read_gathers() {
    std::vector<int> units;  // nodes, in the order of their forward
    for (std::size_t n = 0; n < out_.step.nodes.size(); ++n)
        if (n == 0 || out_.step.nodes[n].unit) units.push_back(static_cast<int>(n));
    if (gathers_.size() + 1 == units.size()) units.erase(units.begin());  // the root has no gather of its own
    if (gathers_.empty() || gathers_.size() != units.size()) return;
    // Assumes elements of two bytes if that is closer to what most units gather.
    std::int64_t of_two = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
        const auto off = [&](std::int64_t element_bytes) {
            UnitParameters known = parameters_of_unit(units[u], element_bytes);
            gathered_once(known, gathers_[u] / element_bytes);
            return std::abs(element_bytes * known.gathered - gathers_[u]);
        };
        of_two += off(2) < off(4) ? 1 : -1;
    }
    if (of_two > 0) out_.element_bytes = 2;
    for (std::size_t u = 0; u < units.size(); ++u) {
        const std::int64_t elements = gathers_[u] / out_.element_bytes;
        UnitParameters known = parameters_of_unit(units[u], out_.element_bytes);
        share(gathered_once(known, elements));
        known = parameters_of_unit(units[u], out_.element_bytes);
        const std::int64_t left = elements - known.gathered;
        if (left <= known.padding) continue;
        add_parameter(units[u], {known.ids.empty() ? "parameters" : "others", left});
        if (out_.parameters == ParametersFrom::nothing) out_.parameters = ParametersFrom::gathers;
    }
}

// The excess of all DDP buckets over the shapes goes to the root, which is not a unit. Where the buckets have
// less, one parameter that several modules read explains it; else some are frozen, and it is unknown which.
void StepLifter::complete_by_buckets() {
    std::int64_t bytes = 0;
    for (const BucketMark& mark : buckets_) bytes += mark.bytes;
    if (bytes == 0) return;
    UnitParameters known = parameters_of_unit(0, out_.element_bytes);
    if (std::abs(2 * known.gathered - bytes) <= bytes / 50) out_.element_bytes = 2;
    const std::int64_t all = bytes / out_.element_bytes;
    const std::vector<std::pair<int, int>> pairs = gathered_once(known, all);
    const bool one = std::all_of(pairs.begin(), pairs.end(),
                                 [&](const auto& pair) { return pair.second == pairs.front().second; });
    if (one && known.gathered == all) share(pairs);
    const std::int64_t left = all - out_.step.elements();
    if (left > 0) add_parameter(0, {"others", left});
    out_.more_than_buckets = left < 0;
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

// A gradient is complete when its module's backward is. Its memory is the allocation of its size there;
// neither an allocation that a gradient takes over nor its free is one of an activation.
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

}  // namespace shardscope::trainer::lift
