// A small job of a simulation and what the planner finds for it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/sim_testing.h"
#include "trainer/planner/search.h"
#include "trainer/planner/space.h"

namespace shardscope::trainer::testing {

// A GPT of 4 blocks, 64 wide, on 2 ranks; `more` are further sections.
inline std::string planned_toml(const std::string& more) {
    return "[run]\nsteps = 4\nranks = 2\ndevice = \"sim\"\n[model]\ntype = \"gpt\"\nlayers = 4\nwidth = 64\n"
           "heads = 4\ncontext = 32\n[data]\ntype = \"text\"\nbatch = 2\n[optimizer]\ntype = \"adamw\"\n" +
           more;
}

inline job::Job planned_job(const std::string& more, const std::vector<job::Override>& settings = {}) {
    return parse_job(planned_toml(more), "job.toml", settings);
}

// Nodes of two devices with a slow link between them.
inline sim::Cluster two_a_node(double memory) {
    sim::Cluster cluster = round_cluster(2);
    cluster.intra.bandwidth = 1e12;
    cluster.inter.bandwidth = 1e10;
    cluster.device.memory = memory;
    return cluster;
}

// A job with the cluster of round figures in sim_testing.h.
class Planned {
  public:
    explicit Planned(std::string more, sim::Cluster cluster = round_cluster())
        : more_(std::move(more)), cluster_(std::move(cluster)) {}
    Planned(const Planned&) = delete;
    Planned& operator=(const Planned&) = delete;

    job::Job job(const std::vector<job::Override>& settings) const { return planned_job(more_, settings); }
    const sim::Cluster& cluster() const { return cluster_; }
    std::vector<planner::Candidate> candidates(const std::vector<planner::Given>& given) const {
        return planner::candidates(given, make_job, cluster_of);
    }
    std::vector<planner::Row> search(const std::vector<planner::Given>& given,
                                     const planner::SearchOptions& options = {}) const {
        return planner::search(candidates(given), make_job, cluster_of, options);
    }

    const planner::JobMaker make_job = [this](const std::vector<job::Override>& settings) {
        return job(settings);
    };
    const planner::ClusterMaker cluster_of = [this](const job::Job&) -> const sim::Cluster& {
        return cluster_;
    };

  private:
    std::string more_;
    sim::Cluster cluster_;
};

}  // namespace shardscope::trainer::testing
