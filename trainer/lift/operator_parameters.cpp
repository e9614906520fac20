#include "trainer/lift/operator_parameters.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"

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

OperatorParameter parameter_of(std::string_view name, const nlohmann::json& dims, int place) {
    OperatorParameter parameter{.name = name};
    if (place < 0 || static_cast<std::size_t>(place) >= dims.size()) return parameter;
    const nlohmann::json& shape = dims[static_cast<std::size_t>(place)];
    if (!shape.is_array() || shape.empty()) return parameter;
    std::int64_t elements = 1;
    for (const nlohmann::json& size : shape) {
        constexpr std::int64_t kMost = std::int64_t{1} << 40;
        if (!size.is_number_integer()) return parameter;
        const auto n = size.get<std::int64_t>();
        if (n <= 0 || n > kMost / elements) return parameter;
        elements *= n;
    }
    parameter.elements = elements;
    parameter.rows = shape.front().get<std::int64_t>();
    return parameter;
}

}  // namespace

bool reads_parameters(std::string_view operation) {
    return signature_of(operation) != nullptr;
}

std::vector<OperatorParameter> parameters_of(std::string_view operation, std::string_view detail) {
    const Signature* signature = signature_of(operation);
    if (!signature) return {};
    const nlohmann::json json = traces::parse_json(detail);
    if (!json.is_object()) return {};
    const auto dims = json.find("Input Dims");
    if (dims == json.end() || !dims->is_array()) return {};
    std::vector<OperatorParameter> found;
    for (const OperatorParameter& parameter :
         {parameter_of("weight", *dims, signature->weight), parameter_of("bias", *dims, signature->bias)})
        if (parameter.elements > 0) found.push_back(parameter);
    return found;
}

}  // namespace shardscope::trainer::lift
