// The metrics that a program marks (schema/marked_metrics.h) as rows of SHARD_METRICS, beside those that
// shardscope-train records: made when the run ends.
#pragma once

namespace shardscope::traces::store {

class Database;

// Adds the metrics of the marks and ranges, each with the rank of its thread and, unless the text names one,
// the step around it. Those that the table has already stay as they are.
void add_marked_metrics(Database& database);

}  // namespace shardscope::traces::store
