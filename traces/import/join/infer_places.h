// The ranks' places in the mesh, of traces that record none: from the groups whose descriptions name an axis
// ("mesh_tp", TENSOR_MODEL_PARALLEL_GROUP) and whose ranks are listed.
#pragma once

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::importer {

// Sets Rank::place along each axis on which every rank's place is known and no two groups disagree. If ranges
// name a pipeline's actions but no group its axis, groups in which only messages run are the pipeline's. A
// group without an axis in which FSDP's hooks gather or reduce-scatter is that of its shards, one in which
// they only all-reduce that of its replicas. Changes nothing if some rank has a place along another axis than
// "data", along which importers put every rank at its own, for want of a better one.
void infer_places(store::Trace& trace);

}  // namespace shardscope::traces::importer
