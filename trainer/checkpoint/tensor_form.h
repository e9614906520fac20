// Parameters as the tensors that other libraries have of them: under which names, of which dimensions, and in
// which order of elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/run_layout.h"

namespace shardscope::trainer::checkpoint {

struct TensorForm {
    std::string name;
    std::vector<std::int64_t> dims;
    std::int64_t first = 0;  // the parameter's element that is the tensor's first one
    // The dimensions, of which the last may be divided in two, and the order in which our elements have them,
    // the outermost first: filters [out, in, row, column] are ours as [out, row, column, in].
    std::vector<std::int64_t> view;
    std::vector<std::size_t> ours;
};

// A tensor whose elements have our order, and one that is the transposed matrix.
TensorForm plain_form(std::string name, std::vector<std::int64_t> dims, std::int64_t first = 0);
TensorForm transposed_form(std::string name, std::vector<std::int64_t> dims);
// The tensor in the state dict of a PyTorch program with modules of our names.
TensorForm module_form(const ParameterShape& shape);

// Where the elements of a parameter that is one tensor are in it; empty: in our order.
std::vector<Extent> order_in(const TensorForm& form);

// The number of elements; -1 if it is beyond every file, or if a size is below 0.
std::int64_t element_count(const std::vector<std::int64_t>& dims);
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& dims);

// A tensor, or a box of one, as it lies in a file: `strides` in elements, one for each of its dimensions.
struct StoredBox {
    std::vector<std::int64_t> offsets, sizes, strides;
    ElementType type = ElementType::fp32;
    std::size_t file = 0;
    std::int64_t offset = 0;  // of its first element, in bytes
};

// Appends the pieces of a parameter that a box within such a tensor consists of.
void append_pieces(ManifestParameter& parameter, const std::string& state, const StoredBox& box,
                   const TensorForm& form);

}  // namespace shardscope::trainer::checkpoint
