// Shorter names of C++ functions: the names of kernels are long because of template arguments and parameters,
// and a reader looks for the function. Pure text, no drawing; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::viewer::draw {

// Forms of a name, from the longest to the shortest:
//   "void at::native::fill_kernel<4, at::Add<float>, at::Array<char*, 2>>(int, at::Add<float>)"
//   "at::native::fill_kernel<4, at::Add<float>, at::Array<char*, 2>>"      without result and parameters
//   "fill_kernel<4, Add<float>, Array<char*, 2>>"                          without lambdas and namespaces
//   "fill_kernel<4, Add<...>, Array<...>>"                                 without arguments of arguments
struct ShortName {
    std::vector<std::string> forms;  // empty: not a name of a C++ function
    // The last form in three parts: head "fill_kernel<", inner "4, Add<...>, Array<...>", tail ">". If that
    // is too long as well, the inner part is shortened first. All are empty for a name without template
    // arguments.
    std::string head, inner, tail;
};

// A C++ symbol ("_Z...", also with a suffix like ".kd") as its source spells it; other text unchanged.
std::string readable_name(std::string_view name);

// Names longer than 16 KiB are not parsed: they have no forms.
ShortName short_name(std::string_view name);

}  // namespace shardscope::viewer::draw
