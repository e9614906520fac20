// Sends layouts and payloads to the reader, which decodes them.
#include "profiler/inject/nvtx_payload.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace shardscope::profiler::inject {
namespace {

// Payloads of one event; further ones are omitted.
constexpr std::size_t kMostPayloads = 64;

// What is needed to read the payloads of a schema. Nodes of a list that only grows.
struct Layout {
    Layout* next;
    std::uint32_t domain;  // name id
    RecordKind kind;
    std::uint64_t id;
    std::uint64_t size;         // 0: given by each payload
    nvtx::SchemaEntry message;  // the entry that is the event's text; type 0: none
};
constinit std::atomic<Layout*> layouts{nullptr};
constinit std::atomic<std::uint64_t> next_id{nvtx::kDynamicIds};

const Layout* find_layout(const Domain& domain, RecordKind kind, std::uint64_t id) {
    for (const Layout* known = layouts.load(std::memory_order_acquire); known != nullptr;
         known = known->next) {
        if (known->id == id && known->domain == domain.name && known->kind == kind) return known;
    }
    return nullptr;
}

void remember(const Layout& layout) {
    auto* added = static_cast<Layout*>(std::malloc(sizeof(Layout)));
    if (added == nullptr) return;
    *added = layout;
    added->next = layouts.load(std::memory_order_relaxed);
    while (!layouts.compare_exchange_weak(added->next, added, std::memory_order_release)) {
    }
}

std::uint32_t optional_name(const char* text) {
    return text == nullptr ? 0 : name_id(narrow_text(text));
}

// Memory for a record passed to tell(), freed at the end of the scope. Null if the record would be too long.
template <typename Record, typename Entry>
class Building {
  public:
    Building(RecordKind kind, std::uint32_t name, std::size_t entries)
        : bytes_(sizeof(Record) + entries * sizeof(Entry)) {
        if (entries > kMaxRecord / sizeof(Entry) || bytes_ > kMaxRecord) return;
        memory_ = std::calloc(1, bytes_);
        if (memory_ == nullptr) return;
        record()->header = {static_cast<std::uint16_t>(bytes_), kind, 0, name};
        record()->entries = entries;
    }
    ~Building() { std::free(memory_); }
    Building(const Building&) = delete;
    Building& operator=(const Building&) = delete;

    explicit operator bool() const { return memory_ != nullptr; }
    Record* operator->() { return record(); }
    Entry& entry(std::size_t i) { return reinterpret_cast<Entry*>(record() + 1)[i]; }
    void tell() { inject::tell(&record()->header, bytes_); }

  private:
    Record* record() { return static_cast<Record*>(memory_); }
    std::size_t bytes_;
    void* memory_ = nullptr;
};

// Written out for the same reason as copy_text().
void copy_bytes(void* to, const void* from, std::size_t size) {
    copy_text(to, {static_cast<const char*>(from), size});
}

// The message inside a payload. Pointers in it are the program's own and hold during the call.
void take_message(const nvtx::SchemaEntry& entry, const nvtx::PayloadData& payload, Event& event) {
    const std::size_t size = payload.size;
    if (payload.data == nullptr || entry.offset > size) return;
    const char* at = static_cast<const char*>(payload.data) + entry.offset;
    const std::size_t left = size - entry.offset;
    const char* pointer = nullptr;
    if (left >= sizeof pointer) std::memcpy(&pointer, at, sizeof pointer);
    switch (entry.type) {
        case nvtx::kTypeRegisteredString:
            event.name = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer));
            break;
        case nvtx::kTypeCString:
        case nvtx::kTypeCStringUtf8:
            event.text = narrow_text(pointer);
            break;
        case nvtx::kTypeChar:
            if ((entry.flags & nvtx::kEntryArrayMask) == nvtx::kEntryArrayFixed) {
                const std::size_t most = entry.detail < left ? entry.detail : left;
                event.text = {at, ::strnlen(at, most < kMaxText ? most : kMaxText - 1)};
            } else if (entry.flags & nvtx::kEntryPointer) {
                event.text = narrow_text(pointer);
            }
            break;
        default:
            break;
    }
}

}  // namespace

