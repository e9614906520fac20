// Arbitrary bytes as files that PyTorch writes, a pickle or the JSON of a flight recorder, or as the text of
// perf script, read into columns and analysed: the result is a StoreError or an answer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "traces/analysis/communication/flight.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/analysis/samples/flame.h"
#include "traces/import/input/importer.h"
#include "traces/store/columns/column_sink.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace shardscope::traces;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (bytes.empty()) return 0;
    // The first byte chooses the options; the rest is the file.
    const unsigned how = static_cast<unsigned char>(bytes.front());
    importer::FileRequest request;
    request.partial = (how & 1) != 0;
    request.one_of_several = (how & 2) != 0;
    request.rank = (how & 4) != 0 ? 5 : 0;
    try {
        importer::Input input = importer::Input::of_memory(
            "fuzzed", bytes.substr(1), {.max_bytes = std::uint64_t{16} << 20, .work = {}});
        store::ColumnSink sink;
        if ((how & 8) != 0) {
            read_perf_script(input, sink, request);
        } else if (const std::string_view start = input.peek(1); start == "{" || start == "[") {
            read_flight_json(input, sink, request);
        } else {
            read_pickle(input, sink, request);
        }
        const auto trace = sink.take();
        const analysis::MemoryExplanation explanation = analysis::explain_memory(*trace);
        for (const analysis::RankExplanation& rank : explanation.ranks) {
            const analysis::CategoryBytes& parts = rank.memory.at_peak;
            if (std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) != rank.memory.peak_bytes)
                std::abort();
        }
        analysis::flight_report(*trace);
        const analysis::SamplesReport samples = analysis::samples_report(*trace);
        if (!samples.tree.empty() && samples.tree.front().total != samples.total) std::abort();
    } catch (const store::StoreError&) {  // refused with a message
    }
    return 0;
}
