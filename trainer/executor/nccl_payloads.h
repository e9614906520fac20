// What NCCL's NVTX ranges carry in addition to their names, so that tools that read those can read our own
// "ncclAllGather" …: communicator, message size, reduction. Payload schemas, ids and the meaning of the size
// are NCCL's (NVIDIA/nccl, src/include/nvtx_payload_schemas.h; ids: 1 << 24 and the numbers of nvtx.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/schema/enums.h"
#include "traces/schema/rows.h"
#include "trainer/plan/mesh.h"

namespace shardscope::traces::store {
class EventSink;
}

namespace shardscope::trainer::executor {

struct NcclPayload {
    std::uint64_t schema = 0;  // 0: NCCL has none for the operation (a barrier)
    std::size_t size = 0;      // of the part of `value` that belongs to the schema
    struct Value {
        std::uint64_t communicator = 0;
        std::uint64_t bytes = 0;    // one rank's contribution to an all_gather, result of a reduce_scatter
        std::int32_t argument = 0;  // reduction, or root
        std::int32_t unused = 0;
    } value;
};
static_assert(sizeof(NcclPayload::Value) == 24 && offsetof(NcclPayload::Value, argument) == 16);

// `full_bytes`: size of the whole buffer, as CollectiveWork::bytes. `divisor`: what sums are divided by; the
// number of ranks stands for NCCL's average.
NcclPayload nccl_payload(traces::schema::Operation operation, plan::CommunicatorId communicator, int ranks,
                         std::int64_t full_bytes, int divisor);

// The layouts of those payloads, and the enumeration that they refer to; the caller sets their domain.
std::vector<traces::schema::PayloadSchemaRow> nccl_payload_schemas();
traces::schema::PayloadEnumRow nccl_reductions();

// Adds rows of both.
void describe_nccl_payloads(traces::store::EventSink& sink, traces::schema::StringId domain);

}  // namespace shardscope::trainer::executor
