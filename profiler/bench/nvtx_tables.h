// A module's tables of NVTX's function pointers without any header of the CUDA Toolkit, filled by the library
// that NVTX_INJECTION64_PATH names, as NVTX does it at the first call. For the benchmark and for tests.
#pragma once

#include <cstdint>
#include <cstdlib>

#include <dlfcn.h>

#include "profiler/inject/nvtx_abi.h"
#include "profiler/inject/nvtx_payload_abi.h"

namespace shardscope::profiler::nvtx {

struct Tables {
    Tables() {
        for (unsigned i = 1; i < 16; ++i) {
            core_slots[i] = &core[i];
            core2_slots[i] = &core2[i];
        }
        const char* path = std::getenv("NVTX_INJECTION64_PATH");
        if (path == nullptr) return;
        void* library = ::dlopen(path, RTLD_LAZY);
        if (library == nullptr) return;
        using Initialize = int (*)(GetExportTable);
        current = this;
        const auto entry = reinterpret_cast<Initialize>(::dlsym(library, "InitializeInjectionNvtx2"));
        if (entry != nullptr && entry(&export_table) == 0) std::abort();  // it must never be unloaded
        using Extend = int (*)(ExtensionModule*);
        const auto extend = reinterpret_cast<Extend>(::dlsym(library, "InitializeInjectionNvtxExtension"));
        ExtensionSegment segment{0, 63, payload};
        ExtensionModule module{3,      sizeof(ExtensionModule), kPayloadModule, 0x0104, 1, &segment, nullptr,
                               nullptr};
        if (extend != nullptr && extend(&module) == 0) std::abort();
    }

    static const void* export_table(std::uint32_t id) {
        static const ExportCallbacks callbacks{sizeof(ExportCallbacks), &module_table};
        return id == kExportCallbacks ? &callbacks : nullptr;
    }
    static int module_table(int module, Function*** table, unsigned* size) {
        if (module != kModuleCore && module != kModuleCore2) return 0;
        *table = module == kModuleCore ? current->core_slots : current->core2_slots;
        *size = 16;
        return 1;
    }

    static inline Tables* current = nullptr;
    std::intptr_t payload[63] = {};
    Function core[16] = {}, core2[16] = {};
    Function *core_slots[16] = {}, *core2_slots[16] = {};
};

template <typename R, typename... A>
R call(Function function, A... arguments) {
    if (function == nullptr) return R();
    return reinterpret_cast<R (*)(A...)>(function)(arguments...);
}
}  // namespace shardscope::profiler::nvtx
