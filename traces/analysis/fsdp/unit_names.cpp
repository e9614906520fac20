// See unit_names.h.
#include "traces/analysis/fsdp/unit_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "traces/store/columns/names.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::string_view kModuleName = "FullyShardedDataParallel_", kFsdp1 = "FullyShardedDataParallel.",
                           kFsdp2 = "FSDP::", kFor = " for ";

// The name without the suffix of emit_nvtx: ", seq = 4, op_id = 7".
std::string_view without_numbers(std::string_view text) {
    return text.substr(0, std::min({text.find(", seq ="), text.find(", op_id ="), text.find(", sizes =")}));
}

// "layers.3 [pg=1]" -> "layers.3".
std::string_view without_group(std::string_view text) {
    const auto group = text.find(" [pg=");
    return group == text.npos ? text : text.substr(0, group);
}

UnitName fsdp1(std::string_view hook) {
    constexpr std::array<std::pair<std::string_view, UnitMark>, 8> kHooks = {{
        {"forward", UnitMark::forward},
        {"_pre_backward_hook", UnitMark::pre_backward},
        {"_post_backward_hook", UnitMark::post_backward},
        {"_post_backward_hook_reshard_only", UnitMark::post_backward},
        {"_pre_forward_prefetch", UnitMark::forward_prefetch},
        {"_pre_backward_prefetch", UnitMark::backward_prefetch},
        {"_post_backward_prefetch", UnitMark::backward_prefetch},
        {"rate_limiter", UnitMark::limiter},
    }};
    for (const auto& [name, mark] : kHooks) {
        if (hook == name) return {mark, {}};
    }
    return {};
}

UnitName fsdp2(std::string_view text) {
    std::string_view label = without_group(text), unit;
    if (const auto open = text.find(" ("); open != text.npos) {
        label = text.substr(0, open);
        const auto close = text.rfind(')');
        if (close == text.npos || close < open) return {};
        unit = without_group(text.substr(open + 2, close - open - 2));
    } else if (const auto target = label.find(kFor); target != label.npos) {
        unit = label.substr(target + kFor.size());
        label = label.substr(0, target);
    }
    constexpr std::array<std::pair<std::string_view, UnitMark>, 10> kLabels = {{
        {"pre_forward", UnitMark::pre_forward},
        {"post_forward", UnitMark::post_forward},
        {"pre_backward", UnitMark::pre_backward},
        {"post_backward_reduce", UnitMark::post_backward},
        {"forward_prefetch", UnitMark::forward_prefetch},
        {"backward_prefetch", UnitMark::backward_prefetch},
        {"all_gather", UnitMark::other},
        {"all_gather_copy_out", UnitMark::copy_out},
        {"post_backward_accumulate", UnitMark::other},
        {"post_backward_reshard", UnitMark::other},
    }};
    for (const auto& [name, mark] : kLabels) {
        if (label == name) return {mark, std::string(unit)};
    }
    if (!unit.empty()) return {UnitMark::other, std::string(unit)};
    return {};
}

}  // namespace

UnitName unit_name(std::string_view range) {
    const std::string_view text = without_numbers(range);
    if (text.starts_with(kFsdp2)) return fsdp2(text.substr(kFsdp2.size()));
    if (text.starts_with(kFsdp1)) return fsdp1(text.substr(kFsdp1.size()));
    if (text.starts_with(store::kModulePrefix)) {
        const std::string_view module = text.substr(store::kModulePrefix.size());
        if (!module.starts_with(kModuleName) || module.ends_with(store::kBackwardSuffix)) return {};
        return {UnitMark::module_frame, std::string(module)};
    }
    if (text.starts_with("autograd::engine::evaluate_function")) return {UnitMark::autograd, {}};
    if (text.starts_with("Optimizer.")) return {UnitMark::outside, {}};
    if (text == "recompute") return {UnitMark::recompute, {}};
    if (text == "_unshard") return {UnitMark::unshard, {}};
    return {};
}

}  // namespace shardscope::traces::analysis
