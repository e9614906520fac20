// Nsight Systems' tables of a program's own NVTX annotations (schema 3.25.0).
#include <array>
#include <bit>

#include "traces/schema/nsight_columns.h"
#include "traces/schema/row_access.h"
#include "traces/schema/schema.h"
#include "traces/schema/stored_rows.h"

namespace shardscope::traces::schema {

namespace {

template <auto Member>
struct OfRange {
    auto operator()(const NvtxRow& row) const { return row.range.*Member; }
};

// A member of a member; by reference, since a text must live as long as the row.
template <auto Outer, auto Inner>
struct Nested {
    const auto& operator()(const typename access::Owner<decltype(Outer)>::type& row) const {
        return row.*Outer.*Inner;
    }
};
template <auto Member>
using OfSchema = Nested<&StoredSchemaRow::schema, Member>;
template <auto Member>
using OfSchemaEntry = Nested<&SchemaEntryRow::entry, Member>;
template <auto Member>
using OfEnum = Nested<&StoredEnumRow::enumeration, Member>;
template <auto Member>
using OfEnumEntry = Nested<&EnumEntryRow::entry, Member>;
template <auto Member>
using OfScope = Nested<&StoredScopeRow::scope, Member>;
struct SchemaSize {
    std::size_t operator()(const StoredSchemaRow& row) const { return row.schema.entries.size(); }
};
struct EnumSize {
    std::size_t operator()(const StoredEnumRow& row) const { return row.enumeration.entries.size(); }
};

// The payload, in the column of its type.
template <RangePayload::Type Type>
struct Payload {
    auto operator()(const NvtxRow& row) const {
        using enum RangePayload::Type;
        const RangePayload& p = row.range.payload;
        const auto low = static_cast<std::uint32_t>(p.bits);
        const auto if_its = [&](auto value) { return p.type == Type ? std::optional(value) : std::nullopt; };
        if constexpr (Type == real64) return if_its(std::bit_cast<double>(p.bits));
        if constexpr (Type == real32) return if_its(std::bit_cast<float>(low));
        if constexpr (Type == uint32) return if_its(low);
        if constexpr (Type == int32) return if_its(static_cast<std::int32_t>(low));
        if constexpr (Type == uint64 || Type == int64) return if_its(static_cast<std::int64_t>(p.bits));
    }
};
struct ExternalId {
    std::optional<std::int64_t> operator()(const NvtxRow& row) const {
        return row.range.external_id != 0 ? row.range.external_id
                                          : Payload<RangePayload::Type::uint64>()(row);
    }
};
struct Module {
    std::optional<std::int64_t> operator()(const NvtxRow& row) const {
        return row.range.module >= 0 ? row.range.module : Payload<RangePayload::Type::int64>()(row);
    }
};

struct Binary {
    static void get(SqlValue cell, const void* row) {
        const std::string& binary = static_cast<const NvtxRow*>(row)->range.binary;
        if (!binary.empty()) cell.blob(binary);
    }
    bool operator()(const NvtxRow& row) const { return !row.range.binary.empty(); }
};
constexpr ColumnAccess kBinary = {.get = Binary::get, .any = access::any<&NvtxRow::range, Binary>};

constexpr std::array kNvtx = {
    with(kStart, from<OfRange<&RangeRow::start>{}>),
    SchemaColumn{"end", kInt, "ns", "When the range was closed; NULL for a mark.",
                 from<OfRange<&RangeRow::end>{}>},
    SchemaColumn{"eventType", kIntNN, "enum",
                 "59 push/pop, 60 start/end, 34 mark, 75 domain. ENUM_NSYS_EVENT_TYPE",
                 from<OfRange<&RangeRow::event_type>{}>},
    SchemaColumn{"rangeId", kInt, "id", "Number of a start/end range; else NULL.",
                 rarely(unless_negative<&NvtxRow::range_id>)},
    SchemaColumn{"category", kInt, "id", "The program's own category.",
                 rarely(from<OfRange<&RangeRow::category>{}>)},
    SchemaColumn{"color", kInt, "ARGB", "Colour that the program requested.",
                 rarely(from<OfRange<&RangeRow::color>{}>)},
    SchemaColumn{"text", kText, "", "The range's name; the same text as textId's.", from<&NvtxRow::text>},
    with(kTid, from<OfRange<&RangeRow::global_tid>{}>),
    SchemaColumn{"endGlobalTid", kInt, "id", "The closing thread where that is another one.",
                 rarely(from<OfRange<&RangeRow::end_global_tid>{}>)},
    SchemaColumn{"textId", kInt, "id", "The range's name. StringIds.id", from<OfRange<&RangeRow::text>{}>},
    SchemaColumn{"domainId", kInt, "id",
                 "0 the default domain, 1 NCCL, then others; named by rows of type 75.",
                 from<&NvtxRow::domain>},
    SchemaColumn{"uint64Value", kInt, "", "Payload of that type.", rarely(from<ExternalId{}>)},
    SchemaColumn{"int64Value", kInt, "id", "Payload; in our own ranges the module. SHARD_MODULES.id",
                 from<Module{}>},
    SchemaColumn{"doubleValue", kReal, "", "Payload of that type.",
                 rarely(from<Payload<RangePayload::Type::real64>{}>)},
    SchemaColumn{"uint32Value", kInt, "", "Payload of that type.",
                 rarely(from<Payload<RangePayload::Type::uint32>{}>)},
    SchemaColumn{"int32Value", kInt, "", "Payload of that type.",
                 rarely(from<Payload<RangePayload::Type::int32>{}>)},
    SchemaColumn{"floatValue", kReal, "", "Payload of that type.",
                 rarely(from<Payload<RangePayload::Type::real32>{}>)},
    SchemaColumn{"jsonTextId", kInt, "id", "Payload as JSON. StringIds.id",
                 rarely(unless_zero<OfRange<&RangeRow::detail>{}>)},
    SchemaColumn{"jsonText", kText, "", "Payload as JSON."},
    SchemaColumn{
        "binaryData", "BLOB", "",
        "Payload of a schema: four integers of 8 bytes (1, NVTX_PAYLOAD_SCHEMAS.schemaId, the payload's "
        "size, 32 + that size), then the payload as the program laid it out.",
        rarely(kBinary)},
};

constexpr SchemaColumn kDomain = {"domainId", kInt, "id", "The domain, as in NVTX_EVENTS."};
constexpr SchemaColumn kDomainNN = {"domainId", kIntNN, "id", "The domain, as in NVTX_EVENTS."};
constexpr SchemaColumn kIndex = {"idx", kIntNN, "", "Place in the schema, from 0."};

constexpr std::array kSchemas = {
    with(kDomain, from<&StoredSchemaRow::domain>),
    SchemaColumn{"schemaId", kInt, "id", "What payloads refer to; 1 << 24 and above.",
                 from<OfSchema<&PayloadSchemaRow::id>{}>},
    SchemaColumn{"name", kText, "", "Its name.", unless_zero<OfSchema<&PayloadSchemaRow::name>{}>},
    SchemaColumn{"type", kInt, "", "NVTX's type of schema: 1 static, 2 dynamic, 3 union.",
                 from<OfSchema<&PayloadSchemaRow::type>{}>},
    SchemaColumn{"flags", kInt, "", "NVTX's flags.", unless_zero<OfSchema<&PayloadSchemaRow::flags>{}>},
    SchemaColumn{"numEntries", kInt, "count", "Entries.", from<SchemaSize{}>},
    SchemaColumn{"payloadSize", kInt, "bytes", "Size of a payload.",
                 from<OfSchema<&PayloadSchemaRow::size>{}>},
    SchemaColumn{"alignTo", kInt, "bytes", "Alignment of entries.",
                 unless_zero<OfSchema<&PayloadSchemaRow::align>{}>},
};

constexpr std::array kSchemaEntries = {
    with(kDomainNN, from<&SchemaEntryRow::domain>),
    SchemaColumn{"schemaId", kIntNN, "id", "NVTX_PAYLOAD_SCHEMAS.schemaId", from<&SchemaEntryRow::schema>},
    with(kIndex, from<&SchemaEntryRow::index>),
    SchemaColumn{"flags", kInt, "", "NVTX's flags; NULL for 0.",
                 unless_zero<OfSchemaEntry<&PayloadSchemaRow::Entry::flags>{}>},
    SchemaColumn{"type", kInt, "", "NVTX's type: 5 int, 18 uint64, 22 size_t; from 1 << 24 on a schema.",
                 from<OfSchemaEntry<&PayloadSchemaRow::Entry::type>{}>},
    SchemaColumn{"name", kText, "", "\"Message size [bytes]\".",
                 unless_zero<OfSchemaEntry<&PayloadSchemaRow::Entry::name>{}>},
    SchemaColumn{"description", kText, "", "What it is.",
                 unless_zero<OfSchemaEntry<&PayloadSchemaRow::Entry::description>{}>},
    SchemaColumn{"arrayOrUnionDetail", kInt, "", "Length of an array, or the entry that holds it.",
                 unless_zero<OfSchemaEntry<&PayloadSchemaRow::Entry::detail>{}>},
    SchemaColumn{"offset", kInt, "bytes", "Place in the payload; NULL for 0.",
                 unless_zero<OfSchemaEntry<&PayloadSchemaRow::Entry::offset>{}>},
};

constexpr std::array kEnumsOfPayloads = {
    with(kDomain, from<&StoredEnumRow::domain>),
    SchemaColumn{"schemaId", kInt, "id", "What entries refer to as their type.",
                 from<OfEnum<&PayloadEnumRow::id>{}>},
    SchemaColumn{"name", kText, "", "Its name.", unless_zero<OfEnum<&PayloadEnumRow::name>{}>},
    SchemaColumn{"numEntries", kInt, "count", "Entries.", from<EnumSize{}>},
    SchemaColumn{"size", kInt, "bytes", "Size of a value.", from<OfEnum<&PayloadEnumRow::size>{}>},
};

constexpr std::array kEnumEntries = {
    with(kDomainNN, from<&EnumEntryRow::domain>),
    SchemaColumn{"schemaId", kIntNN, "id", "NVTX_PAYLOAD_ENUMS.schemaId", from<&EnumEntryRow::enumeration>},
    with(kIndex, from<&EnumEntryRow::index>),
    SchemaColumn{"name", kText, "", "Name of the value.",
                 unless_zero<OfEnumEntry<&PayloadEnumRow::Entry::name>{}>},
    SchemaColumn{"value", kInt, "", "The value; NULL for 0.",
                 unless_zero<OfEnumEntry<&PayloadEnumRow::Entry::value>{}>},
    SchemaColumn{"isFlag", kInt, "0/1", "1: it can be combined with others.",
                 from<OfEnumEntry<&PayloadEnumRow::Entry::is_flag>{}>},
};

constexpr std::array kScopes = {
    with(kDomain, from<&StoredScopeRow::domain>),
    SchemaColumn{"scopeId", kInt, "id", "The scope.", from<OfScope<&ScopeRow::id>{}>},
    SchemaColumn{"parentScopeId", kInt, "id", "The scope around it.", from<OfScope<&ScopeRow::parent>{}>},
    SchemaColumn{"path", kText, "", "Its name.", from<OfScope<&ScopeRow::path>{}>},
};

constexpr std::array<SchemaTable, 6> kTables = {{
    {"NVTX_EVENTS", "Ranges and marks on host threads, and the names of their domains.", kNvtx},
    {"NVTX_PAYLOAD_SCHEMAS",
     "Layouts of binary payloads, as programs register them. Since schema version 3.",
     kSchemas,
     {},
     3},
    {"NVTX_PAYLOAD_SCHEMA_ENTRIES",
     "The fields of those layouts. Since schema version 3.",
     kSchemaEntries,
     {},
     3},
    {"NVTX_PAYLOAD_ENUMS", "Enumerations in payloads. Since schema version 3.", kEnumsOfPayloads, {}, 3},
    {"NVTX_PAYLOAD_ENUM_ENTRIES", "Their values. Since schema version 3.", kEnumEntries, {}, 3},
    {"NVTX_SCOPES", "Scopes that programs register. Since schema version 3.", kScopes, {}, 3},
}};

}  // namespace

std::span<const SchemaTable> nsight_nvtx_tables() {
    return kTables;
}

}  // namespace shardscope::traces::schema
