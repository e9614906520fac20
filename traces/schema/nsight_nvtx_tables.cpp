// Nsight Systems' tables of a program's own NVTX annotations (schema 3.25.0).
#include <array>
#include <bit>

#include "traces/schema/nsight_columns.h"
#include "traces/schema/row_access.h"
#include "traces/schema/schema.h"

namespace shardscope::traces {

namespace {

template <auto Member>
struct OfRange {
    auto operator()(const NvtxRow& row) const { return row.range.*Member; }
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
    kDomain,
    SchemaColumn{"schemaId", kInt, "id", "What payloads refer to; 1 << 24 and above."},
    SchemaColumn{"name", kText, "", "Its name."},
    SchemaColumn{"type", kInt, "", "NVTX's type of schema: 1 static, 2 dynamic, 3 union."},
    SchemaColumn{"flags", kInt, "", "NVTX's flags."},
    SchemaColumn{"numEntries", kInt, "count", "Entries."},
    SchemaColumn{"payloadSize", kInt, "bytes", "Size of a payload."},
    SchemaColumn{"alignTo", kInt, "bytes", "Alignment of entries."},
};

constexpr std::array kSchemaEntries = {
    kDomainNN,
    SchemaColumn{"schemaId", kIntNN, "id", "NVTX_PAYLOAD_SCHEMAS.schemaId"},
    kIndex,
    SchemaColumn{"flags", kInt, "", "NVTX's flags; NULL for 0."},
    SchemaColumn{"type", kInt, "", "NVTX's type: 5 int, 18 uint64, 22 size_t; from 1 << 24 on a schema."},
    SchemaColumn{"name", kText, "", "\"Message size [bytes]\"."},
    SchemaColumn{"description", kText, "", "What it is."},
    SchemaColumn{"arrayOrUnionDetail", kInt, "", "Length of an array, or the entry that holds it."},
    SchemaColumn{"offset", kInt, "bytes", "Place in the payload; NULL for 0."},
};

constexpr std::array kEnumsOfPayloads = {
    kDomain,
    SchemaColumn{"schemaId", kInt, "id", "What entries refer to as their type."},
    SchemaColumn{"name", kText, "", "Its name."},
    SchemaColumn{"numEntries", kInt, "count", "Entries."},
    SchemaColumn{"size", kInt, "bytes", "Size of a value."},
};

constexpr std::array kEnumEntries = {
    kDomainNN,
    SchemaColumn{"schemaId", kIntNN, "id", "NVTX_PAYLOAD_ENUMS.schemaId"},
    kIndex,
    SchemaColumn{"name", kText, "", "Name of the value."},
    SchemaColumn{"value", kInt, "", "The value; NULL for 0."},
    SchemaColumn{"isFlag", kInt, "0/1", "1: it can be combined with others."},
};

constexpr std::array kScopes = {
    kDomain,
    SchemaColumn{"scopeId", kInt, "id", "The scope."},
    SchemaColumn{"parentScopeId", kInt, "id", "The scope around it."},
    SchemaColumn{"path", kText, "", "Its name."},
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

}  // namespace shardscope::traces
