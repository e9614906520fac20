#include "trainer/pipeline/action.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "traces/schema/text.h"

namespace shardscope::trainer::pipeline {

namespace {

struct KindText {
    std::string_view text;
    ActionKind kind;
    bool numbered;  // a micro-batch follows
};
constexpr KindText kActionTexts[] = {
    {"F", ActionKind::forward, true},
    {"I", ActionKind::backward_input, true},
    {"W", ActionKind::backward_weight, true},
    {"B", ActionKind::backward, true},
    {"SEND_F", ActionKind::send_forward, true},
    {"RECV_F", ActionKind::recv_forward, true},
    {"SEND_B", ActionKind::send_backward, true},
    {"RECV_B", ActionKind::recv_backward, true},
    {"WAIT_SEND_F", ActionKind::wait_send_forward, true},
    {"WAIT_SEND_B", ActionKind::wait_send_backward, true},
    {"UNSHARD", ActionKind::unshard, false},
    {"RESHARD", ActionKind::reshard, false},
    {"REDUCE_GRAD", ActionKind::reduce_grad, false},
    {"WAIT_REDUCE_GRAD", ActionKind::wait_reduce_grad, false},
    {"BW", ActionKind::backward, true},  // of older versions of PyTorch; read, never written
};
const KindText& text_of_kind(ActionKind kind) {
    return *std::find_if(std::begin(kActionTexts), std::end(kActionTexts),
                         [&](const KindText& own) { return own.kind == kind; });
}

constexpr std::string_view kOverlap = "OVERLAP_F_B";

// Takes a number off the front; -1 if there is none, or it is above kMostNumbered.
int take_number(std::string_view& text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value > kMostNumbered) return -1;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

std::string unknown(std::string_view text) {
    constexpr std::size_t kShown = 40;
    return fmt::format("\"{}{}\" is not an action; write STAGE KIND MICRO-BATCH without blanks, such as 3F2",
                       text.substr(0, kShown), text.size() > kShown ? "..." : "");
}

std::string parse_action(std::string_view text, Action& action) {
    std::string_view rest = text;
    action.stage = take_number(rest);
    if (action.stage < 0) return unknown(text);
    const auto letters = std::min(rest.find_first_of("0123456789"), rest.size());
    const auto* const found =
        std::find_if(std::begin(kActionTexts), std::end(kActionTexts),
                     [&](const KindText& own) { return own.text == rest.substr(0, letters); });
    if (found == std::end(kActionTexts)) return unknown(text);
    rest.remove_prefix(letters);
    action.kind = found->kind;
    action.micro_batch = found->numbered ? take_number(rest) : 0;
    return action.micro_batch < 0 || !rest.empty() ? unknown(text) : "";
}

}  // namespace

std::string_view letters_of(ActionKind kind) {
    return text_of_kind(kind).text;
}

bool has_micro_batch(ActionKind kind) {
    return text_of_kind(kind).numbered;
}

std::string text_of(const Action& action) {
    return has_micro_batch(action.kind)
               ? fmt::format("{}{}{}", action.stage, letters_of(action.kind), action.micro_batch)
               : fmt::format("{}{}", action.stage, letters_of(action.kind));
}

std::span<const Action> cell_at(std::span<const Action> actions, std::size_t at) {
    return actions.subspan(at, actions[at].with_next && at + 1 < actions.size() ? 2 : 1);
}

std::string cell_text(std::span<const Action> cell) {
    if (cell.size() == 1) return text_of(cell.front());
    return fmt::format("({};{}){}", text_of(cell[0]), text_of(cell[1]), kOverlap);
}

std::string parse_cell(std::string_view text, std::vector<Action>& into) {
    text = traces::schema::trimmed(text);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
        text = traces::schema::trimmed(text.substr(1, text.size() - 2));
    if (text.empty()) return "";
    Action first;
    if (text.front() != '(') {
        std::string wrong = parse_action(text, first);
        if (wrong.empty()) into.push_back(first);
        return wrong;
    }
    const auto between = text.find(';'), end = text.find(')');
    if (between == std::string_view::npos || end == std::string_view::npos || end < between ||
        text.substr(end + 1) != kOverlap)
        return fmt::format("\"{}\" is not an overlapped pair; write one as (0F7;7B3){}", text.substr(0, 40),
                           kOverlap);
    Action second;
    for (auto [part, action] : {std::pair(text.substr(1, between - 1), &first),
                                std::pair(text.substr(between + 1, end - between - 1), &second)}) {
        if (std::string wrong = parse_action(traces::schema::trimmed(part), *action); !wrong.empty())
            return wrong;
    }
    if (first.kind != ActionKind::forward || !gives_input_gradient(second.kind))
        return fmt::format("{} and {} do not overlap; a pair is a forward and then a backward (B or I)",
                           text_of(first), text_of(second));
    first.with_next = true;
    into.push_back(first);
    into.push_back(second);
    return "";
}

}  // namespace shardscope::trainer::pipeline
