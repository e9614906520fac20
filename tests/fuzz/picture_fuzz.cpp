// Arbitrary bytes as a PNG or JPEG file: the result is a PictureError or a picture whose pixels can be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "trainer/data/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace shardscope::trainer::data;
    try {
        std::vector<unsigned char> room;
        const Picture picture = decode({data, size}, room, std::int64_t{1} << 16);
        const unsigned char* end = room.data() + room.size();
        if (picture.row(picture.height) > end) std::abort();
    } catch (const PictureError&) {
    }
    return 0;
}
