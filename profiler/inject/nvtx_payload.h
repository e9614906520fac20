// The payload extension's registry: layouts (schemas, enumerations) and scopes that the program has
// registered. Any thread; nothing is ever removed.
#pragma once

#include <cstdint>

#include "profiler/inject/nvtx_events.h"
#include "profiler/inject/nvtx_payload_abi.h"
#include "profiler/inject/process_log.h"

namespace shardscope::profiler::inject {

// Return the id by which payloads refer to it: the program's own, or a new one; 0 if the attributes are
// invalid. What was registered before is not sent again.
std::uint64_t register_schema(const Domain& domain, const nvtx::SchemaAttributes* attributes);
std::uint64_t register_enum(const Domain& domain, const nvtx::EnumAttributes* attributes);
std::uint64_t register_scope(const Domain& domain, const nvtx::ScopeAttributes* attributes);

// An event that has only payloads; its text is the entry that a schema marks as the message.
Event describe(const Domain& domain, Payloads payloads);

}  // namespace shardscope::profiler::inject
