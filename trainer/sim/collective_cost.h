// How long collectives take, by the alpha-beta model: alpha seconds for each step of an algorithm, beta for
// each byte that the busiest wire carries.
//
// n bytes of the full buffer (the gathered one), p members on m nodes, k of them on the fullest node; a and b
// are latency and bytes per second of a link inside a node, A and B of the way from a node to the others; w =
// min(b, B), or b if all members are on one node.
//
//   direct        all_gather, reduce_scatter  a' + (p-1)/p n / w           every member fetches from every
//                 all_reduce                  twice that                   other concurrently (shared memory)
//   ring          all_gather, reduce_scatter  (p-m) a + (m-1) A + (p-1)/p n / w
//                 all_reduce                  twice that
//                 broadcast                   (p-m) a + (m-1) A + n / w    in pieces, one behind the other
//   tree          all_gather, reduce_scatter  log k a + log m A + (p-1)/p n / w  recursive doubling, halving
//                 all_reduce                  2 (log k a + log m A) + 2 n / w      two binary trees
//                 broadcast                   log k a + log m A + n / w
//   hierarchical  all_gather, reduce_scatter  (m-1) A + (m-1)/m n / B + (k-1) a + (k-1)/k n / b
//                 all_reduce                  twice that: scatter inside, all_reduce across, gather inside
//                 broadcast                   log m A + n / B + log k a + n / b
//   shared_memory all_gather, all_reduce      a' + 2 n / w                   every member moves what it gets
//                 reduce_scatter              a' + (1 + 1/p) n / w           itself: w is what a member reads
//                 broadcast                   a' + 2 n / w                   and writes a second
//   any           send with its recv          a' + n / w, shared_memory a' + 2 n / w
//
// Where the cluster has links of their own for pairs (PairLinks), a and b, A and B are those of the slowest
// link of the ring through the members in their order, which closes from the last to the first. Where ranks
// share devices, b and B are what the members have of a device's links (rank_classes.cpp, part_of_links).
//
// (log: of base 2, rounded up; a': A if the group is on several nodes.) To each is added the latency of
// every collective. Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
// operations in MPICH" (2005), sections 4.1 to 4.4, for ring, recursive doubling and halving; P. Sanders, J.
// Speck, J. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009), and NCCL
// 2.4, for the trees; NCCL's own tuning (src/graph/tuning.cc) for the steps inside and between nodes and for
// the factors of the bandwidth; hierarchical follows from its phases,
// shared_memory from executor/local_group.cpp.
#pragma once

#include <cstdint>
#include <tuple>

#include "trainer/sim/cluster.h"

namespace shardscope::trainer::sim {

// How a communicator's members are spread over nodes.
struct Spread {
    int members = 1, nodes = 1;
    int fullest = 1;    // members on the node that has the most
    double intra = 1;   // the slowest share of Link::bandwidth inside a node
    double across = 0;  // bandwidth left for this group at the worst node, as a multiple of the inter link's
    // Latency of the slowest step of its ring inside a node and between nodes; negative: Link::latency.
    double hop = -1, hop_across = -1;

    bool operator==(const Spread&) const = default;
    // The sort key.
    std::tuple<int, int, int, double, double, double, double> key() const {
        return {members, nodes, fullest, intra, across, hop, hop_across};
    }
};

// Bytes on the busiest wire per byte of the full buffer (nccl-tests' bus bandwidth over algbw).
double bus_share(plan::Operation operation, double members);

// The time without the members' waiting for each other.
double collective_seconds(const Cluster& cluster, const Spread& spread, plan::Operation operation,
                          std::int64_t bytes);

}  // namespace shardscope::trainer::sim
