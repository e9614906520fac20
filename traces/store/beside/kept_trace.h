// A trace's columns in a file beside it (column_file.h), from which it opens without a look at its many rows.
// Ranks, threads, streams, steps and texts are in the file, too; everything else is read from the rows.
#pragma once

#include <memory>

#include "traces/store/beside/column_file.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

// Whether its columns may be kept: it is a finished trace of ours, alone in its file, that has not changed
// since it was read and holds no refused rows.
bool can_be_kept(const Trace& trace);

// Adds the columns of such a trace to a file.
void keep_columns(const Trace& trace, ColumnFileWriter& file);

// Fills the empty `trace` with what keep_columns() wrote. False if the file is damaged: `trace` is undefined.
bool take_columns(const ColumnFile& file, Trace& trace);

}  // namespace shardscope::traces::store
