// Kernel names in narrow columns. Inside the room only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardscope::traces {

// A kernel's C++ name in at most `width` columns, without return type and parameters: "void f<4>(int)" ->
// "f<4>". What is still too long loses its middle.
std::string kernel_label(std::string_view name, std::size_t width);

}  // namespace shardscope::traces
