// The binary interface between NCCL and a profiler plugin, versions 1 to 6, declared here so that no header
// of NCCL is needed: one exported struct of functions for each version, and the descriptors of the events
// that we take. Numbers and layouts are NCCL's and do not change. Source: NVIDIA/nccl,
// ext-profiler/example/nccl/profiler_v1.h … v5.h, src/include/plugin/profiler/profiler_v6.h and
// src/include/plugin/nccl_profiler.h (NCCL 2.23 to 2.30).
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::profiler::nccl {

// Kinds of event, bits of the activation mask and values of `type`.
inline constexpr std::uint64_t kColl = 1u << 1, kP2p = 1u << 2, kCollApi = 1u << 9, kP2pApi = 1u << 10,
                               kCopyEngineColl = 1u << 12;

inline constexpr int kSuccess = 0;  // ncclSuccess

// --- descriptors: what every event begins with, then what it is about --------------------------------------

// `Type` is one byte up to version 4, eight from version 5 on.
template <typename Type, typename About>
struct Descriptor {
    Type type;
    void* parent;  // the handle of the event that this one is part of
    int rank;      // in the communicator
    About about;
};

struct Coll1 {
    const char* name;
    std::uint64_t communicator, sequence;
    std::uint8_t function;
    const void* send;
    void* receive;
    std::size_t count;
    int root;
    std::uint8_t data_type;
    std::uint32_t reduction;
    std::size_t traffic;
    std::uint8_t channels, warps, algorithm, protocol;
    int collnet, nvls;
};
struct P2p1 {
    const char* name;
    std::uint64_t communicator;
    std::uint8_t function;
    void* buffer;
    std::uint8_t data_type;
    std::size_t count;
    int peer;
};

struct Coll2 {
    const char* name;
    std::uint64_t communicator, sequence;
    const char* function;
    const void* send;
    void* receive;
    std::size_t count;
    int root;
    const char* data_type;
    std::size_t traffic;
    std::uint8_t channels, warps;
    const char *algorithm, *protocol;
};
struct P2p2 {  // also of version 3
    const char* name;
    std::uint64_t communicator;
    const char* function;
    void* buffer;
    const char* data_type;
    std::size_t count;
    int peer;
};

struct Coll3 {
    const char* name;
    std::uint64_t communicator, sequence;
    const char* function;
    const void* send;
    void* receive;
    std::size_t count;
    int root;
    const char* data_type;
    std::uint8_t channels, warps;
    const char *algorithm, *protocol;
};

struct Coll4 {  // also of versions 5 and 6, which append a pointer
    std::uint64_t sequence;
    const char* function;
    const void* send;
    void* receive;
    std::size_t count;
    int root;
    const char* data_type;
    std::uint8_t channels, warps;
    const char *algorithm, *protocol;
};
struct P2p4 {  // also of versions 5 and 6, which append a pointer
    const char* function;
    void* buffer;
    const char* data_type;
    std::size_t count;
    int peer;
    std::uint8_t channels;
};

struct CollApi5 {
    const char* function;
    std::size_t count;
    const char* data_type;
    int root;
    void* stream;
    bool captured;
};
struct P2pApi5 {
    const char* function;
    std::size_t count;
    const char* data_type;
    void* stream;
    bool captured;
};

struct CopyEngineColl6 {
    std::uint64_t sequence;
    const char* function;
    const void* send;
    void* receive;
    std::size_t count;
    int root;
    const char* data_type;
    const char* synchronization;
    bool synchronized_batches;
    std::uint32_t batch_size, batches, number;
    void* stream;
};

// An event of any kind begins like this one.
template <typename Type>
struct AnyDescriptor {
    Type type;
    void* parent;
    int rank;
};

// On a 64-bit machine the union of what events are about begins at offset 24 in every version.
using OldDescriptor = AnyDescriptor<std::uint8_t>;   // versions 1 to 4
using NewDescriptor = AnyDescriptor<std::uint64_t>;  // versions 5 and 6
static_assert(offsetof(OldDescriptor, parent) == 8 && offsetof(OldDescriptor, rank) == 16);
static_assert(offsetof(NewDescriptor, parent) == 8 && offsetof(NewDescriptor, rank) == 16);
using OldColl = Descriptor<std::uint8_t, Coll4>;
using NewColl = Descriptor<std::uint64_t, Coll4>;
static_assert(offsetof(OldColl, about) == 24 && offsetof(NewColl, about) == 24);
static_assert(offsetof(Coll1, function) == 24 && offsetof(Coll1, count) == 48 &&
              offsetof(Coll1, root) == 56 && offsetof(Coll1, data_type) == 60 &&
              offsetof(Coll1, traffic) == 72 && offsetof(Coll1, channels) == 80 &&
              offsetof(Coll1, protocol) == 83);
static_assert(offsetof(P2p1, data_type) == 32 && offsetof(P2p1, count) == 40 && offsetof(P2p1, peer) == 48);
static_assert(offsetof(Coll2, data_type) == 64 && offsetof(Coll2, channels) == 80 &&
              offsetof(Coll2, protocol) == 96);
static_assert(offsetof(P2p2, data_type) == 32 && offsetof(P2p2, peer) == 48);
static_assert(offsetof(Coll3, channels) == 72 && offsetof(Coll3, protocol) == 88);
static_assert(offsetof(Coll4, count) == 32 && offsetof(Coll4, root) == 40 &&
              offsetof(Coll4, data_type) == 48 && offsetof(Coll4, channels) == 56 &&
              offsetof(Coll4, protocol) == 72);
static_assert(offsetof(P2p4, count) == 24 && offsetof(P2p4, peer) == 32 && offsetof(P2p4, channels) == 36);
static_assert(offsetof(CollApi5, root) == 24 && offsetof(CollApi5, stream) == 32 &&
              offsetof(CollApi5, captured) == 40);
static_assert(offsetof(P2pApi5, captured) == 32);
static_assert(offsetof(CopyEngineColl6, data_type) == 48 && offsetof(CopyEngineColl6, batch_size) == 68);

// --- the exported structs ----------------------------------------------------------------------------------

using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

template <typename Init, typename Any>
struct Plugin {
    const char* name;
    Init* init;
    int (*start)(void* context, void** handle, Any* descriptor);
    int (*stop)(void* handle);
    int (*record_state)(void* handle, int state, void* arguments);
    int (*finalize)(void* context);
};

using Init1 = int(void** context, int* mask);  // also of versions 2 and 3
using Init4 = int(void** context, int* mask, const char* name, std::uint64_t communicator, int nodes,
                  int ranks, int rank, Logger log);
using Init5 = int(void** context, std::uint64_t communicator, int* mask, const char* name, int nodes,
                  int ranks, int rank, Logger log);  // also of version 6

using Plugin1 = Plugin<Init1, OldDescriptor>;  // also of versions 2 and 3
using Plugin4 = Plugin<Init4, OldDescriptor>;
using Plugin5 = Plugin<Init5, NewDescriptor>;  // also of version 6
static_assert(sizeof(Plugin1) == 48 && sizeof(Plugin4) == 48 && sizeof(Plugin5) == 48);

// --- version 1 gives numbers where later ones give names; these are those names ----------------------------

inline constexpr const char* kFunctions1[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                              "AllReduce", "SendRecv", "Send",      "Recv"};
inline constexpr const char* kDataTypes1[] = {
    "ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",   "ncclInt64",      "ncclUint64",
    "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
inline constexpr const char* kAlgorithms1[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                               "NVLS_TREE", "PAT"};
inline constexpr const char* kProtocols1[] = {"LL", "LL128", "SIMPLE"};

}  // namespace shardscope::profiler::nccl
