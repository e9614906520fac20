// The answers, one function each. Internal to the library.
#pragma once

#include <string>

#include "traces/analysis/answers/answers.h"
#include "traces/analysis/compare/compare.h"

namespace shardscope::traces::analysis {

struct AdviceFacts;

Answer unknown_answer(Question question, std::string why);

Answer peak_answer(const store::Trace& trace, const Selection& selection);
// `run`: the trace's column of a comparison, without the warm-up step.
Answer time_answer(const AdviceFacts& facts, const RunColumn& run);
Answer exposed_answer(const AdviceFacts& facts, const RunColumn& run);
Answer late_answer(const AdviceFacts& facts);
Answer change_answer(const AdviceReport& advice);

Answer compared_peak(const Comparison& comparison, const std::vector<std::string>& names);
Answer compared_time(const Comparison& comparison, const std::vector<std::string>& names);

// A category of a step's time, as a sentence names it: "compute", "communication that nothing hides".
std::string_view words_of(TimeCategory category);
// "unsharded parameters".
std::string words_of(schema::MemoryCategory category);

}  // namespace shardscope::traces::analysis
