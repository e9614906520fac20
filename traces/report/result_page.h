// The keys of JSON and CSV with their units and meanings: docs/results.md, and the end of the verbs' --help.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::traces {

// The text of docs/results.md.
std::string results_markdown();
// The keys of the rows that a verb of shardscope-trace prints as CSV, one line each; "" if they are not
// fixed.
std::string result_keys(std::string_view verb);

}  // namespace shardscope::traces
