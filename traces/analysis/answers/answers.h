// The answers to the five questions that a trace is opened for, each a sentence with its figures and where
// its evidence is. Every number is that of another analysis. Definition: docs/definitions.md, "Answers".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/advice/advice_place.h"
#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

enum class Question : std::uint8_t { peak, time, exposed, late, change };
inline constexpr std::array<std::string_view, 5> kQuestionNames = {"peak", "time", "exposed", "late",
                                                                   "change"};

struct Answer {
    Question question = Question::peak;
    bool compares = false;              // it is about several runs
    bool known = true;                  // false: `says` states what is unknown, and why
    std::string says;                   // one sentence or two
    std::vector<AdviceFigure> figures;  // the first is the answer's most important one

    // The evidence: a verb of shardscope-trace with its options, without the traces.
    std::string command;
    int rank = -1;     // the number of the rank that it is about; -1: no particular one
    std::string unit;  // the FSDP unit that it is about
    schema::Phase phase = schema::Phase::none;  // of the unit
    // Of Question::change: the advice, and the setting of a job file.
    std::string_view rule;
    std::string setting;
};

// "What makes up the peak?"
std::string_view asks(const Answer& answer);

// Its most important figure, as `says` writes it: "30.1 MiB", "Rank 2"; "" if it has none.
std::string headline(const Answer& answer);

Fields<Answer> answer_fields();

struct RunAnswers {
    std::string name, file;
    std::vector<Answer> answers;     // to each question, in their order
    std::vector<std::string> notes;  // sentences: what was excluded
};

struct AnswersReport {
    std::vector<Answer> compared;  // of several runs: `peak` and `time`
    std::vector<RunAnswers> runs;
    std::string options;  // of the verbs whose output is the evidence: " --step 3:5"; empty: none
};

struct AdviceFacts;
// `selection` may include a warm-up step, which `facts` exclude: the peak is that of all of it.
RunAnswers answers(const AdviceFacts& facts, const AdviceReport& advice, const Selection& selection);
RunAnswers answers(const store::Trace& trace, const Selection& selection = {});

// The runs have one name and one selection each.
std::vector<Answer> compared_answers(const std::vector<const store::Trace*>& traces,
                                     const std::vector<std::string>& names,
                                     const std::vector<Selection>& selections);
// Each run is one file or folder, by whose name sentences call it.
AnswersReport answers_report(const std::vector<const store::Trace*>& traces,
                             const std::vector<std::string>& files, const Selection& selection = {});

// The stretch of the trace that shows the answer best; none: no single one does.
std::optional<AdvicePlace> answer_place(const store::Trace& trace, const Selection& selection,
                                        const Answer& answer);

}  // namespace shardscope::traces::analysis
