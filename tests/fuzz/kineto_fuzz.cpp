// Arbitrary bytes as a Kineto or Chrome trace, read into columns: the result is a StoreError or a trace.
#include <cstddef>
#include <cstdint>

#include "traces/import/input/importer.h"
#include "traces/store/columns/column_sink.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace shardscope::traces;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    // The first byte chooses the options; the rest is the file.
    const unsigned how = bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front());
    importer::FileRequest request;
    request.partial = (how & 1) != 0;
    request.one_of_several = (how & 2) != 0;
    request.rank = (how & 4) != 0 ? 5 : 0;
    try {
        importer::Input input =
            importer::Input::of_memory("fuzzed", bytes.empty() ? bytes : bytes.substr(1),
                                       {.max_bytes = std::uint64_t{16} << 20, .work = {}});
        store::ColumnSink sink;
        read_chrome_trace(input, sink, request);
        sink.take();
    } catch (const store::StoreError&) {  // refused with a message
    }
    return 0;
}
