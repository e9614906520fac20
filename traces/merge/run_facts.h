// SHARD_RUN of a merged file: a key whose value is the same in all parts that have it is written once; if the
// values differ, each is under "part.N.KEY" (N from 1, in the order given). Facts that earlier merges and
// slices recorded about their inputs always belong to one part.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shardscope::traces::merge {

using RunFacts = std::vector<std::pair<std::string, std::string>>;

// Whether a part's run was killed and its file finished afterwards (finalize_trace).
bool was_finished_later(const RunFacts& facts);
// The fact that names the ranks whose parts did not end; the merged file itself always counts as ended.
inline constexpr const char* kUnendedRanks = "merge.unended_ranks";

// The facts of a single part stay as they are.
RunFacts merge_run_facts(const std::vector<RunFacts>& parts);

}  // namespace shardscope::traces::merge
