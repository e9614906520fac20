// The backend without any header of the CUDA Toolkit: a module's tables of function pointers, filled by the
// library that NVTX_INJECTION64_PATH names, as NVTX does at the first call.
#include "profiler/bench/nvtx_tables.h"
#include "tests/profiler/nvtx_calls.h"

namespace nvtx_calls {
namespace {

namespace abi = shardscope::profiler::nvtx;

using abi::call;
using abi::Tables;

Tables& tables() {
    static Tables made;
    return made;
}

template <typename R, typename... A>
R core(abi::CoreId id, A... arguments) {
    return call<R>(tables().core[id], arguments...);
}
template <typename R, typename... A>
R payload(abi::PayloadId id, A... arguments) {
    return call<R>(reinterpret_cast<abi::Function>(tables().payload[id]), arguments...);
}
template <typename R, typename... A>
R core2(abi::Core2Id id, A... arguments) {
    return call<R>(tables().core2[id], arguments...);
}

static_assert(sizeof(abi::PayloadData) == sizeof(Payload));
const abi::PayloadData* data_of(const std::vector<Payload>& payloads) {
    return reinterpret_cast<const abi::PayloadData*>(payloads.data());
}

abi::EventAttributes attributes(const Event& event) {
    abi::EventAttributes a{};
    a.payload_type = event.value_type;
    a.payload = event.value;
    if (!event.payloads.empty()) {
        a.payload_type = abi::kPayloadTypeExtended;
        a.reserved = static_cast<std::int32_t>(event.payloads.size());
        a.payload = reinterpret_cast<std::uintptr_t>(event.payloads.data());
    }
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

void initialize() {
    core2<void>(abi::initialize, static_cast<const void*>(nullptr));
}
void* resource_create(void* domain, const char* name) {
    return core2<void*>(abi::domain_resource_create, domain, static_cast<const void*>(name));
}
void resource_destroy(void* resource) {
    core2<void>(abi::domain_resource_destroy, resource);
}

std::uint64_t register_schema(void* domain, const Schema& schema) {
    std::vector<abi::SchemaEntry> entries;
    for (const Schema::Entry& e : schema.entries) {
        entries.push_back({e.flags, e.type, e.name, e.description, e.detail, e.offset, nullptr, nullptr});
    }
    abi::SchemaAttributes a{};
    a.fields = abi::kSchemaName | abi::kSchemaType | abi::kSchemaFlags | abi::kSchemaEntries |
               abi::kSchemaEntryCount | abi::kSchemaAlign | (schema.size != 0 ? abi::kSchemaSize : 0) |
               (schema.id != 0 ? abi::kSchemaId : 0);
    a.name = schema.name;
    a.type = schema.type;
    a.flags = schema.flags;
    a.entries = entries.data();
    a.entry_count = entries.size();
    a.static_size = schema.size;
    a.align = schema.align;
    a.id = schema.id;
    return payload<std::uint64_t>(abi::payload_schema_register, domain,
                                  static_cast<const abi::SchemaAttributes*>(&a));
}
std::uint64_t register_enum(void* domain, const Enumeration& enumeration) {
    std::vector<abi::EnumEntry> entries;
    for (const Enumeration::Entry& e : enumeration.entries) {
        entries.push_back({e.name, e.value, static_cast<std::int8_t>(e.is_flag)});
    }
    abi::EnumAttributes a{};
    a.fields = abi::kEnumName | abi::kEnumEntries | abi::kEnumEntryCount | abi::kEnumSize |
               (enumeration.id != 0 ? abi::kEnumId : 0);
    a.name = enumeration.name;
    a.entries = entries.data();
    a.entry_count = entries.size();
    a.size = enumeration.size;
    a.id = enumeration.id;
    return payload<std::uint64_t>(abi::payload_enum_register, domain,
                                  static_cast<const abi::EnumAttributes*>(&a));
}
std::uint64_t register_scope(void* domain, const char* path, std::uint64_t parent, std::uint64_t id) {
    const abi::ScopeAttributes a{sizeof a, path, parent, id};
    return payload<std::uint64_t>(abi::scope_register, domain, &a);
}
void mark_payload(void* domain, const std::vector<Payload>& payloads) {
    payload<void>(abi::mark_payload, domain, data_of(payloads), payloads.size());
}
int push_payload(void* domain, const std::vector<Payload>& payloads) {
    return payload<int>(abi::range_push_payload, domain, data_of(payloads), payloads.size());
}
int pop_payload(void* domain, const std::vector<Payload>& payloads) {
    return payload<int>(abi::range_pop_payload, domain, data_of(payloads), payloads.size());
}
std::uint64_t start_payload(void* domain, const std::vector<Payload>& payloads) {
    return payload<std::uint64_t>(abi::range_start_payload, domain, data_of(payloads), payloads.size());
}
void end_payload(void* domain, std::uint64_t id, const std::vector<Payload>& payloads) {
    payload<void>(abi::range_end_payload, domain, id, data_of(payloads), payloads.size());
}
bool domain_is_enabled(void* domain) {
    return payload<std::uint8_t>(abi::domain_is_enabled, domain) != 0;
}
std::int64_t timestamp() {
    return payload<std::int64_t>(abi::timestamp_get);
}

}  // namespace nvtx_calls
