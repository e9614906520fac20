// Stacks as rows hold them: frames, innermost first, one a line, "path/file.py:12 function".
#pragma once

#include <string>
#include <string_view>

namespace shardscope::traces {

// The frame that tells a person most: the innermost Python frame that is not PyTorch's own; without one the
// innermost Python frame; without any (the threads of a backward pass) the node of autograd, the operator or
// else the innermost frame. A view of `stack`.
std::string_view asking_frame(std::string_view stack);

// A frame with the last two parts of its path: "models/gpt.py:12 forward"; of C++ the function without its
// arguments: "BmmBackward0::apply".
std::string short_frame(std::string_view frame);

}  // namespace shardscope::traces
