#include "traces/store/stack_text.h"

namespace shardscope::traces::store {
namespace {

constexpr std::string_view kPython = ".py:", kNode = "torch::autograd::generated::", kOperator = "at::_ops::";

// Whether the frame is of the code that recorded the stack.
bool is_recording(std::string_view frame) {
    for (const std::string_view part : {"torch::unwind", "CapturedTraceback", "gather_with_cpp"}) {
        if (frame.find(part) != std::string_view::npos) return true;
    }
    return false;
}

bool is_torch(std::string_view frame) {
    return frame.starts_with("torch/") || frame.find("/torch/") != std::string_view::npos;
}

}  // namespace

std::string_view asking_frame(std::string_view stack) {
    std::string_view first, first_python, node, operation;
    while (!stack.empty()) {
        const std::size_t end = stack.find('\n');
        const std::string_view frame = stack.substr(0, end);
        if (frame.find(kPython) != std::string_view::npos) {
            if (!is_torch(frame)) return frame;
            if (first_python.empty()) first_python = frame;
        } else if (!is_recording(frame)) {
            if (first.empty()) first = frame;
            if (node.empty() && frame.starts_with(kNode)) node = frame;
            if (operation.empty() && frame.starts_with(kOperator)) operation = frame;
        }
        stack.remove_prefix(end == std::string_view::npos ? stack.size() : end + 1);
    }
    for (const std::string_view best : {first_python, node, operation}) {
        if (!best.empty()) return best;
    }
    return first;
}

std::string short_frame(std::string_view frame) {
    const std::size_t python = frame.find(kPython);
    if (python == std::string_view::npos) {
        if (frame.starts_with(kNode)) frame.remove_prefix(kNode.size());
        if (frame.starts_with(kOperator) || frame.find("::apply(") != std::string_view::npos)
            return std::string(frame.substr(0, frame.find('(')));
    }
    const std::size_t path_end = python == std::string_view::npos ? frame.find(' ') : python;
    if (path_end == std::string_view::npos || path_end == 0) return std::string(frame);
    const std::size_t name = frame.rfind('/', path_end - 1);
    if (name == std::string_view::npos || name == 0) return std::string(frame);
    const std::size_t folder = frame.rfind('/', name - 1);
    return std::string(frame.substr(folder == std::string_view::npos ? 0 : folder + 1));
}

}  // namespace shardscope::traces::store
