// The payload extension's registry: layouts (schemas, enumerations) and scopes that the program told. Any
// thread; nothing is ever forgotten.
#pragma once

#include <cstdint>

#include "profiler/inject/nvtx_events.h"
#include "profiler/inject/nvtx_payload_abi.h"
#include "profiler/inject/process_log.h"

namespace shardscope::profiler::inject {

// The ids under which payloads refer to it: the program's own, or a new one. 0 when the attributes make no
// sense. What is known already is not told again.
std::uint64_t register_schema(const Domain& domain, const nvtx::SchemaAttributes* attributes);
std::uint64_t register_enum(const Domain& domain, const nvtx::EnumAttributes* attributes);
std::uint64_t register_scope(const Domain& domain, const nvtx::ScopeAttributes* attributes);

// An event that has nothing but payloads; its text is what a schema says is the message.
Event describe(const Domain& domain, Payloads payloads);

}  // namespace shardscope::profiler::inject
