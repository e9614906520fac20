#include "trainer/executor/nccl_payloads.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/schema/rows.h"
#include "traces/store/sink.h"

namespace shardscope::trainer::executor {
namespace {

using traces::schema::Operation;

constexpr std::uint64_t kFirstSchema = 1u << 24;
constexpr std::uint64_t kReductions = kFirstSchema + 20;
constexpr std::uint64_t kInt = 5, kUint64 = 18, kSize = 22;  // NVTX's types of entries
constexpr std::uint64_t kStaticSchema = 1;
constexpr std::int32_t kSum = 0, kAverage = 4;
constexpr std::string_view kReductionNames[] = {"Sum", "Product", "Max", "Min", "Avg"};

struct Argument {
    std::string_view name;
    std::uint64_t type;
};

struct Schema {
    Operation operation;
    std::uint64_t id, size;
    std::optional<Argument> argument;
};

constexpr Argument kReduction = {"Reduction operation", kReductions}, kRoot = {"Root", kInt};
constexpr std::array<Schema, 4> kSchemas = {{
    {Operation::all_gather, kFirstSchema + 4, 16, std::nullopt},
    {Operation::all_reduce, kFirstSchema + 5, 24, kReduction},
    {Operation::broadcast, kFirstSchema + 6, 24, kRoot},
    {Operation::reduce_scatter, kFirstSchema + 7, 24, kReduction},
}};

}  // namespace

NcclPayload nccl_payload(Operation operation, plan::CommunicatorId communicator, int ranks,
                         std::int64_t full_bytes, int divisor) {
    NcclPayload payload;
    for (const Schema& schema : kSchemas) {
        if (schema.operation != operation) continue;
        payload.schema = schema.id;
        payload.size = schema.size;
    }
    const bool in_parts = operation == Operation::all_gather || operation == Operation::reduce_scatter;
    const bool reduces = operation == Operation::all_reduce || operation == Operation::reduce_scatter;
    payload.value.communicator = static_cast<std::uint64_t>(communicator);
    payload.value.bytes = static_cast<std::uint64_t>(in_parts ? full_bytes / ranks : full_bytes);
    if (reduces) payload.value.argument = divisor == ranks && ranks > 1 ? kAverage : kSum;
    return payload;
}

std::vector<traces::schema::PayloadSchemaRow> nccl_payload_schemas() {
    std::vector<traces::schema::PayloadSchemaRow> rows;
    for (const Schema& schema : kSchemas) {
        traces::schema::PayloadSchemaRow& row = rows.emplace_back();
        row.id = schema.id;
        row.type = kStaticSchema;
        row.size = schema.size;
        row.entries = {{.name = "NCCL communicator ID", .description = "", .type = kUint64},
                       {.name = "Message size [bytes]", .description = "", .type = kSize, .offset = 8}};
        if (schema.argument) {
            row.entries.push_back({.name = std::string(schema.argument->name),
                                   .description = "",
                                   .type = schema.argument->type,
                                   .offset = 16});
        }
    }
    return rows;
}

traces::schema::PayloadEnumRow nccl_reductions() {
    traces::schema::PayloadEnumRow row;
    row.id = kReductions;
    row.size = sizeof(std::int32_t);
    for (std::uint64_t i = 0; i < std::size(kReductionNames); ++i) {
        row.entries.push_back({std::string(kReductionNames[i]), i, false});
    }
    return row;
}

void describe_nccl_payloads(traces::store::EventSink& sink, traces::schema::StringId domain) {
    for (traces::schema::PayloadSchemaRow row : nccl_payload_schemas()) {
        row.domain = domain;
        sink.add(row);
    }
    traces::schema::PayloadEnumRow reductions = nccl_reductions();
    reductions.domain = domain;
    sink.add(reductions);
}

}  // namespace shardscope::trainer::executor
