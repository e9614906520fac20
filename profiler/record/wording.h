// The wording of what shardscope-record prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/record/row_counts.h"

namespace shardscope::profiler {

// Writes one line to standard error, which may be closed.
void tell(const std::string& sentence);

std::string seconds(std::int64_t ns);          // "3.07 s"
std::string human_bytes(std::uint64_t bytes);  // "1.2 MiB"
std::string plural(std::int64_t count, const char* one, const char* many);
std::string listed(const RowCounts& counts);  // "300 ranges, 12 kernels": the kinds that occur
std::string ending(int exit_status);          // "the command ended with status 134 (SIGABRT)"

// The command as a user would type it: arguments with unusual characters are quoted.
std::string shell_line(const std::vector<std::string>& arguments);

std::uint64_t file_bytes(const std::string& path);          // 0: no such file
std::string numbered(const std::string& path, int number);  // from 2 on: "trace.sqlite" -> "trace-2.sqlite"

}  // namespace shardscope::profiler
