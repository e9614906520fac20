#include "trainer/lift/operator_parameters.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "traces/store/columns/tensor_sizes.h"

namespace shardscope::trainer::lift {

namespace {

// The positions of weight and bias in the operators' signatures (ATen/native/native_functions.yaml); -1: no
// bias.
struct Signature {
    std::string_view operation;
    int weight = 0, bias = -1;
};
constexpr std::array<Signature, 16> kSignatures = {{
    {"aten::linear", 1, 2},
    {"aten::conv1d", 1, 2},
    {"aten::conv2d", 1, 2},
    {"aten::conv3d", 1, 2},
    {"aten::conv_transpose2d", 1, 2},
    {"aten::convolution", 1, 2},
    {"aten::batch_norm", 1, 2},
    {"aten::instance_norm", 1, 2},
    {"aten::layer_norm", 2, 3},
    {"aten::group_norm", 2, 3},
    {"aten::rms_norm", 2, -1},
    {"aten::embedding", 0, -1},
    {"aten::embedding_bag", 0, -1},
    {"aten::prelu", 1, -1},
    {"aten::_addmm_activation", 2, 0},
    {"aten::addmm", 2, 0},
}};

const Signature* signature_of(std::string_view operation) {
    const auto found = std::find_if(kSignatures.begin(), kSignatures.end(),
                                    [&](const Signature& s) { return s.operation == operation; });
    return found == kSignatures.end() ? nullptr : &*found;
}

OperatorParameter parameter_of(std::string_view name, const std::vector<std::vector<std::int64_t>>& shapes,
                               int place) {
    OperatorParameter parameter{.name = name};
    if (place < 0 || static_cast<std::size_t>(place) >= shapes.size()) return parameter;
    const std::vector<std::int64_t>& shape = shapes[static_cast<std::size_t>(place)];
    if (shape.empty()) return parameter;
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) {
        constexpr std::int64_t kMost = std::int64_t{1} << 40;
        if (size <= 0 || size > kMost / elements) return parameter;
        elements *= size;
    }
    parameter.elements = elements;
    parameter.rows = shape.front();
    return parameter;
}

}  // namespace

bool reads_parameters(std::string_view operation) {
    return operation == kListedParameters || signature_of(operation) != nullptr;
}

std::vector<OperatorParameter> parameters_of(std::string_view operation, std::string_view detail) {
    std::vector<OperatorParameter> found;
    const auto shapes = traces::store::input_dimensions(detail);
    if (operation == kListedParameters) {
        for (std::size_t i = 1; i < shapes.size(); ++i)
            if (const auto own = parameter_of("parameter", shapes, static_cast<int>(i)); own.elements > 0)
                found.push_back(own);
        return found;
    }
    const Signature* signature = signature_of(operation);
    if (!signature) return {};
    for (const OperatorParameter& parameter :
         {parameter_of("weight", shapes, signature->weight), parameter_of("bias", shapes, signature->bias)})
        if (parameter.elements > 0) found.push_back(parameter);
    return found;
}

std::int64_t batch_of(std::string_view operation, std::string_view detail) {
    const Signature* signature = signature_of(operation);
    if (!signature && operation != kListedParameters) return 0;
    const auto shapes = traces::store::input_dimensions(detail);
    const std::size_t input =
        signature && (signature->weight == 0 || signature->bias == 0) ? 1 : 0;  // the weight or bias is first
    return input < shapes.size() && !shapes[input].empty() ? shapes[input].front() : 0;
}

}  // namespace shardscope::trainer::lift
