// The search among meshes. A row is left out if it needs more memory than there is, or more time than one
// that was simulated, by a lower bound (lower_bound.h). Found are, as by a search that leaves out nothing:
// the fastest row with a pipeline and without one, of each job; the best row and its ties, within kTie of the
// fastest of all; and the fastest of each kind that is compared with the best (reason.h). The Pareto front is
// that of the rows that were simulated.
#pragma once

#include <vector>

#include "trainer/planner/search.h"

namespace shardscope::trainer::planner {

// As search(). The same rows are left out whatever the number of threads.
std::vector<Row> search_meshes(const std::vector<Candidate>& all, const JobMaker& make_job,
                               const ClusterMaker& cluster_of, const SearchOptions& options = {});

}  // namespace shardscope::trainer::planner
