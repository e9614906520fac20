// Finds the libraries that a tool opens at run time.
#pragma once

#include <string>

namespace shardscope::profiler {

// The path of a library that belongs to this build, next to the running tool: in the build folder, or
// installed. Empty when it is missing.
std::string find_beside_tool(const char* library);

}  // namespace shardscope::profiler
