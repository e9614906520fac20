// Stacks as stored in rows: frames, innermost first, one per line, "path/file.py:12 function".
#pragma once

#include <string>
#include <string_view>

namespace shardscope::traces::store {

// The most informative frame: the innermost Python frame outside PyTorch, else the innermost Python frame,
// else (the threads of a backward pass) the autograd node, the operator or the innermost frame. A view of
// `stack`.
std::string_view asking_frame(std::string_view stack);

// A frame with the last two parts of its path: "models/gpt.py:12 forward"; for C++, the function without its
// arguments: "BmmBackward0::apply".
std::string short_frame(std::string_view frame);

}  // namespace shardscope::traces::store
