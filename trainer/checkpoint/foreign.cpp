#include "trainer/checkpoint/foreign.h"

#include <system_error>
#include <utility>

#include "trainer/checkpoint/dcp_read.h"
#include "trainer/checkpoint/safetensors.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

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

std::int64_t element_count(const std::vector<std::int64_t>& dims) {
    constexpr std::int64_t kMost = std::int64_t{1} << 48;
    std::int64_t elements = 1;
    for (const std::int64_t size : dims) {
        if (size < 0 || size > kMost || (size > 0 && elements > kMost / size)) return -1;
        elements *= size;
    }
    return elements;
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& dims) {
    std::vector<std::int64_t> strides(dims.size(), 1);
    if (element_count(dims) <= 0) return strides;  // there is no element that they separate
    for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
    return strides;
}

ManifestParameter foreign_parameter(std::string path, std::vector<std::int64_t> dims) {
    ManifestParameter parameter;
    parameter.path = std::move(path);
    const std::int64_t elements = element_count(dims);
    parameter.rows = dims.empty() ? 1 : dims.front();
    parameter.width = parameter.rows > 0 ? elements / parameter.rows : 1;
    if (dims.empty()) dims = {1};
    if (dims.size() == 2 && dims.back() == 1) dims.pop_back();  // our vectors have no second dimension
    parameter.dims = std::move(dims);
    return parameter;
}

namespace {

std::vector<std::int64_t> in_our_order(const std::vector<std::int64_t>& dims) {
    if (dims.size() != 4) return dims;
    return {dims[0], dims[2], dims[3], dims[1]};
}

}  // namespace

void append_pieces(ManifestParameter& parameter, const std::string& state, const StoredBox& box) {
    if (element_count(box.sizes) <= 0) return;
    const std::vector<std::int64_t> sizes = in_our_order(box.sizes), offsets = in_our_order(box.offsets),
                                    strides = in_our_order(box.strides);
    std::vector<std::int64_t> dims = in_our_order(parameter.dims);
    dims.resize(sizes.size(), 1);
    const std::vector<std::int64_t> places = contiguous_strides(dims);
    // The dimensions from `outer` on form one run: they are neighbours in our order, and equally far apart in
    // the file.
    std::int64_t run = 1, stride = 1;
    std::size_t outer = sizes.size();
    for (; outer > 0; --outer) {
        const std::size_t d = outer - 1;
        if (sizes[d] == 1) continue;
        if (places[d] != run || (run > 1 && strides[d] != stride * run)) break;
        if (run == 1) stride = strides[d];
        run *= sizes[d];
    }
    std::vector<std::int64_t> at(outer, 0);
    for (;;) {
        ManifestPiece piece;
        piece.state = state;
        piece.elements = run;
        piece.file = box.file;
        piece.offset = box.offset;
        piece.crc32c.reset();
        piece.type = box.type;
        piece.stride = stride;
        for (std::size_t d = 0; d < sizes.size(); ++d) {
            const std::int64_t index = d < outer ? at[d] : 0;
            piece.first += (offsets[d] + index) * places[d];
            piece.offset += index * strides[d] * size_of(box.type);
        }
        parameter.pieces.push_back(std::move(piece));
        std::size_t d = outer;
        while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
        if (d == 0) return;
    }
}

bool is_ignored(std::string_view name) {
    return name.ends_with("num_batches_tracked");  // PyTorch reads it only without a momentum
}

}  // namespace shardscope::trainer::checkpoint
