// See start_rows.h.
#include "viewer/panels/start/start_rows.h"

#include <fmt/core.h>

#include "viewer/panels/advice/advice_rows.h"

namespace shardscope::viewer::panels {

using traces::analysis::Answer;
using traces::analysis::Question;

std::string_view panel_of(const Answer& answer) {
    if (answer.compares) return "compare";
    switch (answer.question) {
        case Question::peak:
            return "memory";
        case Question::time:
            return "summary";
        case Question::exposed:
            return answer.unit.empty() ? "distributed" : "units";
        case Question::late:
            return "distributed";
        case Question::change:
            return "advice";
    }
    return "runs";
}

bool has_place(const Answer& answer) {
    if (answer.compares || !answer.known) return false;
    switch (answer.question) {
        case Question::peak:
            return true;
        case Question::time:
            return false;
        case Question::exposed:
            return !answer.figures.empty();
        case Question::late:
            return answer.rank >= 0;
        case Question::change:
            return !answer.rule.empty() && has_place(answer.rule);
    }
    return false;
}

std::string item_of(const Answer& answer) {
    return fmt::format("start.{}{}", answer.compares ? "compared." : "",
                       traces::analysis::kQuestionNames[static_cast<std::size_t>(answer.question)]);
}

}  // namespace shardscope::viewer::panels
