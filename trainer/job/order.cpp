// parallel.order: the order of a mesh's axes.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::job {

namespace {

constexpr std::array<std::string_view, 5> kAxisNames = {"pp", "dp", "cp", "ep", "tp"};

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto end = text.find('-');
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

// The experts' axis is part of dp and cp: it stands right after the inner one of the two.
void place_experts(MeshOrder& order) {
    std::erase(order, MeshAxis::ep);
    const auto is_data = [](MeshAxis axis) { return axis == MeshAxis::dp || axis == MeshAxis::cp; };
    const auto inner = std::find_if(order.rbegin(), order.rend(), is_data);
    order.insert(inner.base(), MeshAxis::ep);
}

}  // namespace

std::string to_text(const MeshOrder& order) {
    std::vector<std::string_view> names;
    for (const MeshAxis axis : order) names.push_back(kAxisNames[static_cast<std::size_t>(axis)]);
    return traces::schema::joined(names, "-");
}

MeshOrder parse_order(const std::string& text) {
    MeshOrder order;  // the axes that the text names, without repetitions
    const std::vector<std::string_view> parts = split(text);
    for (const std::string_view part : parts) {
        const auto* const name = std::find(kAxisNames.begin(), kAxisNames.end(), part);
        const auto axis = static_cast<MeshAxis>(name - kAxisNames.begin());
        if (name != kAxisNames.end() && std::find(order.begin(), order.end(), axis) == order.end())
            order.push_back(axis);
    }
    const bool has_experts = std::find(order.begin(), order.end(), MeshAxis::ep) != order.end();
    bool is_order = order.size() == parts.size();
    for (const MeshAxis axis : kDefaultOrder) {  // each missing axis, before the next one in this order
        if (std::find(order.begin(), order.end(), axis) != order.end()) continue;
        is_order = is_order && axis == MeshAxis::ep;
        order.insert(std::find_if(order.begin(), order.end(), [&](MeshAxis other) { return other > axis; }),
                     axis);
    }
    MeshOrder nearest = order;
    place_experts(nearest);
    if (is_order && (!has_experts || nearest == order)) return nearest;
    throw JobError(
        fmt::format("\"{}\" is not an order of pp, dp, cp, ep and tp, each once, with ep (which may be "
                    "omitted) right after "
                    "the inner one of dp and cp, of which it is a part; use \"{}\"",
                    text, to_text(nearest)));
}

}  // namespace shardscope::trainer::job
