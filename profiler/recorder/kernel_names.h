// Names of kernels as people know them, from the symbols that CUPTI gives. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::profiler {

// The full name with its signature; the symbol itself where it is no mangled C++ name.
std::string demangle(const std::string& symbol);

// The function's own name within a demangled one: without return type, namespaces, template arguments and
// signature. "void at::native::fill<4, float>(int, float)" gives "fill". What has no such part stays whole.
std::string_view base_name(std::string_view demangled);

}  // namespace shardscope::profiler
