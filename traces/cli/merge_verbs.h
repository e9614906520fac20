// import, merge and slice: traces in, a trace out, and a line on each part.
#pragma once

#include <string>
#include <vector>

#include "traces/cli/arguments.h"
#include "traces/report/report.h"

namespace shardscope::traces {

int run_import(const Inputs& inputs, const std::string& output, bool overwrite);

int run_merge(const std::vector<std::string>& files, const std::string& output, bool overwrite,
              Format format);

// `ranks`: "0,8" or "0-3"; empty all. Steps and range as SelectionText has them.
int run_slice(const std::string& file, const std::string& output, bool overwrite, const std::string& ranks,
              const SelectionText& selection, Format format);

// Both ends included. Throws UsageError where the text is no list of ranks.
std::vector<std::pair<std::int64_t, std::int64_t>> parse_rank_list(const std::string& text);

}  // namespace shardscope::traces
