// SHARD_RUN of a merged file: a key on which all parts that have it agree stands once; where they differ,
// each part's value stands under "part.N.KEY" (N from 1, in the order given). What earlier merges and slices
// said of their inputs is always a part's own.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shardscope::traces {

using RunFacts = std::vector<std::pair<std::string, std::string>>;

// Whether a part's run was killed, and the file finished afterwards (finalize_trace).
bool was_finished_later(const RunFacts& facts);
// The fact that names the ranks whose parts did not end: a merged file ends, whatever they did.
inline constexpr const char* kUnendedRanks = "merge.unended_ranks";

// One part's facts stay as they are.
RunFacts merge_run_facts(const std::vector<RunFacts>& parts);

}  // namespace shardscope::traces
