// NCCL, opened at run time: the part of its interface that the trainer calls, with the numbers of its header
// (NVIDIA/nccl, src/nccl.h.in, stable since 2.10). There is one per process.
#pragma once

#include <cstddef>
#include <string>

#include "trainer/cuda/runtime.h"

namespace shardscope::trainer::cuda {

struct NcclComm;  // opaque

struct NcclId {
    char internal[128];
};

// ncclResult_t; others are errors.
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
// ncclDataType_t
inline constexpr int kNcclInt32 = 2, kNcclFloat16 = 6, kNcclFloat32 = 7, kNcclFloat64 = 8, kNcclBfloat16 = 9;
// ncclRedOp_t
inline constexpr int kNcclSum = 0, kNcclMax = 2, kNcclAvg = 4;

struct NcclLibrary {
    int (*GetVersion)(int* version) = nullptr;
    int (*GetUniqueId)(NcclId* id) = nullptr;
    int (*CommInitRank)(NcclComm** comm, int ranks, NcclId id, int rank) = nullptr;
    int (*CommDestroy)(NcclComm* comm) = nullptr;
    int (*CommAbort)(NcclComm* comm) = nullptr;
    int (*CommGetAsyncError)(NcclComm* comm, int* error) = nullptr;
    int (*GroupStart)() = nullptr;
    int (*GroupEnd)() = nullptr;
    int (*AllGather)(const void* in, void* out, std::size_t count_of_each, int type, NcclComm* comm,
                     cudaStream_t stream) = nullptr;
    int (*ReduceScatter)(const void* in, void* out, std::size_t count_of_each, int type, int reduction,
                         NcclComm* comm, cudaStream_t stream) = nullptr;
    int (*AllReduce)(const void* in, void* out, std::size_t count, int type, int reduction, NcclComm* comm,
                     cudaStream_t stream) = nullptr;
    int (*Broadcast)(const void* in, void* out, std::size_t count, int type, int root, NcclComm* comm,
                     cudaStream_t stream) = nullptr;
    int (*Send)(const void* in, std::size_t count, int type, int peer, NcclComm* comm,
                cudaStream_t stream) = nullptr;
    int (*Recv)(void* out, std::size_t count, int type, int peer, NcclComm* comm,
                cudaStream_t stream) = nullptr;
    const char* (*GetErrorString)(int result) = nullptr;
    const char* (*GetLastError)(NcclComm* comm) = nullptr;

    // Opens libnccl.so.2, or the library that the environment variable SHARDSCOPE_NCCL names. Null if that
    // fails: `why` is then a clause that says what is missing and what to do.
    static const NcclLibrary* open(std::string& why);

    // Throws CudaError if `result` is a failure; `what` names the call.
    void check(int result, const std::string& what, NcclComm* comm = nullptr) const;
};

// NCCL's 22809 as "2.28.9".
std::string nccl_version_text(int version);

}  // namespace shardscope::trainer::cuda
