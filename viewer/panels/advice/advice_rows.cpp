// See advice_rows.h.
#include "viewer/panels/advice/advice_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

struct RulePanel {
    std::string_view rule, panel;
    bool place = true;
};
constexpr std::array kPanels = {
    RulePanel{"exposed-communication", "units"},
    RulePanel{"slow-link", "distributed"},
    RulePanel{"p2p-missing", "topology"},
    RulePanel{"ring-over-slow-link", "topology"},
    RulePanel{"cross-numa", "topology", false},
    RulePanel{"gpu-unused", "job", false},
    RulePanel{"gpu-throttled", "job", false},
    RulePanel{"cpu-starved", "job", false},
    RulePanel{"swap", "job", false},
    RulePanel{"nic-saturated", "job", false},
    RulePanel{"prefetch-off", "units"},
    RulePanel{"prefetch-miss", "units"},
    RulePanel{"prefetch-mistarget", "units"},
    RulePanel{"limiter-stall", "units"},
    RulePanel{"late-reduction", "collectives"},
    RulePanel{"wasted-regather", "units"},
    RulePanel{"checkpoint-regather", "units"},
    RulePanel{"padding", "collectives"},
    RulePanel{"wrap-too-fine", "units"},
    RulePanel{"straggler", "distributed"},
    RulePanel{"host-communication", "distributed"},
    RulePanel{"uneven-ranks", "distributed"},
    RulePanel{"data-loader", "summary"},
    RulePanel{"host-bound", "idle"},
    RulePanel{"idle-device", "idle"},
    RulePanel{"file-waits", "copies"},
    RulePanel{"copies-on-path", "idle"},
    RulePanel{"low-occupancy", "kernels"},
    RulePanel{"wrap-too-coarse", "memory"},
    RulePanel{"activations-are-peak", "memory"},
    RulePanel{"optimizer-is-peak", "memory"},
    RulePanel{"gradient-double-buffer", "memory"},
    RulePanel{"memory-near-limit", "memory"},
    RulePanel{"untracked-memory", "memory"},
    RulePanel{"fragmentation", "memory"},
    RulePanel{"out-of-memory", "memory"},
    RulePanel{"policy-matched-nothing", "modules", false},
    RulePanel{"empty-shard", "shardmap", false},
    RulePanel{"clip-mismatch", "runs", false},
    RulePanel{"double-average", "runs", false},
};

const RulePanel* find(std::string_view rule) {
    const auto at =
        std::find_if(kPanels.begin(), kPanels.end(), [&](const RulePanel& p) { return p.rule == rule; });
    return at == kPanels.end() ? nullptr : &*at;
}

}  // namespace

std::string figure_text(const traces::analysis::AdviceFigure& figure) {
    if (figure.unit == "us/step") return draw::format_duration(figure.value * 1e3) + " per step";
    if (figure.unit == "us") return draw::format_duration(figure.value * 1e3);
    if (figure.unit == "bytes") return draw::format_size(std::llround(figure.value));
    if (figure.unit == "bytes/step") return draw::format_size(std::llround(figure.value)) + " per step";
    if (figure.unit == "%") return draw::format_percent(figure.value);
    const bool whole = figure.value == std::round(figure.value) && std::abs(figure.value) < 1e15;
    std::string number =
        whole ? draw::format_count(std::llround(figure.value)) : draw::format_decimal(figure.value, 2);
    if (figure.unit.empty()) return number;
    if (figure.unit == "times/step" && figure.value == 1) return "once per step";
    if (figure.unit == "times/step") return number + " times per step";
    if (figure.unit == "times" && figure.value == 1) return "once";
    return fmt::format("{} {}", number, figure.unit);
}

std::vector<std::size_t> by_weight(const traces::analysis::AdviceReport& report) {
    std::vector<std::size_t> order(report.findings.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    traces::schema::sort_rows(order, [&](std::size_t a, std::size_t b) {
        return report.findings[a].weight < report.findings[b].weight;
    });
    return order;
}

std::string_view panel_of(std::string_view rule, bool units) {
    // The only rule of the units' panel that also applies to traces without units.
    if (rule == "exposed-communication" && !units) return "distributed";
    const RulePanel* found = find(rule);
    return found != nullptr ? found->panel : "runs";
}

bool has_place(std::string_view rule) {
    const RulePanel* found = find(rule);
    return found != nullptr && found->place;
}

void go_to_place(model::Session& session, const traces::analysis::AdvicePlace& place) {
    model::SelectedEvent event;
    if (place.event >= 0) event = {model::EventKind::device, place.event};
    if (place.range >= 0) event = {model::EventKind::range, place.range};
    session.current()->cursor = place.from + (place.to - place.from) / 2;
    session.go_to({place.from, place.to}, place.rank, event);
}

}  // namespace shardscope::viewer::panels
