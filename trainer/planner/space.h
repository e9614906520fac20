// The configurations that a planner tries: the values of each key that are worth a try for this model on this
// cluster, and their combinations. What the command line says about a key replaces those values.
//
// Keys that make no difference under a strategy (a limiter where nothing is gathered) keep one value there.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::planner {

// One key that the command line gives, with its values in their order.
struct Given {
    std::string key;  // "section.key"
    std::vector<std::string> values;
};

// The values of a key that is given, else null.
const std::vector<std::string>* find_given(const std::vector<Given>& given, std::string_view key);

void add_once(std::vector<std::string>& values, const std::string& value);

// Combines each of `all` with each value of the key.
void multiply(std::vector<std::vector<Override>>& all, const std::string& key,
              const std::vector<std::string>& values);

struct Candidate {
    std::vector<Override> settings;  // each key once, including those of the command line
};

// The job with these settings. Throws JobError where it is impossible.
using JobMaker = std::function<Job(const std::vector<Override>&)>;
// The cluster that a job names. Throws ClusterError.
using ClusterMaker = std::function<const sim::Cluster&(const Job&)>;

inline constexpr std::size_t kMostCandidates = 20000;

// The job itself is the first, where the command line does not give a key several values. Throws JobError
// where no job of the given keys is possible, or there are more than kMostCandidates.
std::vector<Candidate> candidates(const std::vector<Given>& given, const JobMaker& make_job,
                                  const ClusterMaker& cluster_of);

// Where none of those fits: everything sharded, in each layout, with the least besides that the command line
// allows (one sample at a time, offload, checkpointing, no prefetch).
std::vector<Candidate> last_resorts(const std::vector<Given>& given, const JobMaker& make_job,
                                    const ClusterMaker& cluster_of);

}  // namespace shardscope::trainer::planner
