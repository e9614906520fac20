// The figures of one configuration, from what its simulation says.
//
// Model FLOPs utilisation is the share of the devices' arithmetic that the model itself needs: the operations
// of products and attention in the forward and backward of a step, without those that checkpointing computes
// again, over step time x ranks x the rate of a device's products for the precision of the parameters. After
// A. Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways" (2022), appendix B, which counts the
// operations by a formula; here the Plan counts them. Where ranks share the cores of a node, a device is
// their share of its cores, at most one.
#pragma once

#include "trainer/planner/row.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::planner {

// For one rank, in a steady step.
double model_flops(const Program& program);
// Operations per second of one rank's device.
double peak_rate(const Job& job, const sim::Cluster& cluster);

// Fills in the row's peak, with the units and modules that have most of it.
void add_memory(const Program& program, Row& row);
// Fills in the timed figures.
void add_times(const Program& program, const sim::Cluster& cluster, const sim::SimResult& result, Row& row);

}  // namespace shardscope::trainer::planner
