// The backend that is a real NVTX program: the CUDA Toolkit's headers. It also compares our declarations of
// NVTX's binary interface with theirs at compile time.
#include <cstddef>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSync.h>

#include "profiler/inject/nvtx_abi.h"
#include "profiler/inject/nvtx_payload_abi.h"
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

// The payload extension.
#define SAME_SIZE(ours, theirs) static_assert(sizeof(abi::ours) == sizeof(theirs))
#define SAME_PLACE(struct_name, ours, theirs_name, theirs) \
    static_assert(offsetof(abi::struct_name, ours) == offsetof(theirs_name, theirs))
SAME_PLACE(EventAttributes, reserved, nvtxEventAttributes_t, reserved0);
static_assert(abi::kPayloadTypeExtended == NVTX_PAYLOAD_TYPE_EXT);
static_assert(abi::kPayloadTypeLast == NVTX_PAYLOAD_TYPE_FLOAT);
SAME_SIZE(PayloadData, nvtxPayloadData_t);
SAME_PLACE(PayloadData, schema, nvtxPayloadData_t, schemaId);
SAME_PLACE(PayloadData, size, nvtxPayloadData_t, size);
SAME_PLACE(PayloadData, data, nvtxPayloadData_t, payload);
SAME_SIZE(SchemaEntry, nvtxPayloadSchemaEntry_t);
SAME_PLACE(SchemaEntry, flags, nvtxPayloadSchemaEntry_t, flags);
SAME_PLACE(SchemaEntry, type, nvtxPayloadSchemaEntry_t, type);
SAME_PLACE(SchemaEntry, name, nvtxPayloadSchemaEntry_t, name);
SAME_PLACE(SchemaEntry, description, nvtxPayloadSchemaEntry_t, description);
SAME_PLACE(SchemaEntry, detail, nvtxPayloadSchemaEntry_t, arrayOrUnionDetail);
SAME_PLACE(SchemaEntry, offset, nvtxPayloadSchemaEntry_t, offset);
SAME_SIZE(SchemaAttributes, nvtxPayloadSchemaAttr_t);
SAME_PLACE(SchemaAttributes, name, nvtxPayloadSchemaAttr_t, name);
SAME_PLACE(SchemaAttributes, type, nvtxPayloadSchemaAttr_t, type);
SAME_PLACE(SchemaAttributes, flags, nvtxPayloadSchemaAttr_t, flags);
SAME_PLACE(SchemaAttributes, entries, nvtxPayloadSchemaAttr_t, entries);
SAME_PLACE(SchemaAttributes, entry_count, nvtxPayloadSchemaAttr_t, numEntries);
SAME_PLACE(SchemaAttributes, static_size, nvtxPayloadSchemaAttr_t, payloadStaticSize);
SAME_PLACE(SchemaAttributes, align, nvtxPayloadSchemaAttr_t, packAlign);
SAME_PLACE(SchemaAttributes, id, nvtxPayloadSchemaAttr_t, schemaId);
static_assert(abi::kSchemaName == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME &&
              abi::kSchemaType == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE &&
              abi::kSchemaFlags == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS &&
              abi::kSchemaEntries == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES &&
              abi::kSchemaEntryCount == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES &&
              abi::kSchemaSize == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE &&
              abi::kSchemaAlign == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT &&
              abi::kSchemaId == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID);
SAME_SIZE(EnumEntry, nvtxPayloadEnum_t);
SAME_PLACE(EnumEntry, name, nvtxPayloadEnum_t, name);
SAME_PLACE(EnumEntry, value, nvtxPayloadEnum_t, value);
SAME_PLACE(EnumEntry, is_flag, nvtxPayloadEnum_t, isFlag);
SAME_SIZE(EnumAttributes, nvtxPayloadEnumAttr_t);
SAME_PLACE(EnumAttributes, name, nvtxPayloadEnumAttr_t, name);
SAME_PLACE(EnumAttributes, entries, nvtxPayloadEnumAttr_t, entries);
SAME_PLACE(EnumAttributes, entry_count, nvtxPayloadEnumAttr_t, numEntries);
SAME_PLACE(EnumAttributes, size, nvtxPayloadEnumAttr_t, sizeOfEnum);
SAME_PLACE(EnumAttributes, id, nvtxPayloadEnumAttr_t, schemaId);
static_assert(abi::kEnumName == NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME &&
              abi::kEnumEntries == NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES &&
              abi::kEnumEntryCount == NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES &&
              abi::kEnumSize == NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE &&
              abi::kEnumId == NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID);
SAME_SIZE(ScopeAttributes, nvtxScopeAttr_t);
SAME_PLACE(ScopeAttributes, path, nvtxScopeAttr_t, path);
SAME_PLACE(ScopeAttributes, parent, nvtxScopeAttr_t, parentScope);
SAME_PLACE(ScopeAttributes, id, nvtxScopeAttr_t, scopeId);
SAME_SIZE(TimeDomainAttributes, nvtxTimeDomainAttr_t);
SAME_PLACE(TimeDomainAttributes, id, nvtxTimeDomainAttr_t, timeDomainId);
static_assert(abi::kEntryPointer == NVTX_PAYLOAD_ENTRY_FLAG_POINTER &&
              abi::kEntryArrayFixed == NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE &&
              abi::kEntryMessage == NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE);
static_assert(abi::kTypeChar == NVTX_PAYLOAD_ENTRY_TYPE_CHAR &&
              abi::kTypeCString == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING &&
              abi::kTypeCStringUtf8 == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8 &&
              abi::kTypeRegisteredString == NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE);
