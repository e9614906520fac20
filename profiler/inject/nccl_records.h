// Records of NCCL's own account of its operations, kinds nccl_first to nccl_last (record.h): written by the
// profiler plugin (nccl_plugin.cpp), read by shardscope-record (record/nccl_handler.cpp). Times are raw
// ticks.
//
// An operation is one event (in older versions of NCCL) or two: the program's call and, as its child, the
// work that NCCL enqueued for it. The ids are unique in the process.
#pragma once

#include <cstdint>

#include "profiler/base/record.h"

namespace shardscope::profiler {

inline constexpr RecordKind kNcclCommunicator = RecordKind::nccl_first;  // NcclCommunicatorRecord
inline constexpr RecordKind kNcclStart{97};                              // NcclStartRecord
inline constexpr RecordKind kNcclStop{98};                               // NcclStopRecord

struct NcclCommunicatorRecord {
    RecordHeader header;
    Ticks ticks;
    std::uint64_t communicator;       // NCCL's hash of it, equal on all its ranks
    std::int32_t rank, ranks, nodes;  // 0 ranks or nodes: unknown
    std::int32_t reserved;
    // its name follows, NUL-terminated
};

enum class NcclEvent : std::uint8_t {
    call = 0,       // by the program; reported by NCCL 2.28 and later
    operation = 1,  // as enqueued
};

struct NcclStartRecord {
    RecordHeader header;
    Ticks ticks;
    std::uint64_t id, parent;  // parent: the call's id, or 0
    std::uint64_t communicator;
    std::int64_t sequence;  // -1: none
    std::int64_t count;     // elements
    std::int32_t rank;
    std::int32_t root;             // or peer; -1: none
    std::int16_t channels, warps;  // -1: unknown
    NcclEvent event;
    std::uint8_t captured;  // 1: into a CUDA graph, so that the call may have many operations
    std::uint16_t reserved;
    // As NCCL spells them, cut if they are longer: "AllGather", "ncclFloat32", "RING", "LL128".
    char function[16], data_type[16], algorithm[24], protocol[16];
};
static_assert(sizeof(NcclStartRecord) % 8 == 0);

struct NcclStopRecord {
    RecordHeader header;
    Ticks ticks;
    std::uint64_t id;
};

}  // namespace shardscope::profiler
