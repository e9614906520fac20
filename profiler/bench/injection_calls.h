// NVTX calls for the benchmark, inline as a program's own are.
#pragma once

#include <cstdint>
#include <cstdlib>

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
// Pushes a range of a registered string, with a payload of that schema when there are bytes.
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
#include <dlfcn.h>

#include "profiler/inject/nvtx_abi.h"
#include "profiler/inject/nvtx_payload_abi.h"

namespace shardscope::bench::calls {

namespace abi = shardscope::profiler::nvtx;
using Domain = abi::DomainHandle;
using String = abi::StringHandle;

struct Tables {
    abi::Function core[16] = {}, core2[16] = {};
    abi::Function *core_slots[16] = {}, *core2_slots[16] = {};
    static inline Tables* current = nullptr;

    Tables() {
        current = this;
        for (unsigned i = 1; i < 16; ++i) {
            core_slots[i] = &core[i];
            core2_slots[i] = &core2[i];
        }
        const char* path = std::getenv("NVTX_INJECTION64_PATH");
        void* library = path != nullptr ? ::dlopen(path, RTLD_LAZY) : nullptr;
        if (library == nullptr) return;
        using Initialize = int (*)(abi::GetExportTable);
        const auto entry = reinterpret_cast<Initialize>(::dlsym(library, "InitializeInjectionNvtx2"));
        if (entry != nullptr) entry(&export_table);
    }
    static const void* export_table(std::uint32_t id) {
        static const abi::ExportCallbacks callbacks{sizeof(abi::ExportCallbacks), &module_table};
        return id == abi::kExportCallbacks ? &callbacks : nullptr;
    }
    static int module_table(int module, abi::Function*** table, unsigned* size) {
        if (module != abi::kModuleCore && module != abi::kModuleCore2) return 0;
        *table = module == abi::kModuleCore ? current->core_slots : current->core2_slots;
        *size = 16;
        return 1;
    }
};
inline Tables tables;

template <typename R, typename... A>
R call(abi::Function function, A... arguments) {
    return function == nullptr ? R() : reinterpret_cast<R (*)(A...)>(function)(arguments...);
}

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