std::uint64_t register_schema(const Domain& domain, const nvtx::SchemaAttributes* attributes) {
    if (attributes == nullptr) return 0;
    const nvtx::SchemaAttributes& a = *attributes;
    constexpr std::uint64_t kNeeded = nvtx::kSchemaType | nvtx::kSchemaEntries | nvtx::kSchemaEntryCount;
    if ((a.fields & kNeeded) != kNeeded || (a.entries == nullptr && a.entry_count != 0)) return 0;
    const bool chosen = (a.fields & nvtx::kSchemaId) && a.id != 0;
    const std::uint64_t id = chosen ? a.id : next_id.fetch_add(1, std::memory_order_relaxed);
    if (find_layout(domain, RecordKind::payload_schema, id) != nullptr) return id;
    Layout layout{nullptr, domain.name, RecordKind::payload_schema, id, 0, {}};
    if (a.fields & nvtx::kSchemaSize) layout.size = a.static_size;
    const std::uint32_t name = a.fields & nvtx::kSchemaName ? optional_name(a.name) : 0;
    Building<SchemaRecord, SchemaEntry> record(RecordKind::payload_schema, name, a.entry_count);
    if (!record) return id;
    record->domain = domain.name;
    record->id = id;
    record->type = a.type;
    record->flags = a.fields & nvtx::kSchemaFlags ? a.flags : 0;
    record->size = layout.size;
    record->align = a.fields & nvtx::kSchemaAlign ? a.align : 0;
    for (std::size_t i = 0; i < a.entry_count; ++i) {
        const nvtx::SchemaEntry& e = a.entries[i];
        record.entry(i) = {
            optional_name(e.name), optional_name(e.description), e.type, e.flags, e.detail, e.offset};
        if (e.flags & nvtx::kEntryMessage) layout.message = e;
    }
    record.tell();
    remember(layout);
    return id;
}

std::uint64_t register_enum(const Domain& domain, const nvtx::EnumAttributes* attributes) {
    if (attributes == nullptr) return 0;
    const nvtx::EnumAttributes& a = *attributes;
    constexpr std::uint64_t kNeeded = nvtx::kEnumEntries | nvtx::kEnumEntryCount;
    if ((a.fields & kNeeded) != kNeeded || (a.entries == nullptr && a.entry_count != 0)) return 0;
    const bool chosen = (a.fields & nvtx::kEnumId) && a.id != 0;
    const std::uint64_t id = chosen ? a.id : next_id.fetch_add(1, std::memory_order_relaxed);
    if (find_layout(domain, RecordKind::payload_enum, id) != nullptr) return id;
    const std::uint32_t name = a.fields & nvtx::kEnumName ? optional_name(a.name) : 0;
    Building<EnumRecord, EnumEntry> record(RecordKind::payload_enum, name, a.entry_count);
    if (!record) return id;
    record->domain = domain.name;
    record->id = id;
    record->size = a.fields & nvtx::kEnumSize ? a.size : 0;
    for (std::size_t i = 0; i < a.entry_count; ++i) {
        const nvtx::EnumEntry& e = a.entries[i];
        record.entry(i) = {optional_name(e.name), e.is_flag != 0 ? 1u : 0u, e.value};
    }
    record.tell();
    remember({nullptr, domain.name, RecordKind::payload_enum, id, 0, {}});
    return id;
}

std::uint64_t register_scope(const Domain& domain, const nvtx::ScopeAttributes* attributes) {
    if (attributes == nullptr || attributes->struct_size < sizeof(nvtx::ScopeAttributes)) return 0;
    const std::uint64_t id =
        attributes->id != 0 ? attributes->id : next_id.fetch_add(1, std::memory_order_relaxed);
    if (find_layout(domain, RecordKind::scope, id) != nullptr) return id;
    ScopeRecord record{};
    record.header = {sizeof record, RecordKind::scope, 0, optional_name(attributes->path)};
    record.domain = domain.name;
    record.id = id;
    record.parent = attributes->parent;
    tell(&record.header, sizeof record);
    remember({nullptr, domain.name, RecordKind::scope, id, 0, {}});
    return id;
}

Event describe(const Domain& domain, Payloads payloads) {
    Event event;
    event.payloads = payloads;
    for (std::size_t i = 0; i < payloads.count; ++i) {
        const Layout* layout = find_layout(domain, RecordKind::payload_schema, payloads.data[i].schema);
        if (layout == nullptr || layout->message.type == 0) continue;
        nvtx::PayloadData payload = payloads.data[i];
        if (payload.size == SIZE_MAX) payload.size = layout->size;
        take_message(layout->message, payload, event);
    }
    return event;
}

// A payload that is too large for a chunk, or of unknown size, is omitted and counted.
void write_payloads(ThreadState& thread, const Domain& domain, Payloads payloads) {
    for (std::size_t i = 0; i < payloads.count; ++i) {
        const nvtx::PayloadData& payload = payloads.data[i];
        if (payload.data == nullptr || payload.size == 0) continue;
        std::size_t size = payload.size;
        if (size == SIZE_MAX) {
            const Layout* layout = find_layout(domain, RecordKind::payload_schema, payload.schema);
            if (layout != nullptr && layout->size != 0) size = layout->size;
        }
        if (size > kMaxRecord - sizeof(PayloadRecord) - 8 || i >= kMostPayloads) {
            thread.writer.leave_out();
            continue;
        }
        auto* r = thread.writer.begin<PayloadRecord>(RecordKind::payload, 0,
                                                     sizeof(PayloadRecord) + (size + 8) / 8 * 8);
        if (r == nullptr) return;
        r->schema = payload.schema;
        r->size = size;
        copy_bytes(r + 1, payload.data, size);
        thread.writer.publish();  // the event may have to go to the next chunk
    }
}

}  // namespace shardscope::profiler::inject
