// NVTX calls for the benchmark, inline as a program's own are.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(SHARDSCOPE_HAS_NVTX)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

namespace shardscope::bench::calls {

using Domain = nvtxDomainHandle_t;
using String = nvtxStringHandle_t;

inline void push(const char* text) {
    nvtxRangePushA(text);
}
inline void pop() {
    nvtxRangePop();
}
inline Domain create(const char* name) {
    return nvtxDomainCreateA(name);
}
inline String register_string(Domain domain, const char* text) {
    return nvtxDomainRegisterStringA(domain, text);
}
// Pushes a range of a registered string, with a payload of that schema if there are bytes.
inline void push(Domain domain, String text, std::uint64_t schema = 0, const void* data = nullptr,
                 std::size_t size = 0) {
    nvtxEventAttributes_t a{};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = text;
    const nvtxPayloadData_t payload{schema, size, data};
    if (data != nullptr) {
        a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
        a.reserved0 = 1;
        a.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(&payload);
    }
    nvtxDomainRangePushEx(domain, &a);
}
inline void pop(Domain domain) {
    nvtxDomainRangePop(domain);
}

}  // namespace shardscope::bench::calls

#else
#include "profiler/bench/nvtx_tables.h"

namespace shardscope::bench::calls {

namespace abi = shardscope::profiler::nvtx;
using Domain = abi::DomainHandle;
using String = abi::StringHandle;

using abi::call;
inline abi::Tables tables;

inline void push(const char* text) {
    call<int>(tables.core[abi::range_push_a], text);
}
inline void pop() {
    call<int>(tables.core[abi::range_pop]);
}
inline Domain create(const char* name) {
    return call<Domain>(tables.core2[abi::domain_create_a], name);
}
inline String register_string(Domain domain, const char* text) {
    return call<String>(tables.core2[abi::domain_register_string_a], domain, text);
}
inline void push(Domain domain, String text, std::uint64_t schema = 0, const void* data = nullptr,
                 std::size_t size = 0) {
    abi::EventAttributes a{};
    a.version = 3;
    a.size = sizeof a;
    a.message_type = abi::kMessageRegistered;
    a.message.registered = text;
    const abi::PayloadData payload{schema, size, data};
    if (data != nullptr) {
        a.payload_type = abi::kPayloadTypeExtended;
        a.reserved = 1;
        a.payload = reinterpret_cast<std::uintptr_t>(&payload);
    }
    call<int>(tables.core2[abi::domain_range_push_ex], domain, static_cast<const abi::EventAttributes*>(&a));
}
inline void pop(Domain domain) {
    call<int>(tables.core2[abi::domain_range_pop], domain);
}

}  // namespace shardscope::bench::calls
#endif
