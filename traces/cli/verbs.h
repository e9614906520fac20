// What each verb does: load, analyse, print. Text goes to standard output; the result is the exit status.
#pragma once

#include <string>
#include <vector>

#include "traces/cli/arguments.h"
#include "traces/report/report.h"

namespace shardscope::traces {

inline constexpr int kDone = 0, kFailed = 1, kWrongUse = 2;

void print(const std::string& text);  // to standard output

int run_info(const Inputs& inputs);
int run_summary(const Inputs& inputs);
int run_modules(const Inputs& inputs);
// `explain`: with the prediction beside every part, the steps and the pool.
int run_memory(const Inputs& inputs, bool explain);
int run_collectives(const Inputs& inputs);
int run_compare(const std::vector<std::string>& files, const std::vector<std::string>& fail_if,
                Format format);
// `finalize`: first makes a finished file of one whose run did not end.
int run_check(const std::string& file, bool finalize, Format format);

}  // namespace shardscope::traces
