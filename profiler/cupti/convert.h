// Converts CUPTI's records, filled by any version of the library, to ours (records.h). Pure functions: no
// heap, no exceptions.
#pragma once

#include <cstdint>
#include <cstring>

#include "profiler/cupti/abi.h"
#include "profiler/cupti/records.h"

namespace shardscope::profiler::cupti {

// A copy of a record in a buffer. Older libraries fill less of it: the rest is zero.
template <typename Record>
Record read(const void* record, std::uint32_t version) {
    Record copy{};
    std::memcpy(&copy, record, bytes_known<Record>(version));
    return copy;
}

// Calls visit() with a copy of a record, as the struct of its kind; not for kinds that we never enable.
template <typename Visit>
void visit_record(const void* record, std::uint32_t version, Visit& visit) {
    std::uint32_t kind = 0;
    std::memcpy(&kind, record, sizeof kind);
    switch (kind) {
        case kKindRuntime:
        case kKindDriver:
            return visit(read<Api>(record, version));
        case kKindConcurrentKernel:
            return visit(read<Kernel>(record, version));
        case kKindMemcpy:
            return visit(read<Memcpy>(record, version));
        case kKindMemcpy2:
            return visit(read<MemcpyPeer>(record, version));
        case kKindMemset:
            return visit(read<Memset>(record, version));
        case kKindSynchronization:
            return visit(read<Synchronization>(record, version));
        case kKindCudaEvent:
            return visit(read<CudaEvent>(record, version));
        case kKindMemory2:
            return visit(read<Memory>(record, version));
        case kKindMemoryPool:
            return visit(read<MemoryPool>(record, version));
        case kKindOverhead:
            return visit(read<Overhead>(record, version));
        case kKindGraphTrace:
            return visit(read<GraphTrace>(record, version));
        case kKindExternalCorrelation:
            return visit(read<ExternalCorrelation>(record, version));
        case kKindDevice:
            return visit(read<Device>(record, version));
        case kKindContext:
            return visit(read<Context>(record, version));
        case kKindStream:
            return visit(read<Stream>(record, version));
        default:
            return;
    }
}

// Whether CUPTI could measure both times.
inline bool is_timed(std::uint64_t start, std::uint64_t end) {
    return start != 0 && end >= start;
}

inline RealTime real_time(std::uint64_t cupti_ns) {
    return RealTime(static_cast<std::int64_t>(cupti_ns));
}

// An id in 32 bits; -1 if it does not fit.
inline std::int32_t small(std::uint64_t value) {
    return value <= 0x7FFFFFFF ? static_cast<std::int32_t>(value) : -1;
}

template <typename Record>
Record make_record(std::uint32_t name = 0, std::uint8_t flags = 0) {
    Record record{};
    record.header = {sizeof(Record), record_kind(Record::kKind), flags, name};
    return record;
}

// The records of device work. `name` becomes header.name.
CudaKernelRecord to_record(const Kernel& kernel, std::uint32_t version, std::uint32_t name);
CudaMemcpyRecord to_record(const Memcpy& copy);
CudaMemcpyRecord to_record(const MemcpyPeer& copy);
CudaMemsetRecord to_record(const Memset& set);

}  // namespace shardscope::profiler::cupti
