// Generated Chrome traces of arbitrary tracers: ranges with begin and end events, asynchronous ones,
// counters, flows, instants and metadata, in any order and with any ids. Each is read, summarized and
// exported: the result is a StoreError, or answers whose sums agree. (fuzz_kineto fuzzes the bytes of JSON.)
#include <cstdlib>
#include <numeric>

#include "tests/fuzz/made_values.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/time/temporal.h"
#include "traces/import/input/importer.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"

namespace {

using namespace shardscope::traces;

MadeJson made_args(Maker& make) {
    static constexpr const char* kKeys[] = {
        "name",   "sort_index", "labels",          "bytes", "External id", "correlation",
        "stream", "device",     "Total Allocated", "Bytes", "Addr",        "Python id"};
    MadeJson args = MadeJson::object();
    for (int n = make.upto(3); n > 0; --n) {
        const std::string key = make.one_of(kKeys);
        args[key] = make.odd(make.flip() ? MadeJson(make.number()) : MadeJson(make.one_of(kKeys)));
    }
    return args;
}

MadeJson made_event(Maker& make) {
    static constexpr const char* kPhases[] = {"X", "B", "E", "b", "e", "n", "i", "I",
                                              "C", "M", "s", "t", "f", "P", "N"};
    static constexpr const char* kNames[] = {"process_name", "thread_name",      "work",
                                             "draw",         "ProfilerStep#1",   "nn.Module: Linear_0",
                                             "[memory]",     "thread_sort_index"};
    static constexpr const char* kCategories[] = {"blink",      "kernel",          "cpu_op", "cuda_runtime",
                                                  "gpu_memcpy", "python_function", "fwdbwd", ""};
    MadeJson event = {{"ph", make.odd(make.one_of(kPhases))},
                      {"name", make.odd(make.one_of(kNames))},
                      {"cat", make.odd(make.one_of(kCategories))},
                      {"pid", make.odd(make.number())},
                      {"tid", make.odd(make.flip() ? MadeJson(make.number()) : MadeJson("thread"))},
                      {"ts", make.odd(make.number())}};
    if (make.flip()) event["dur"] = make.odd(make.number());
    if (make.flip()) event["id"] = make.odd(make.flip() ? MadeJson(make.number()) : MadeJson("0x1f"));
    if (make.upto(3) == 0) event["id2"] = make.odd({{"local", "0x2"}});
    if (make.flip()) event["args"] = make.odd(made_args(make));
    return event;
}

void check(const store::Trace& trace) {
    for (const analysis::RankSummary& rank : analysis::summarize(trace).ranks) {
        for (const analysis::StepSummary& step : rank.steps) {
            if (std::accumulate(step.ns.begin(), step.ns.end(), std::int64_t{0}) !=
                step.window_end - step.window_start)
                std::abort();
        }
    }
    analysis::module_view(trace);
    analysis::operators_report(trace);
    analysis::temporal_breakdown(trace);
    analysis::idle_report(trace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Maker make(data, size);
    const importer::FileRequest request{.rank = 1, .one_of_several = make.flip(), .partial = make.flip()};
    const int form = make.upto(2);
    MadeJson events = MadeJson::array();
    for (int n = make.upto(60); n > 0 && make.any(); --n) events.push_back(make.odd(made_event(make)));
    std::string text = json_of(events);
    if (form == 1) text = "{\"traceEvents\": " + text + ", \"displayTimeUnit\": \"ns\"}";
    if (form == 2) text.pop_back();  // many tracers never write the closing bracket
    try {
        importer::Input input = importer::Input::of_memory("made", text);
        store::ColumnSink sink;
        read_chrome_trace(input, sink, request);
        check(*sink.take());
    } catch (const store::StoreError&) {  // refused with a message
    }
    return 0;
}
