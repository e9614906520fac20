// The search among meshes. Rows of one kind compete: with or without tensor groups, with or without a
// pipeline. A row is left out if it needs more memory than there is, or more time than one of its kind that
// was simulated, by a lower bound (lower_bound.h). What is left out is not the fastest of its kind, and not
// within kTie of the fastest of all: the best row, its ties and the fastest of each kind are those of a
// search that leaves out nothing. The Pareto front is that of the rows that were simulated.
#pragma once

#include <vector>

#include "trainer/planner/search.h"

namespace shardscope::trainer::planner {

// As search(). The same rows are left out whatever the number of threads.
std::vector<Row> search_meshes(const std::vector<Candidate>& all, const JobMaker& make_job,
                               const ClusterMaker& cluster_of, const SearchOptions& options = {});

}  // namespace shardscope::trainer::planner
