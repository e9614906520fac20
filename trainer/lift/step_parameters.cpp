#include "trainer/lift/step_parameters.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "trainer/lift/operator_parameters.h"

namespace shardscope::trainer::lift {

namespace {

using traces::store::RangeKind;

constexpr std::int64_t kRounding = 512;  // bytes to which an allocator rounds, at most

// The parameters of a unit, and by how much its gather exceeds them. fully_shard pads each to the same rows
// on every rank; FullyShardedDataParallel aligns each to 16 bytes, if at all, and pads their sum.
struct UnitParameters {
    std::vector<int> ids;
    std::int64_t gathered = 0;  // elements in their gather
    std::int64_t padding = 0;   // extra elements that it may have
};

struct Completion {
    const traces::store::Trace& trace;
    const traces::store::RankIndex rank;
    const StepParts& parts;
    const ModulePlaces& places;
    const UnitTraffic& traffic;
    const StepLifterOptions& options;
    LiftedRecording& out;

    void run();
    void complete_by_table();
    void read_shapes();
    void read_gathers();
    void complete_by_buckets();
    void read_buckets();
    void place_gradients();
    UnitParameters parameters_of_unit(int unit, std::int64_t element_bytes);
    std::vector<std::pair<int, int>> gathered_once(UnitParameters& known, std::int64_t elements);
    void share(std::vector<std::pair<int, int>> pairs);
    void replace_parameter(int gone, int kept);
    std::string_view text(traces::schema::StringId id) const { return trace.strings[id]; }
    Node& node(int id) { return out.step.nodes[static_cast<std::size_t>(id)]; }
};

void Completion::run() {
    if (options.ours) {
        complete_by_table();
        return;
    }
    read_shapes();
    read_gathers();
    if (out.step.parameters.empty()) {
        read_buckets();
        return;
    }
    if (traffic.gathers.empty()) complete_by_buckets();
    place_gradients();
}

// Adds what the module table lists beyond the gradients that were seen: frozen parameters or, if no gradient
// has its own memory, one parameter for all that a module owns.
void Completion::complete_by_table() {
    const bool named = out.parameters == ParametersFrom::gradients;
    for (const auto& [row_id, id] : places.nodes_of_rows()) {
        std::int64_t left = places.row(row_id)->parameters;
        for (const int p : node(id).parameters)
            left -= out.step.parameters[static_cast<std::size_t>(p)].elements;
        if (left <= 0) continue;
        const int parameter = add_parameter(out.step, id, {named ? "frozen" : "parameters", left, 0, !named});
        if (named) continue;
        out.parameters = ParametersFrom::gathers;
        std::vector<Item>& items = node(id).calls.front().own.front().backward;
        items.insert(items.begin(), {.kind = Item::Kind::gradient, .index = parameter});
        items.push_back({.kind = Item::Kind::ready, .index = parameter});
    }
    if (named || out.step.parameters.empty()) return;
    out.parameters = ParametersFrom::gradients;
}

// Reads the parameters from the forward's operators, in the first call of each module.
void Completion::read_shapes() {
    const traces::store::HostRanges& ranges = trace.ranges;
    if (ranges.detail.empty() || !parts.has_modules) return;
    const auto listed = trace.strings.find(kListedParameters);  // lists are complete: operators add nothing
    for (std::size_t r = 0; r < ranges.size(); ++r) {
        if (listed && listed != ranges.name[r]) continue;
        const std::int64_t start = ranges.start[r];
        if (!parts.in_forward(start) || ranges.kind[r] != RangeKind::operation) continue;
        if (trace.threads[ranges.thread[r]].rank != rank || !reads_parameters(text(ranges.name[r]))) continue;
        // aten::addmm inside aten::linear reads the same parameters.
        bool inside = false;
        for (std::int32_t p = ranges.parent[r]; p >= 0; p = ranges.parent[static_cast<std::size_t>(p)])
            inside = inside || reads_parameters(text(ranges.name[static_cast<std::size_t>(p)]));
        if (inside) continue;
        const Place* place = places.at(start);
        if (!place || place->node < 0 || place->call > 0) continue;
        if (out.batch == 0) out.batch = batch_of(text(ranges.name[r]), text(ranges.detail[r]));
        for (const OperatorParameter& own : parameters_of(text(ranges.name[r]), text(ranges.detail[r]))) {
            add_parameter(out.step, place->node, {std::string(own.name), own.elements, own.rows});
            out.parameters = ParametersFrom::shapes;
        }
    }
}

UnitParameters Completion::parameters_of_unit(int unit, std::int64_t element_bytes) {
    UnitParameters known;
    const std::int64_t ranks = std::max<std::int64_t>(options.shard_ranks, 1);
    for (std::size_t n = 0; n < out.step.nodes.size(); ++n) {
        int up = static_cast<int>(n);
        while (up > 0 && !node(up).unit) up = node(up).parent;
        if (std::max(up, 0) != unit) continue;
        for (const int p : out.step.nodes[n].parameters) {
            const LiftedParameter& parameter = out.step.parameters[static_cast<std::size_t>(p)];
            known.ids.push_back(p);
            const std::int64_t rows = options.fully_shard ? std::max<std::int64_t>(parameter.rows, 0) : 0;
            const std::int64_t missing = rows > 0 ? (ranks - rows % ranks) % ranks : 0;
            known.gathered += parameter.elements + (rows > 0 ? missing * (parameter.elements / rows) : 0);
            if (!options.fully_shard) known.padding += 16 / element_bytes - 1;
        }
    }
    if (!options.fully_shard) known.padding += ranks - 1;
    return known;
}

// A parameter that two modules of a unit read (tied embeddings) is gathered once: if the shapes have more
// elements than the gather, two parameters of the same shape are taken as one. Returns pairs (later,
// earlier).
std::vector<std::pair<int, int>> Completion::gathered_once(UnitParameters& known, std::int64_t elements) {
    const auto shape = [&](int id) {
        const LiftedParameter& p = out.step.parameters[static_cast<std::size_t>(id)];
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

void Completion::share(std::vector<std::pair<int, int>> pairs) {
    std::sort(pairs.begin(), pairs.end());
    while (!pairs.empty()) {
        const auto [gone, kept] = pairs.back();
        pairs.pop_back();
        replace_parameter(gone, kept);
        for (auto& [other, of] : pairs) of -= of > gone;
    }
}

// Gives `kept` to the nodes that own or read `gone`; parameter numbers above `gone` move down by one.
void Completion::replace_parameter(int gone, int kept) {
    for (Node& own : out.step.nodes) {
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
    out.step.parameters.erase(out.step.parameters.begin() + gone);
}

// The units' bytes, in the order of their gathers in the forward, override the shapes: what only elementwise
// operators read (the weight of a norm, a position embedding) becomes a parameter of the unit's module.
void Completion::read_gathers() {
    std::vector<int> units;  // nodes, in the order of their forward
    for (std::size_t n = 0; n < out.step.nodes.size(); ++n)
        if (n == 0 || out.step.nodes[n].unit) units.push_back(static_cast<int>(n));
    if (traffic.gathers.size() + 1 == units.size()) units.erase(units.begin());  // the root has no gather
    if (traffic.gathers.empty() || traffic.gathers.size() != units.size()) return;
    // Assumes two bytes per element if that matches the gathers of most units better.
    std::int64_t of_two = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
        const auto off = [&](std::int64_t element_bytes) {
            UnitParameters known = parameters_of_unit(units[u], element_bytes);
            gathered_once(known, traffic.gathers[u] / element_bytes);
            return std::abs(element_bytes * known.gathered - traffic.gathers[u]);
        };
        of_two += off(2) < off(4) ? 1 : -1;
    }
    if (of_two > 0) out.element_bytes = 2;
    for (std::size_t u = 0; u < units.size(); ++u) {
        const std::int64_t elements = traffic.gathers[u] / out.element_bytes;
        UnitParameters known = parameters_of_unit(units[u], out.element_bytes);
        share(gathered_once(known, elements));
        known = parameters_of_unit(units[u], out.element_bytes);
        const std::int64_t left = elements - known.gathered;
        if (left <= known.padding) continue;
        add_parameter(out.step, units[u], {known.ids.empty() ? "parameters" : "others", left});
        if (out.parameters == ParametersFrom::nothing) out.parameters = ParametersFrom::gathers;
    }
}

// The excess of all DDP buckets over the shapes goes to the root. If the buckets have fewer elements, either
// one parameter that several modules read explains it, or some parameters are frozen and it is unknown which.
void Completion::complete_by_buckets() {
    std::int64_t bytes = 0;
    for (const UnitTraffic::Bucket& mark : traffic.buckets) bytes += mark.bytes;
    if (bytes == 0) return;
    UnitParameters known = parameters_of_unit(0, out.element_bytes);
    if (std::abs(2 * known.gathered - bytes) <= bytes / 50) out.element_bytes = 2;
    const std::int64_t all = bytes / out.element_bytes;
    const std::vector<std::pair<int, int>> pairs = gathered_once(known, all);
    const bool one = std::all_of(pairs.begin(), pairs.end(),
                                 [&](const auto& pair) { return pair.second == pairs.front().second; });
    if (one && known.gathered == all) share(pairs);
    const std::int64_t left = all - out.step.elements();
    if (left > 0) add_parameter(out.step, 0, {"others", left});
    out.more_than_buckets = left < 0;
}

// Each all-reduce in the backward is a bucket that was complete at that place.
void Completion::read_buckets() {
    for (auto mark = traffic.buckets.rbegin(); mark != traffic.buckets.rend(); ++mark) {
        const int id =
            add_parameter(out.step, 0, {"bucket", mark->bytes / static_cast<std::int64_t>(sizeof(float))});
        std::vector<Item>& items = backward_of(out.step, mark->place);
        const Item both[] = {{.kind = Item::Kind::gradient, .index = id},
                             {.kind = Item::Kind::ready, .index = id}};
        items.insert(items.begin() + static_cast<std::ptrdiff_t>(mark->position), both, both + 2);
        out.parameters = ParametersFrom::buckets;
    }
}

// A gradient is complete when its module's backward is. Its memory is the allocation of its size there, or
// the one of several that lives longest (another is the gradient of the module's input); that allocation and
// its free then no longer count as an activation's.
void Completion::place_gradients() {
    std::set<int> taken;
    for (Node& own : out.step.nodes) {
        if (own.calls.empty()) continue;
        std::vector<Segment>& segments = own.calls.front().own;
        const auto busy = std::find_if(segments.begin(), segments.end(),
                                       [](const Segment& s) { return !s.backward.empty(); });
        std::vector<Item>& items = (busy == segments.end() ? segments.front() : *busy).backward;
        for (const int id : own.parameters) {
            const std::int64_t elements = out.step.parameters[static_cast<std::size_t>(id)].elements;
            auto memory = items.end();
            std::int64_t lived = 0;
            for (auto item = items.begin(); item != items.end(); ++item) {
                if (item->kind != Item::Kind::allocate || taken.contains(item->index)) continue;
                const auto buffer = static_cast<std::size_t>(item->index);
                const std::int64_t bytes = out.step.buffers[buffer].bytes, until = out.freed_ns[buffer];
                const auto near = [&](std::int64_t size) {
                    return bytes >= size && bytes <= size + kRounding;
                };
                if ((!near(2 * elements) && !near(4 * elements)) || until <= lived) continue;
                memory = item;
                lived = until;
            }
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
    out.step.for_each_item([&](Item& item) {
        if (item.kind == Item::Kind::free && taken.contains(item.index)) item.kind = Item::Kind::host;
    });
}

}  // namespace

int add_parameter(LiftedStep& step, int owner, LiftedParameter parameter) {
    step.parameters.push_back(std::move(parameter));
    const int id = static_cast<int>(step.parameters.size()) - 1;
    step.nodes[static_cast<std::size_t>(owner)].parameters.push_back(id);
    return id;
}

void complete_parameters(const traces::store::Trace& trace, traces::store::RankIndex rank,
                         const StepParts& parts, const ModulePlaces& places, const UnitTraffic& traffic,
                         const StepLifterOptions& options, LiftedRecording& out) {
    Completion{trace, rank, parts, places, traffic, options, out}.run();
}

}  // namespace shardscope::trainer::lift