static_assert(abi::kDynamicIds == NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
static_assert(abi::kPayloadModule == NVTX_EXT_PAYLOAD_MODULEID);
SAME_SIZE(ExtensionModule, nvtxExtModuleInfo_t);
SAME_PLACE(ExtensionModule, module, nvtxExtModuleInfo_t, moduleId);
SAME_PLACE(ExtensionModule, segments, nvtxExtModuleInfo_t, segments);
SAME_SIZE(ExtensionSegment, nvtxExtModuleSegment_t);
SAME_PLACE(ExtensionSegment, slot_count, nvtxExtModuleSegment_t, slotCount);
SAME_PLACE(ExtensionSegment, slots, nvtxExtModuleSegment_t, functionSlots);
static_assert(abi::payload_schema_register == NVTX3EXT_CBID_nvtxPayloadSchemaRegister &&
              abi::payload_enum_register == NVTX3EXT_CBID_nvtxPayloadEnumRegister &&
              abi::mark_payload == NVTX3EXT_CBID_nvtxMarkPayload &&
              abi::range_push_payload == NVTX3EXT_CBID_nvtxRangePushPayload &&
              abi::range_pop_payload == NVTX3EXT_CBID_nvtxRangePopPayload &&
              abi::range_start_payload == NVTX3EXT_CBID_nvtxRangeStartPayload &&
              abi::range_end_payload == NVTX3EXT_CBID_nvtxRangeEndPayload &&
              abi::domain_is_enabled == NVTX3EXT_CBID_nvtxDomainIsEnabled &&
              abi::timestamp_get == NVTX3EXT_CBID_nvtxTimestampGet &&
              abi::time_domain_register == NVTX3EXT_CBID_nvtxTimeDomainRegister &&
              abi::scope_register == NVTX3EXT_CBID_nvtxScopeRegister &&
              abi::event_batch_submit == NVTX3EXT_CBID_nvtxEventBatchSubmit);
#undef SAME_PLACE
#undef SAME_SIZE

static_assert(sizeof(nvtxPayloadData_t) == sizeof(Payload));
const nvtxPayloadData_t* data_of(const std::vector<Payload>& payloads) {
    return reinterpret_cast<const nvtxPayloadData_t*>(payloads.data());
}

nvtxEventAttributes_t attributes(const Event& event) {
    nvtxEventAttributes_t a{};
    a.payloadType = event.value_type;
    a.payload.ullValue = event.value;
    if (!event.payloads.empty()) {
        a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
        a.reserved0 = static_cast<std::int32_t>(event.payloads.size());
        a.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(event.payloads.data());
    }
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

void initialize() {
    nvtxInitialize(nullptr);
}
void* resource_create(void* domain, const char* name) {
    nvtxResourceAttributes_t a{};
    a.version = NVTX_VERSION;
    a.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
    a.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
    a.identifier.pValue = &a;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = name;
    return nvtxDomainResourceCreate(handle(domain), &a);
}
void resource_destroy(void* resource) {
    nvtxDomainResourceDestroy(static_cast<nvtxResourceHandle_t>(resource));
}

std::uint64_t register_schema(void* domain, const Schema& schema) {
    std::vector<nvtxPayloadSchemaEntry_t> entries;
    for (const Schema::Entry& e : schema.entries) {
        entries.push_back({e.flags, e.type, e.name, e.description, e.detail, e.offset, nullptr, nullptr});
    }
    nvtxPayloadSchemaAttr_t a{};
    a.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT;
    if (schema.size != 0) a.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
    if (schema.id != 0) a.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    a.name = schema.name;
    a.type = schema.type;
    a.flags = schema.flags;
    a.entries = entries.data();
    a.numEntries = entries.size();
    a.payloadStaticSize = schema.size;
    a.packAlign = schema.align;
    a.schemaId = schema.id;
    return nvtxPayloadSchemaRegister(handle(domain), &a);
}
std::uint64_t register_enum(void* domain, const Enumeration& enumeration) {
    std::vector<nvtxPayloadEnum_t> entries;
    for (const Enumeration::Entry& e : enumeration.entries) {
        entries.push_back({e.name, e.value, static_cast<std::int8_t>(e.is_flag)});
    }
    nvtxPayloadEnumAttr_t a{};
    a.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                  NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
    if (enumeration.id != 0) a.fieldMask |= NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
    a.name = enumeration.name;
    a.entries = entries.data();
    a.numEntries = entries.size();
    a.sizeOfEnum = enumeration.size;
    a.schemaId = enumeration.id;
    return nvtxPayloadEnumRegister(handle(domain), &a);
}
std::uint64_t register_scope(void* domain, const char* path, std::uint64_t parent, std::uint64_t id) {
    const nvtxScopeAttr_t a{sizeof a, path, parent, id};
    return nvtxScopeRegister(handle(domain), &a);
}
void mark_payload(void* domain, const std::vector<Payload>& payloads) {
    nvtxMarkPayload(handle(domain), data_of(payloads), payloads.size());
}
int push_payload(void* domain, const std::vector<Payload>& payloads) {
    return nvtxRangePushPayload(handle(domain), data_of(payloads), payloads.size());
}
int pop_payload(void* domain, const std::vector<Payload>& payloads) {
    return nvtxRangePopPayload(handle(domain), data_of(payloads), payloads.size());
}
std::uint64_t start_payload(void* domain, const std::vector<Payload>& payloads) {
    return nvtxRangeStartPayload(handle(domain), data_of(payloads), payloads.size());
}
void end_payload(void* domain, std::uint64_t id, const std::vector<Payload>& payloads) {
    nvtxRangeEndPayload(handle(domain), id, data_of(payloads), payloads.size());
}
bool domain_is_enabled(void* domain) {
    return nvtxDomainIsEnabled(handle(domain)) != 0;
}
std::int64_t timestamp() {
    return nvtxTimestampGet();
}

}  // namespace nvtx_calls
