// The meaning of the text of an NVTX range in programs that use PyTorch: operators (torch.autograd.profiler's
// emit_nvtx) and modules. Internal to the store.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::traces::store {

// The domain of ranges whose text is only a module's name; it has the meaning of kModulePrefix.
inline constexpr std::string_view kModuleDomain = "nn.Module";

struct NvtxName {
    std::string_view name;  // without its decoration; a part of the text
    bool is_operator = false, is_module = false;
    std::string detail;  // the decoration as one JSON object; empty: none
};

// emit_nvtx writes "aten::mm, seq = 3, op_id = 12, sizes = [[2, 3], [3, 4]], input_op_ids = [(11, 0)]", each
// part only if it is known. Source: torch/csrc/autograd/profiler_legacy.cpp, getNvtxStr.
// A module is recognized by its class ("Linear", "LlamaDecoderLayer", "Conv2d_3") or path ("layers.0.mlp").
NvtxName read_nvtx_name(std::string_view text);

}  // namespace shardscope::traces::store
