// The layout of NVTX_EVENTS.binaryData.
#include <cstring>

#include "traces/schema/rows.h"

namespace shardscope::traces::schema {

std::string binary_payload(std::uint64_t schema, std::string_view bytes) {
    const std::uint64_t head[4] = {1, schema, bytes.size(), 32 + bytes.size()};
    std::string blob(sizeof head + bytes.size(), '\0');
    std::memcpy(blob.data(), head, sizeof head);
    bytes.copy(blob.data() + sizeof head, bytes.size());
    return blob;
}

}  // namespace shardscope::traces::schema
