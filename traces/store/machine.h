// Facts about this machine, for traces and for messages.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::traces::store {

std::string processor_name();  // "AMD EPYC 9654", or the architecture where the system does not report it
std::string host_name(
    const char* otherwise = "localhost");  // `otherwise`: where the system does not report it
std::string processors_of_process();       // usable cores: "0-3,8"; empty where not reported
std::int64_t physical_memory();            // bytes

}  // namespace shardscope::traces::store
