#include "trainer/checkpoint/foreign.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/checkpoint/dcp_read.h"
#include "trainer/checkpoint/safetensors.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;
using traces::schema::joined;

namespace {

bool is_dcp(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path / kDcpMetadata, ignored);
}

}  // namespace

bool is_foreign(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_regular_file(path / kManifestName, ignored)) return false;
    return is_dcp(path) || !safetensors_index(path).empty();
}

ForeignCheckpoint read_foreign(const fs::path& path) {
    return is_dcp(path) ? read_dcp(path) : read_safetensors(safetensors_index(path));
}

std::string to_text(const ForeignCheckpoint& checkpoint) {
    std::string text = to_text(checkpoint.manifest);
    for (const ForeignTensor& tensor : checkpoint.tensors) {
        text += fmt::format("{} {} [{}]", tensor.name, tensor.state, joined(tensor.dims, ", "));
        for (const StoredBox& box : tensor.boxes) {
            text += fmt::format(" [{}] [{}] {}:{}", joined(box.offsets, ", "), joined(box.sizes, ", "),
                                checkpoint.manifest.files[box.file].name, box.offset);
        }
        text += "\n";
    }
    return text;
}

bool is_ignored(std::string_view name) {
    // PyTorch reads the first only without a momentum; the others are constants that older versions of
    // transformers kept.
    constexpr std::string_view kIgnored[] = {"num_batches_tracked", ".attn.bias", ".attn.masked_bias",
                                             ".rotary_emb.inv_freq", ".position_ids"};
    return std::any_of(std::begin(kIgnored), std::end(kIgnored),
                       [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace shardscope::trainer::checkpoint
