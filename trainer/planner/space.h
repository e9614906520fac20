// The configurations that a planner tries: the values of each key that are worth trying for this model on
// this cluster, and their combinations. Values on the command line replace those of their key.
//
// Keys that make no difference under a strategy (the limiter, if nothing is gathered) keep one value there.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::planner {

// A key given on the command line, with its values in order.
struct Given {
    std::string key;  // "section.key"
    std::vector<std::string> values;
};

// The values of a given key; null if it is not given.
const std::vector<std::string>* find_given(const std::vector<Given>& given, std::string_view key);

void add_once(std::vector<std::string>& values, const std::string& value);

// Combines each of `all` with each value of the key.
void multiply(std::vector<std::vector<job::Override>>& all, const std::string& key,
              const std::vector<std::string>& values);

// The same with each of several settings.
void multiply(std::vector<std::vector<job::Override>>& all,
              const std::vector<std::vector<job::Override>>& settings);

// Settings of keys that are set already replace those.
void set(std::vector<job::Override>& settings, const std::vector<job::Override>& more);

struct Candidate {
    std::vector<job::Override> settings;  // each key once, including those from the command line
    std::string of_job;                   // "key=value\n" of those that the space does not decide
};

// Makes the job with these settings. Throws JobError if it is impossible.
using JobMaker = std::function<job::Job(const std::vector<job::Override>&)>;
// The cluster that a job names. Throws ClusterError.
using ClusterMaker = std::function<const sim::Cluster&(const job::Job&)>;

inline constexpr std::size_t kMostCandidates = 20000;

// The job itself is the first, unless the command line gives a key several values. Throws JobError if no job
// with the given keys is possible, or if there are more than kMostCandidates.
std::vector<Candidate> candidates(const std::vector<Given>& given, const JobMaker& make_job,
                                  const ClusterMaker& cluster_of);

// The candidates of a space whose keys are `decided`: `combinations` of each job that the other given keys
// make, which it gets with their settings. Throws as candidates() does.
using Combinations = std::function<std::vector<std::vector<job::Override>>(
    const std::vector<job::Override>& settings, const job::Job& job)>;
std::vector<Candidate> combine_jobs(const std::vector<Given>& given, std::span<const char* const> decided,
                                    const JobMaker& make_job, const Combinations& combinations);

// For when none of those fits: everything sharded, in each layout, with as little other memory as the command
// line allows (one sample at a time, offload, checkpointing, no prefetch).
std::vector<Candidate> last_resorts(const std::vector<Given>& given, const JobMaker& make_job,
                                    const ClusterMaker& cluster_of);

}  // namespace shardscope::trainer::planner
