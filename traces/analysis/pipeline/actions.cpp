#include "traces/analysis/pipeline/actions.h"

#include <algorithm>
#include <array>
#include <optional>

#include "traces/schema/text.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::string_view kPrefix = "PP:", kDigits = "0123456789";

// "3F2", "0UNSHARD".
std::optional<PipelineAction> action_of(std::string_view text) {
    const std::size_t kind = std::min(text.find_first_not_of(kDigits), text.size());
    const std::size_t number = std::min(text.find_first_of(kDigits, kind), text.size());
    const std::string_view letters = text.substr(kind, number - kind);
    const auto stage = schema::number_of<int>(text.substr(0, kind));
    const bool is_kind = !letters.empty() && std::all_of(letters.begin(), letters.end(), [](char c) {
        return (c >= 'A' && c <= 'Z') || c == '_';
    });
    if (!stage || !is_kind) return {};
    // Older versions of PyTorch write "BW" for the whole backward.
    PipelineAction action{.stage = *stage, .kind = std::string(letters == "BW" ? "B" : letters)};
    if (number == text.size()) return action.is_compute() ? std::nullopt : std::optional(action);
    const auto micro_batch = schema::number_of<int>(text.substr(number));
    if (!micro_batch) return {};
    action.micro_batch = *micro_batch;
    return action;
}

}  // namespace

std::string_view name(ComputeKind kind) {
    static constexpr std::array<std::string_view, kComputeKinds> kNames = {
        "forward", "backward", "backward for input", "backward for weights", "forward and backward together"};
    return kNames[static_cast<std::size_t>(kind)];
}

ComputeKind compute_kind(const std::vector<PipelineAction>& actions) {
    if (actions.size() > 1) return ComputeKind::overlapped;
    const std::string& kind = actions.front().kind;
    if (kind == "I") return ComputeKind::input;
    if (kind == "W") return ComputeKind::weight;
    return actions.front().is_forward() ? ComputeKind::forward : ComputeKind::backward;
}

std::vector<PipelineAction> pipeline_actions(std::string_view range_name) {
    if (!range_name.starts_with(kPrefix)) return {};
    std::string_view text = range_name.substr(kPrefix.size());
    if (text.starts_with('(')) text = text.substr(1, text.find(')') - 1);  // the rest says how they overlap
    std::vector<PipelineAction> actions;
    for (;;) {
        const std::size_t end = text.find(';');
        const auto action = action_of(text.substr(0, end));
        if (!action) return {};
        actions.push_back(*action);
        if (end == std::string_view::npos) return actions;
        text.remove_prefix(end + 1);
    }
}

}  // namespace shardscope::traces::analysis
