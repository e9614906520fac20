// See answers.h.
#include "traces/analysis/answers/answers.h"

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/answers/answer_parts.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

Answer unknown_answer(Question question, std::string why) {
    return {.question = question, .known = false, .says = std::move(why)};
}

std::string_view asks(const Answer& answer) {
    switch (answer.question) {
        case Question::peak:
            return answer.compares ? "Which configuration peaks lower, and why?" : "What makes up the peak?";
        case Question::time:
            return answer.compares ? "Which configuration is faster, and why?"
                                   : "Where does a step's time go?";
        case Question::exposed:
            return "Which communication is exposed, and which module waits?";
        case Question::late:
            return "Which rank is late?";
        case Question::change:
            return "What to change first, and what would it give?";
    }
    return "";
}

std::string headline(const Answer& answer) {
    if (answer.figures.empty()) return "";
    if (answer.question == Question::late) return answer.rank >= 0 ? fmt::format("Rank {}", answer.rank) : "";
    const AdviceFigure& first = answer.figures.front();
    const std::string less = answer.question == Question::change ? "-" : "";
    return less + (first.unit == "bytes" ? bytes_text(static_cast<std::int64_t>(first.value))
                                         : us_text(first.value));
}

RunAnswers answers(const AdviceFacts& facts, const AdviceReport& advice, const Selection& selection) {
    RunAnswers run;
    if (facts.warm_up) run.notes.push_back(sentence(*facts.warm_up));
    const RunColumn column = compare({&facts.trace}, facts.selection).runs.front();
    run.answers = {peak_answer(facts.trace, selection), time_answer(facts, column),
                   exposed_answer(facts, column), late_answer(facts), change_answer(advice)};
    return run;
}

RunAnswers answers(const store::Trace& trace, const Selection& selection) {
    const AdviceFacts facts(trace, selection);
    return answers(facts, advice_of(facts), selection);
}

std::vector<Answer> compared_answers(const std::vector<const store::Trace*>& traces,
                                     const std::vector<std::string>& names,
                                     const std::vector<Selection>& selections) {
    if (traces.size() < 2) return {};
    std::vector<Selection> warm = selections;
    for (std::size_t i = 0; i < traces.size(); ++i) {
        warm[i] =
            without_warm_up(selections[i], find_warm_up(*traces[i], find_steps(*traces[i]), selections[i]));
    }
    return {compared_peak(compare(traces, selections), names), compared_time(compare(traces, warm), names)};
}

AnswersReport answers_report(const std::vector<const store::Trace*>& traces,
                             const std::vector<std::string>& files, const Selection& selection) {
    AnswersReport report;
    const std::vector<std::string> names = run_names(files);
    report.compared = compared_answers(traces, names, std::vector<Selection>(traces.size(), selection));
    for (std::size_t i = 0; i < traces.size(); ++i) {
        report.runs.push_back(answers(*traces[i], selection));
        report.runs.back().name = names[i];
        report.runs.back().file = files[i];
    }
    return report;
}

std::optional<AdvicePlace> answer_place(const store::Trace& trace, const Selection& selection,
                                        const Answer& answer) {
    if (answer.compares || !answer.known) return {};
    switch (answer.question) {
        case Question::peak:
            return advice_place(trace, selection, "memory-near-limit");
        case Question::time:
            return {};
        case Question::exposed:
            if (answer.figures.empty()) return {};
            return answer.unit.empty() ? advice_place(trace, selection, "exposed-communication")
                                       : exposed_place(trace, selection, answer.unit, answer.phase);
        case Question::late:
            return answer.rank < 0 ? std::nullopt : advice_place(trace, selection, "straggler");
        case Question::change:
            return advice_place(trace, selection, answer.rule);
    }
    return {};
}

Fields<Answer> answer_fields() {
    using A = Answer;
    static constexpr Field<A> kFields[] = {
        {{"question", "", Unit::text, "peak, time, exposed, late or change."},
         [](const A& a) { return to_cell(kQuestionNames[static_cast<std::size_t>(a.question)]); }},
        {{"asks", "", Unit::text, "The question."}, [](const A& a) { return to_cell(asks(a)); }},
        {{"known", "", Unit::text, "Whether the trace answers it."}, value_of<&A::known>},
        {{"answer", "", Unit::text, "The answer, or what is unknown and why."}, value_of<&A::says>},
        {{"figures", "", Unit::text, "The figures: name, value and unit.", in_json}, nested<A>},
        {{"figures", "", Unit::text, "The figures: name, value and unit.", in_csv},
         [](const A& a) { return to_cell(figures_text(a.figures)); }},
        {{"evidence", "", Unit::text, "The verb of shardscope-trace that prints the evidence."},
         [](const A& a) { return known_text(a.command); }},
        {{"rank", "", Unit::index, "The rank that it is about."},
         [](const A& a) { return a.rank < 0 ? store::Cell() : to_cell(a.rank); }},
        {{"unit", "", Unit::text, "The FSDP unit that it is about."},
         [](const A& a) { return known_text(a.unit); }},
        {{"rule", "", Unit::text, "The rule of the advice."},
         [](const A& a) { return known_text(std::string(a.rule)); }},
        {{"job_setting", "", Unit::text, "The setting of a job file."},
         [](const A& a) { return known_text(a.setting); }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
