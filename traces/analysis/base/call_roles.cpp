// See call_roles.h.
#include "traces/analysis/base/call_roles.h"

#include <cstddef>
#include <string_view>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// A copy without "Async" returns when the copy is done; freeing device memory waits for the device.
CallRole role_of_name(std::string_view name) {
    const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (has("StreamWaitEvent")) return CallRole::stream_waits;
    if (has("Synchronize")) return CallRole::waits;
    if (has("EventRecord")) return CallRole::records;
    if (has("EventQuery") || has("StreamQuery")) return CallRole::polls;
    if (has("Memcpy") && !has("Async")) return CallRole::waits;
    if (name == "cudaFree" || name == "hipFree" || name.starts_with("cuMemFree")) {
        return has("Async") ? CallRole::plain : CallRole::waits;
    }
    return CallRole::plain;
}

}  // namespace

CallRoles::CallRoles(const store::Trace& trace) {
    const store::RuntimeCalls& runtime = trace.runtime;
    std::vector<std::int8_t> by_name(trace.strings.size(), -1);
    role.resize(runtime.size());
    stream.assign(runtime.size(), -1);
    for (std::size_t i = 0; i < runtime.size(); ++i) {
        std::int8_t& known = by_name[static_cast<std::size_t>(runtime.name[i])];
        if (known < 0) known = static_cast<std::int8_t>(role_of_name(trace.strings[runtime.name[i]]));
        role[i] = static_cast<CallRole>(known);
    }
    const store::Synchronizations& waits = trace.synchronizations;
    for (std::size_t i = 0; i < waits.size(); ++i) {
        if (waits.call[i] < 0) continue;
        const auto at = static_cast<std::size_t>(waits.call[i]);
        role[at] = waits.type[i] == schema::kSyncStreamWait ? CallRole::stream_waits : CallRole::waits;
        stream[at] = waits.type[i] == schema::kSyncContext ? -1 : waits.stream[i];
    }
}

}  // namespace shardscope::traces::analysis
