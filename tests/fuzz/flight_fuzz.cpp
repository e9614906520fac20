// Generated dumps of PyTorch's flight recorder, of two ranks of one job, as pickles or JSON: they are read
// and joined, and the rank that stopped is determined. The result is a StoreError or an answer. (fuzz_pickle
// fuzzes the bytes of pickles.)
#include <memory>
#include <vector>

#include "tests/fuzz/made_values.h"
#include "traces/analysis/communication/flight.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/import/input/importer.h"
#include "traces/import/join/join.h"
#include "traces/report/report.h"
#include "traces/store/columns/column_sink.h"

namespace {

using namespace shardscope::traces;

MadeJson made_sizes(Maker& make) {
    MadeJson sizes = MadeJson::array();
    for (int t = make.upto(2); t > 0; --t) {
        MadeJson shape = MadeJson::array();
        for (int d = make.upto(3); d > 0; --d) shape.push_back(make.odd(make.number()));
        sizes.push_back(make.odd(shape));
    }
    return sizes;
}

MadeJson made_entry(Maker& make) {
    static constexpr const char* kNames[] = {
        "nccl:all_reduce", "nccl:_all_gather_base", "nccl:_reduce_scatter_base",
        "nccl:send 0->1",  "nccl:recv 0<-1",        "nccl:barrier"};
    static constexpr const char* kStates[] = {"scheduled", "started", "completed"};
    static constexpr const char* kTypes[] = {"Float", "BFloat16", "Half", "Long"};
    static constexpr const char* kGroups[] = {"0", "1", "mesh_shard"};
    MadeJson entry = {{"record_id", make.odd(make.number())},
                      {"pg_id", make.odd(make.upto(2))},
                      {"process_group", make.odd({make.one_of(kGroups), make.one_of(kGroups)})},
                      {"collective_seq_id", make.odd(make.number())},
                      {"p2p_seq_id", make.odd(make.number())},
                      {"profiling_name", make.odd(make.one_of(kNames))},
                      {"time_created_ns", make.odd(make.number())},
                      {"input_sizes", make.odd(made_sizes(make))},
                      {"input_dtypes", make.odd({make.one_of(kTypes)})},
                      {"output_sizes", make.odd(made_sizes(make))},
                      {"output_dtypes", make.odd({make.one_of(kTypes)})},
                      {"state", make.odd(make.one_of(kStates))},
                      {"time_discovered_started_ns", make.odd(make.number())},
                      {"time_discovered_completed_ns", make.odd(make.number())},
                      {"timeout_ms", make.odd(make.number())}};
    if (make.flip()) entry["is_p2p"] = make.odd(make.flip());
    if (make.flip())
        entry["frames"] = {{{"name", "train"}, {"filename", "train.py"}, {"line", make.odd(make.number())}}};
    return entry;
}

MadeJson made_dump(Maker& make, int rank) {
    static constexpr const char* kRanks[] = {"[0, 1]", "[1]", "[]", "[0, 1, 2, 3]"};
    static constexpr const char* kVersions[] = {"2.4", "2.10", "1.5", "3.0"};
    MadeJson entries = MadeJson::array();
    for (int n = make.upto(8); n > 0 && make.any(); --n) entries.push_back(make.odd(made_entry(make)));
    MadeJson dump = {{"version", make.odd(make.one_of(kVersions))}, {"entries", std::move(entries)}};
    for (const char* group : {"0", "1"}) {
        if (make.flip())
            dump["pg_config"][group] = make.odd({{"desc", "default_pg"}, {"ranks", make.one_of(kRanks)}});
        if (make.flip()) {
            dump["pg_status"][group] = make.odd({{"last_enqueued_collective", make.odd(make.number())},
                                                 {"last_started_collective", make.odd(make.number())},
                                                 {"last_completed_collective", make.odd(make.number())}});
        }
    }
    if (make.flip()) dump["rank"] = make.odd(rank);
    return dump;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Maker make(data, size);
    try {
        std::vector<std::unique_ptr<store::Trace>> parts;
        for (int rank = 0; rank < 2; ++rank) {
            const bool json = make.flip();
            const MadeJson dump = made_dump(make, rank);
            const std::string bytes = json ? json_of(dump) : pickled::whole(pickle_of(dump));
            importer::Input input = importer::Input::of_memory("made", bytes);
            store::ColumnSink sink;
            const importer::FileRequest request{.rank = rank, .one_of_several = true, .partial = make.flip()};
            if (json) {
                read_flight_json(input, sink, request);
            } else {
                read_pickle(input, sink, request);
            }
            parts.push_back(sink.take());
        }
        const auto trace = importer::join_traces(std::move(parts));
        const analysis::FlightReport report = analysis::flight_report(*trace);
        for (const report::Format format : {report::Format::table, report::Format::json, report::Format::csv})
            render(report, format);
        analysis::straggler_report(*trace);
    } catch (const store::StoreError&) {  // refused with a message
    }
    return 0;
}
