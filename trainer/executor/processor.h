// Facts about this machine, for the trace and for messages.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::trainer {

std::string processor_name();  // "AMD EPYC 9654", or the architecture where the system does not tell
std::string host_name();
std::int64_t physical_memory();  // bytes

}  // namespace shardscope::trainer
