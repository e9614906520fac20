// Simulates ranks that do the same thing at the same time only once.
//
// Two ranks are in one class if they have the same place in the pipeline, are equally fast and each of their
// communicators looks the same: it is spread over the nodes in the same way and holds ranks of the same
// classes; so does their device, if ranks share devices. The coarsest such partition is found by refinement:
// first all equally fast ranks form a class, which is then split until nothing distinguishes its members. One
// representative then stands for a class: by symmetry, the other members reach every operation when it does.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/plan/mesh.h"
#include "trainer/sim/collective_cost.h"

namespace shardscope::trainer::sim {

struct RankClass {
    int representative = 0;  // its lowest rank
    int ranks = 0;
    double slowdown = 1;  // factor of its kernels' time
    int device = 0;       // index into RankClasses::devices
    int beside = 1;       // its ranks on one such device
    std::array<int, plan::kGroupNames.size()>
        communicators{};                           // by Group: index into RankClasses::communicators
    std::map<plan::CommunicatorId, int> channels;  // the same: those to and from the representative
};

// Communicators that look the same; for a channel, the classes are those of its ends.
struct CommunicatorClass {
    Spread spread;
    std::vector<int> classes;  // classes of the members
    int ranks = 0;             // total number of members
    int link = -1;             // of a server, which carries one message at a time; -1: one of its own
};

struct RankClasses {
    std::vector<RankClass> classes;  // in the order of their lowest ranks: 0 has rank 0
    std::vector<CommunicatorClass> communicators;
    std::vector<std::vector<int>> devices;  // those that look the same: the classes of their ranks
    std::vector<int> class_of;              // by rank
    int nodes = 1;                          // number of nodes that the ranks occupy
    int links = 0;                          // of servers
    bool share_devices = false;
};

// How some ranks, or the members of a rank's communicator, are spread over the nodes, given the slow links.
Spread spread_of(const plan::Mesh& mesh, const std::vector<int>& ranks, const Cluster& cluster,
                 const std::vector<job::SlowLink>& slow_links);
Spread spread_of(const plan::Mesh& mesh, plan::Group group, int rank, const Cluster& cluster,
                 const std::vector<job::SlowLink>& slow_links);

RankClasses classify(const plan::Mesh& mesh, const Cluster& cluster,
                     const std::vector<job::SlowRank>& slow_ranks,
                     const std::vector<job::SlowLink>& slow_links);

}  // namespace shardscope::trainer::sim
