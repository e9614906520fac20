// What torch.save writes for one tensor or object: a zip archive, nothing in it packed, with the pickle
// data.pkl and the tensor's numbers data/0. Sources: PyTorch's torch/serialization.py and
// caffe2/serialize/inline_container.h; PKWARE's APPNOTE.TXT for zip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shardscope::trainer::checkpoint {

struct TorchTensor {
    std::string storage = "FloatStorage";      // the class of its numbers in the module torch
    std::vector<std::int64_t> sizes, strides;  // in elements
    std::int64_t offset = 0;                   // of its first element in the storage
};

// The checksum that zip has (CRC-32), of less than 4 GiB; `before`: that of the bytes before these.
std::uint32_t zip_checksum(std::span<const std::byte> bytes, std::uint32_t before = 0);

// The bytes before and after a tensor's numbers. Their lengths do not depend on the checksum, and those
// before are a multiple of 64.
struct TorchFrame {
    std::string before, after;
};
// `bytes`: of the numbers, less than 2^31; `checksum`: their zip_checksum().
TorchFrame torch_frame(const TorchTensor& tensor, std::int64_t bytes, std::uint32_t checksum);

// The whole file of an object, of which `value` is the pickle.
std::string torch_object(const std::string& value);
// The whole file of a tensor.
std::string torch_tensor(const TorchTensor& tensor, const std::string& numbers);

}  // namespace shardscope::trainer::checkpoint
