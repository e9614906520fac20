// Kineto and Chrome traces: reads the stream of events and turns it into rows.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/import/input/importer.h"
#include "traces/import/kineto/event_stream.h"
#include "traces/import/kineto/kineto_rows.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kTraceHead = std::size_t{1} << 20;

void tell_repairs(store::EventSink& sink, const EventStreamResult& result) {
    const JsonRepairs& r = result.repairs;
    const std::pair<std::uint64_t, const char*> kinds[] = {
        {r.words, "bare words in place of numbers"},
        {r.controls, "control characters in texts"},
        {r.utf8, "bytes that are not UTF-8"},
        {r.backslashes, "backslashes that escape nothing"},
        {r.quotes, "quotes within texts"},
        {result.lost_metadata, "members around the events that could not be read"}};
    std::string text;
    for (const auto& [count, what] : kinds) {
        if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
    }
    if (text.empty()) return;
    sink.add(schema::DiagnosticRow{.time = 0,
                                   .severity = schema::Severity::information,
                                   .text = "the file is not valid JSON and was read nevertheless: " + text});
}

// Why a JSON file is not a trace; names the tool that wrote it if that can be recognized.
std::string not_a_trace(const EventStreamResult& result) {
    const auto has = [&](std::string_view key) {
        return std::find(result.keys.begin(), result.keys.end(), key) != result.keys.end();
    };
    if (result.has_list && result.first_is_list) {
        return "there are no trace events: it is a list of lists, as PyTorch's memory timeline is "
               "(export_memory_timeline); give the memory snapshot (torch.cuda.memory._dump_snapshot) or the "
               "profiler's trace (export_chrome_trace)";
    }
    if (result.has_list)
        return "there are no trace events: nothing in its list has a phase (\"ph\"), which each event of a "
               "Chrome trace has; give a trace of PyTorch's profiler (export_chrome_trace)";
    if (has("nodes") && has("schema")) {
        return "there are no traceEvents: it is PyTorch's execution trace (Chakra), which has no device "
               "times; give the profiler's trace (export_chrome_trace)";
    }
    if (has("rocprofiler-sdk-tool")) {
        return "there are no traceEvents: it is rocprofv3's own JSON, which is not read; give a trace of "
               "PyTorch's profiler (export_chrome_trace)";
    }
    if (has("traceEvents")) return "traceEvents is not a list of events; is it a Chrome trace?";
    std::string keys;
    for (const std::string& key : result.keys) keys += fmt::format("{}\"{}\"", keys.empty() ? "" : ", ", key);
    return fmt::format(
        "there are no traceEvents, only {}; give a trace of PyTorch's "
        "profiler (export_chrome_trace)",
        keys.empty() ? "an empty object" : keys);
}

}  // namespace

FileFacts read_chrome_trace(Input& input, store::EventSink& sink, const FileRequest& request) {
    input.set_cut_is_end(request.partial);
    KinetoRows rows(sink, request, read_trace_head(input.peek(kTraceHead)));
    const EventStreamResult result = read_event_stream(input, rows, request.partial);
    const bool empty = !result.has_list || (result.any_element && !rows.any_phase());
    if (empty && result.lost_places == 0) throw input.error(0, not_a_trace(result));
    FileFacts facts = rows.finish();
    tell_repairs(sink, result);
    if (result.lost_places > 0) {
        facts.partial = true;
        sink.add(schema::DiagnosticRow{
            .time = facts.last_ns,
            .severity = schema::Severity::error,
            .text = fmt::format("the file is damaged: {} {} could not be read, the first at byte {}{}; the "
                                "trace is incomplete",
                                result.lost_places, result.lost_places == 1 ? "place" : "places",
                                result.first_lost, result.cut ? ", and it ends early" : "")});
        sink.add(schema::RunInfoRow{.key = "import.partial", .value = "1"});
    }
    return facts;
}

}  // namespace shardscope::traces::importer
