// Readable names of kernels, from the symbols that CUPTI reports. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::profiler {

// The full name with its signature; the symbol itself if it is not a mangled C++ name.
std::string demangle(const std::string& symbol);

// The function's own name within a demangled one: without return type, namespaces, template arguments and
// signature. "void at::native::fill<4, float>(int, float)" gives "fill". A name without such a part is
// returned whole.
std::string_view base_name(std::string_view demangled);

}  // namespace shardscope::profiler
