// The backend that is a real NVTX program: the CUDA Toolkit's headers. Here also our statement of NVTX's
// binary interface is held against them, at compile time.
#include <cstddef>

#include <nvtx3/nvToolsExt.h>

#include "profiler/inject/nvtx_abi.h"
#include "tests/profiler/nvtx_calls.h"

namespace nvtx_calls {
namespace {

namespace abi = shardscope::profiler::nvtx;

#define SAME_PLACE(ours, theirs) \
    static_assert(offsetof(abi::EventAttributes, ours) == offsetof(nvtxEventAttributes_t, theirs))
static_assert(sizeof(abi::EventAttributes) == sizeof(nvtxEventAttributes_t));
SAME_PLACE(version, version);
SAME_PLACE(size, size);
SAME_PLACE(category, category);
SAME_PLACE(color_type, colorType);
SAME_PLACE(color, color);
SAME_PLACE(payload_type, payloadType);
SAME_PLACE(payload, payload);
SAME_PLACE(message_type, messageType);
SAME_PLACE(message, message);
#undef SAME_PLACE
static_assert(abi::kColorArgb == NVTX_COLOR_ARGB);
static_assert(abi::kMessageAscii == NVTX_MESSAGE_TYPE_ASCII);
static_assert(abi::kMessageUnicode == NVTX_MESSAGE_TYPE_UNICODE);
static_assert(abi::kMessageRegistered == NVTX_MESSAGE_TYPE_REGISTERED);
static_assert(abi::kNoPushPopTracking == NVTX_NO_PUSH_POP_TRACKING);
static_assert(abi::kExportCallbacks == unsigned{NVTX_ETID_CALLBACKS});
static_assert(abi::kModuleCore == NVTX_CB_MODULE_CORE && abi::kModuleCore2 == NVTX_CB_MODULE_CORE2);
static_assert(sizeof(abi::ExportCallbacks) == sizeof(NvtxExportTableCallbacks));
static_assert(abi::mark_ex == unsigned{NVTX_CBID_CORE_MarkEx} &&
              abi::mark_a == unsigned{NVTX_CBID_CORE_MarkA});
static_assert(abi::range_start_w == unsigned{NVTX_CBID_CORE_RangeStartW});
static_assert(abi::range_end == unsigned{NVTX_CBID_CORE_RangeEnd});
static_assert(abi::range_push_ex == unsigned{NVTX_CBID_CORE_RangePushEx});
static_assert(abi::range_pop == unsigned{NVTX_CBID_CORE_RangePop});
static_assert(abi::name_os_thread_w == unsigned{NVTX_CBID_CORE_NameOsThreadW});
static_assert(abi::domain_mark_ex == unsigned{NVTX_CBID_CORE2_DomainMarkEx});
static_assert(abi::domain_range_push_ex == unsigned{NVTX_CBID_CORE2_DomainRangePushEx});
static_assert(abi::domain_range_pop == unsigned{NVTX_CBID_CORE2_DomainRangePop});
static_assert(abi::domain_name_category_a == unsigned{NVTX_CBID_CORE2_DomainNameCategoryA});
static_assert(abi::domain_register_string_w == unsigned{NVTX_CBID_CORE2_DomainRegisterStringW});
static_assert(abi::domain_create_a == unsigned{NVTX_CBID_CORE2_DomainCreateA});
static_assert(abi::domain_destroy == unsigned{NVTX_CBID_CORE2_DomainDestroy});
static_assert(abi::initialize == unsigned{NVTX_CBID_CORE2_Initialize});

nvtxEventAttributes_t attributes(const Event& event) {
    nvtxEventAttributes_t a{};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.category = event.category;
    a.colorType = event.color != 0 ? NVTX_COLOR_ARGB : NVTX_COLOR_UNKNOWN;
    a.color = event.color;
    if (event.registered != nullptr) {
        a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        a.message.registered = static_cast<nvtxStringHandle_t>(event.registered);
    } else if (event.wide != nullptr) {
        a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
        a.message.unicode = event.wide;
    } else if (event.text != nullptr) {
        a.messageType = NVTX_MESSAGE_TYPE_ASCII;
        a.message.ascii = event.text;
    }
    return a;
}

nvtxDomainHandle_t handle(void* domain) {
    return static_cast<nvtxDomainHandle_t>(domain);
}

}  // namespace

void mark_a(const char* text) {
    nvtxMarkA(text);
}
void mark_w(const wchar_t* text) {
    nvtxMarkW(text);
}
void mark_ex(const Event& event) {
    const auto a = attributes(event);
    nvtxMarkEx(&a);
}
int push_a(const char* text) {
    return nvtxRangePushA(text);
}
int push_w(const wchar_t* text) {
    return nvtxRangePushW(text);
}
int push_ex(const Event& event) {
    const auto a = attributes(event);
    return nvtxRangePushEx(&a);
}
int pop() {
    return nvtxRangePop();
}
std::uint64_t start_a(const char* text) {
    return nvtxRangeStartA(text);
}
std::uint64_t start_w(const wchar_t* text) {
    return nvtxRangeStartW(text);
}
std::uint64_t start_ex(const Event& event) {
    const auto a = attributes(event);
    return nvtxRangeStartEx(&a);
}
void end(std::uint64_t id) {
    nvtxRangeEnd(id);
}
void name_category_a(std::uint32_t category, const char* name) {
    nvtxNameCategoryA(category, name);
}
void name_category_w(std::uint32_t category, const wchar_t* name) {
    nvtxNameCategoryW(category, name);
}
void name_thread_a(std::uint32_t tid, const char* name) {
    nvtxNameOsThreadA(tid, name);
}
void name_thread_w(std::uint32_t tid, const wchar_t* name) {
    nvtxNameOsThreadW(tid, name);
}

void* domain_create_a(const char* name) {
    return nvtxDomainCreateA(name);
}
void* domain_create_w(const wchar_t* name) {
    return nvtxDomainCreateW(name);
}
void domain_destroy(void* domain) {
    nvtxDomainDestroy(handle(domain));
}
void* register_a(void* domain, const char* text) {
    return nvtxDomainRegisterStringA(handle(domain), text);
}
void* register_w(void* domain, const wchar_t* text) {
    return nvtxDomainRegisterStringW(handle(domain), text);
}
void domain_mark(void* domain, const Event& event) {
    const auto a = attributes(event);
    nvtxDomainMarkEx(handle(domain), &a);
}
int domain_push(void* domain, const Event& event) {
    const auto a = attributes(event);
    return nvtxDomainRangePushEx(handle(domain), &a);
}
int domain_pop(void* domain) {
    return nvtxDomainRangePop(handle(domain));
}
std::uint64_t domain_start(void* domain, const Event& event) {
    const auto a = attributes(event);
    return nvtxDomainRangeStartEx(handle(domain), &a);
}
void domain_end(void* domain, std::uint64_t id) {
    nvtxDomainRangeEnd(handle(domain), id);
}
void domain_name_category_a(void* domain, std::uint32_t category, const char* name) {
    nvtxDomainNameCategoryA(handle(domain), category, name);
}
void domain_name_category_w(void* domain, std::uint32_t category, const wchar_t* name) {
    nvtxDomainNameCategoryW(handle(domain), category, name);
}

}  // namespace nvtx_calls
