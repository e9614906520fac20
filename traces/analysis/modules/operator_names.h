// Parses the text of an operator's range and its detail: the name and the shapes of the inputs. Internal to
// the library.
#pragma once

#include <string_view>

namespace shardscope::traces {

struct OperatorText {
    std::string_view name, shapes;  // parts of the given text; shapes: empty if there are none
};

// "aten::mm, seq = 3, op_id = 7, sizes = [[2, 3]], input_op_ids = [...]", as PyTorch's emit_nvtx() writes it;
// any other text is a name as a whole.
OperatorText operator_text(std::string_view range);

// The value of "Input Dims" in a range's detail (one JSON object, as Kineto writes it); empty if missing.
std::string_view input_shapes(std::string_view detail);

}  // namespace shardscope::traces
