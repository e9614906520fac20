// Generated memory snapshots of PyTorch, from the pickle reader to the answers about memory: the result is a
// StoreError, or answers whose sums agree. (fuzz_pickle fuzzes the bytes of pickles.)
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/fuzz/made_values.h"
#include "traces/analysis/memory/allocations.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/analysis/time/summary.h"
#include "traces/import/input/importer.h"
#include "traces/report/report.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"

namespace {

using namespace shardscope::traces;

constexpr std::int64_t kStart = 1'700'000'000'000'000;  // us

// Few addresses, so that several events concern the same block.
std::int64_t made_address(Maker& make) {
    return make.upto(20) == 0 ? make.number() : (1 << 20) + 512 * make.upto(7);
}
std::int64_t made_size(Maker& make) {
    return make.upto(10) == 0 ? make.number() : 512 * make.upto(4);
}
std::int64_t made_time(Maker& make, std::int64_t& now) {
    now += make.upto(3);
    return make.upto(20) == 0 ? make.number() : kStart + now;
}

MadeJson made_frames(Maker& make) {
    static constexpr const char* kFiles[] = {"train.py", "/x/torch/optim/adam.py", "??",
                                             "/x/torch/nn/modules/linear.py"};
    MadeJson frames = MadeJson::array();
    for (int n = make.upto(2); n > 0; --n) {
        frames.push_back(make.odd({{"name", make.one_of(kFiles)},
                                   {"filename", make.odd(make.one_of(kFiles))},
                                   {"line", make.odd(make.number())}}));
    }
    return frames;
}

MadeJson made_event(Maker& make, std::int64_t& now) {
    static constexpr const char* kActions[] = {
        "alloc",        "free_requested", "free_completed", "segment_alloc",
        "segment_free", "segment_map",    "segment_unmap",  "oom",
        "snapshot"};
    return {{"action", make.odd(make.one_of(kActions))}, {"addr", make.odd(made_address(make))},
            {"device_free", make.odd(made_size(make))},  {"size", make.odd(made_size(make))},
            {"stream", make.odd(make.upto(2))},          {"time_us", make.odd(made_time(make, now))},
            {"frames", make.odd(made_frames(make))}};
}

MadeJson made_segment(Maker& make) {
    static constexpr const char* kStates[] = {"active_allocated", "active_awaiting_free", "inactive"};
    MadeJson blocks = MadeJson::array();
    for (int n = make.upto(3); n > 0; --n) {
        MadeJson block = {{"size", make.odd(made_size(make))},
                          {"state", make.odd(make.one_of(kStates))},
                          {"frames", make.odd(made_frames(make))}};
        if (make.flip()) block["address"] = make.odd(made_address(make));
        blocks.push_back(make.odd(block));
    }
    return {{"device", make.odd(make.upto(2))},
            {"address", make.odd(made_address(make))},
            {"total_size", make.odd(made_size(make))},
            {"blocks", make.odd(blocks)}};
}

MadeJson made_snapshot(Maker& make) {
    static constexpr const char* kNames[] = {"FSDP::all_gather (layers.0)", "Optimizer.step#Adam.step",
                                             "ProfilerStep#1", "nccl:_reduce_scatter_base"};
    MadeJson segments = MadeJson::array(), traces = MadeJson::array(), annotations = MadeJson::array();
    for (int n = make.upto(2); n > 0; --n) segments.push_back(make.odd(made_segment(make)));
    std::int64_t now = 0;
    for (int device = make.upto(2); device > 0; --device) {
        MadeJson events = MadeJson::array();
        for (int n = make.upto(24); n > 0 && make.any(); --n)
            events.push_back(make.odd(made_event(make, now)));
        traces.push_back(make.odd(events));
    }
    now = 0;
    for (int n = make.upto(8); n > 0 && make.any(); --n) {
        annotations.push_back(make.odd({{"stage", make.flip() ? "START" : "END"},
                                        {"name", make.odd(make.one_of(kNames))},
                                        {"device", make.odd(make.upto(1))},
                                        {"time_us", make.odd(made_time(make, now))}}));
    }
    return {{"segments", std::move(segments)},
            {"device_traces", std::move(traces)},
            {"external_annotations", std::move(annotations)}};
}

void check(const store::Trace& trace) {
    const analysis::MemoryExplanation explanation = analysis::explain_memory(trace);
    for (const analysis::RankExplanation& rank : explanation.ranks) {
        const analysis::CategoryBytes& parts = rank.memory.at_peak;
        if (std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) != rank.memory.peak_bytes)
            std::abort();
    }
    for (const analysis::RankSummary& rank : analysis::summarize(trace).ranks) {
        for (const analysis::StepSummary& step : rank.steps) {
            if (std::accumulate(step.ns.begin(), step.ns.end(), std::int64_t{0}) !=
                step.window_end - step.window_start)
                std::abort();
        }
    }
    const analysis::AllocationsReport allocations = analysis::allocations_report(trace);
    for (const analysis::RankAllocations& rank : allocations.ranks) {
        for (const analysis::AllocationDetail& a : rank.allocations) {
            if (a.bytes <= 0 || (a.freed && *a.freed < a.time)) std::abort();
        }
    }
    for (const report::Format format : {report::Format::table, report::Format::json, report::Format::csv}) {
        render(explanation, format);
        render(allocations, format);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Maker make(data, size);
    const importer::FileRequest request{.rank = 3, .one_of_several = make.flip(), .partial = make.flip()};
    const bool cut = make.upto(7) == 0;
    std::string bytes = pickled::whole(pickle_of(made_snapshot(make)));
    if (cut) bytes.resize(bytes.size() * 3 / 4);
    try {
        importer::Input input = importer::Input::of_memory("made", bytes);
        store::ColumnSink sink;
        read_pickle(input, sink, request);
        check(*sink.take());
    } catch (const store::StoreError&) {  // refused with a message
    }
    return 0;
}
