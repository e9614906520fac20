// Arbitrary bytes as checkpoints of other libraries: a file of safetensors, or the .metadata and one file of
// tensors of torch.distributed.checkpoint. They are refused with a message, or every piece lies in its file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/foreign.h"

namespace {

namespace fs = std::filesystem;

void put(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

const fs::path& folder() {
    static const fs::path made = [] {
        const fs::path memory = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path();
        std::string name = (memory / "checkpoint_fuzz.XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        return fs::path(name);
    }();
    return made;
}

// A run whose model has the checkpoint's tensors: those of four dimensions are filters.
shardscope::trainer::checkpoint::RunLayout layout_of(
    const shardscope::trainer::checkpoint::ForeignCheckpoint& read) {
    shardscope::trainer::checkpoint::RunLayout layout;
    for (const auto& tensor : read.tensors) {
        if (!tensor.state.empty()) continue;
        const std::vector<std::int64_t>& dims = tensor.dims;
        const std::int64_t rows = dims.empty() ? 1 : dims.front(),
                           elements = shardscope::trainer::checkpoint::element_count(dims);
        const bool filters = dims.size() == 4 && dims[2] == dims[3] && dims[2] > 0 && dims[2] < 1000;
        layout.parameters.push_back(
            {tensor.name, rows, rows > 0 ? elements / rows : 1, filters ? static_cast<int>(dims[2]) : 0});
    }
    return layout;
}

}  // namespace

// The first byte chooses the format. For the second one, the next two bytes are the length of .metadata; the
// rest is the file of tensors.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace shardscope::trainer::checkpoint;
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (bytes.size() < 3) return 0;
    const bool dcp = (bytes.front() & 1) != 0;
    fs::path path = folder() / "model.safetensors";
    if (dcp) {
        std::uint16_t length = 0;
        std::memcpy(&length, bytes.data() + 1, sizeof length);
        bytes.remove_prefix(3);
        path = folder();
        put(folder() / kDcpMetadata, bytes.substr(0, length));
        put(folder() / "__0_0.distcp", bytes.substr(std::min<std::size_t>(length, bytes.size())));
    } else {
        put(path, bytes.substr(1));
    }
    try {
        const ForeignCheckpoint read = read_foreign(path);
        for (const ManifestParameter& parameter :
             bind(read, layout_of(read), shardscope::trainer::job::ModelType::mlp).parameters) {
            for (const ManifestPiece& piece : parameter.pieces) {
                std::int64_t last = piece.order.empty() ? piece.elements - 1 : 0;
                for (const Extent& extent : piece.order) last += (extent.size - 1) * extent.stride;
                const std::int64_t end = piece.offset + (last + 1) * size_of(piece.type);
                if (piece.offset < 0 || end > read.manifest.files[piece.file].bytes) std::abort();
                if (piece.first < 0 || piece.first + piece.elements > parameter.elements()) std::abort();
            }
        }
    } catch (const CheckpointError&) {  // refused with a message
    }
    return 0;
}
