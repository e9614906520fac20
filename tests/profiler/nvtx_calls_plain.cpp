// The backend without any header of the CUDA Toolkit: a module's tables of function pointers, filled by the
// library that NVTX_INJECTION64_PATH names, as NVTX does it at the first call.
#include <cstdlib>

#include <dlfcn.h>

#include "profiler/inject/nvtx_abi.h"
#include "tests/profiler/nvtx_calls.h"

namespace nvtx_calls {
namespace {

namespace abi = shardscope::profiler::nvtx;

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
        using Initialize = int (*)(abi::GetExportTable);
        current = this;
        const auto entry = reinterpret_cast<Initialize>(::dlsym(library, "InitializeInjectionNvtx2"));
        if (entry != nullptr && entry(&export_table) == 0) std::abort();  // it must never be unloaded
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

    static inline Tables* current = nullptr;
    abi::Function core[16] = {}, core2[16] = {};
    abi::Function *core_slots[16] = {}, *core2_slots[16] = {};
};

Tables& tables() {
    static Tables made;
    return made;
}

template <typename R, typename... A>
R call(abi::Function function, A... arguments) {
    if (function == nullptr) return R();
    return reinterpret_cast<R (*)(A...)>(function)(arguments...);
}
template <typename R, typename... A>
R core(abi::CoreId id, A... arguments) {
    return call<R>(tables().core[id], arguments...);
}
template <typename R, typename... A>
R core2(abi::Core2Id id, A... arguments) {
    return call<R>(tables().core2[id], arguments...);
}

abi::EventAttributes attributes(const Event& event) {
    abi::EventAttributes a{};
    a.version = 3;
    a.size = sizeof a;
    a.category = event.category;
    a.color_type = event.color != 0 ? abi::kColorArgb : 0;
    a.color = event.color;
    if (event.registered != nullptr) {
        a.message_type = abi::kMessageRegistered;
        a.message.registered = event.registered;
    } else if (event.wide != nullptr) {
        a.message_type = abi::kMessageUnicode;
        a.message.unicode = event.wide;
    } else if (event.text != nullptr) {
        a.message_type = abi::kMessageAscii;
        a.message.ascii = event.text;
    }
    return a;
}

}  // namespace

using Attributes = const abi::EventAttributes*;

void mark_a(const char* text) {
    core<void>(abi::mark_a, text);
}
void mark_w(const wchar_t* text) {
    core<void>(abi::mark_w, text);
}
void mark_ex(const Event& event) {
    const auto a = attributes(event);
    core<void>(abi::mark_ex, Attributes(&a));
}
int push_a(const char* text) {
    return core<int>(abi::range_push_a, text);
}
int push_w(const wchar_t* text) {
    return core<int>(abi::range_push_w, text);
}
int push_ex(const Event& event) {
    const auto a = attributes(event);
    return core<int>(abi::range_push_ex, Attributes(&a));
}
int pop() {
    return core<int>(abi::range_pop);
}
std::uint64_t start_a(const char* text) {
    return core<std::uint64_t>(abi::range_start_a, text);
}
std::uint64_t start_w(const wchar_t* text) {
    return core<std::uint64_t>(abi::range_start_w, text);
}
std::uint64_t start_ex(const Event& event) {
    const auto a = attributes(event);
    return core<std::uint64_t>(abi::range_start_ex, Attributes(&a));
}
void end(std::uint64_t id) {
    core<void>(abi::range_end, id);
}
void name_category_a(std::uint32_t category, const char* name) {
    core<void>(abi::name_category_a, category, name);
}
void name_category_w(std::uint32_t category, const wchar_t* name) {
    core<void>(abi::name_category_w, category, name);
}
void name_thread_a(std::uint32_t tid, const char* name) {
    core<void>(abi::name_os_thread_a, tid, name);
}
void name_thread_w(std::uint32_t tid, const wchar_t* name) {
    core<void>(abi::name_os_thread_w, tid, name);
}

void* domain_create_a(const char* name) {
    return core2<void*>(abi::domain_create_a, name);
}
void* domain_create_w(const wchar_t* name) {
    return core2<void*>(abi::domain_create_w, name);
}
void domain_destroy(void* domain) {
    core2<void>(abi::domain_destroy, domain);
}
void* register_a(void* domain, const char* text) {
    return core2<void*>(abi::domain_register_string_a, domain, text);
}
void* register_w(void* domain, const wchar_t* text) {
    return core2<void*>(abi::domain_register_string_w, domain, text);
}
void domain_mark(void* domain, const Event& event) {
    const auto a = attributes(event);
    core2<void>(abi::domain_mark_ex, domain, Attributes(&a));
}
int domain_push(void* domain, const Event& event) {
    const auto a = attributes(event);
    return core2<int>(abi::domain_range_push_ex, domain, Attributes(&a));
}
int domain_pop(void* domain) {
    return core2<int>(abi::domain_range_pop, domain);
}
std::uint64_t domain_start(void* domain, const Event& event) {
    const auto a = attributes(event);
    return core2<std::uint64_t>(abi::domain_range_start_ex, domain, Attributes(&a));
}
void domain_end(void* domain, std::uint64_t id) {
    core2<void>(abi::domain_range_end, domain, id);
}
void domain_name_category_a(void* domain, std::uint32_t category, const char* name) {
    core2<void>(abi::domain_name_category_a, domain, category, name);
}
void domain_name_category_w(void* domain, std::uint32_t category, const wchar_t* name) {
    core2<void>(abi::domain_name_category_w, domain, category, name);
}

}  // namespace nvtx_calls
