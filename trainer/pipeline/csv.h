// Schedules as files, as PyTorch's _dump_csv and _load_csv: a line is a rank, in rank order, a cell is an
// action (action.h), a blank cell is idle time, which is ignored. With or without SEND, RECV and FSDP's
// actions.
#pragma once

#include <string>
#include <string_view>

#include "trainer/pipeline/schedule.h"

namespace shardscope::trainer::pipeline {

// Reads and checks. Throws ScheduleError: "FILE:2: cell 5 (rank 1): ...". Older files of PyTorch, where B
// with a separate W stands for I, are read as such.
Schedule parse_csv(std::string_view text, std::string_view file);
Schedule read_csv(const std::string& file);

std::string csv_text(const Schedule& schedule);

}  // namespace shardscope::trainer::pipeline
