// The figures of one configuration, from its simulation.
//
// Model FLOPs utilisation (MFU) is the share of the devices' arithmetic that the model itself needs: the
// operations of matmuls and attention in the forward and backward of a step, without those that checkpointing
// recomputes, over step time x ranks x the matmul rate of a device for the precision of the parameters. After
// A. Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways" (2022), appendix B, which counts the
// operations by a formula; here the Plan counts them. If ranks share the cores of a node, a rank's device is
// its share of the cores, at most one; if they share a device, its share of that.
#pragma once

#include "trainer/planner/row.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::planner {

// For one rank, in a steady step.
double model_flops(const sharding::Program& program);
// Operations per second of one rank's device.
double peak_rate(const job::Job& job, const sim::Cluster& cluster);

// Fills in the row's peak, with the unit and the module that hold most of it.
void add_memory(const sharding::Program& program, Row& row);
// Fills in the timed figures.
void add_times(const sharding::Program& program, const sim::Cluster& cluster, const sim::SimResult& result,
               Row& row);

}  // namespace shardscope::trainer::planner
