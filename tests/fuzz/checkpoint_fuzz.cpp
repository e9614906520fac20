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
        for (const ManifestParameter& parameter : read.manifest.parameters) {
            for (const ManifestPiece& piece : parameter.pieces) {
                const std::int64_t extent = ((piece.elements - 1) * piece.stride + 1) * size_of(piece.type);
                const std::int64_t end = piece.offset + extent;
                if (piece.offset < 0 || end > read.manifest.files[piece.file].bytes) std::abort();
                if (piece.first < 0 || piece.first + piece.elements > parameter.elements()) std::abort();
            }
        }
    } catch (const CheckpointError&) {  // refused with a message
    }
    return 0;
}
