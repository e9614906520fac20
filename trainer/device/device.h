// What carries out a run's work: the streams, the memory and the communicators of a device, for all ranks of
// this process. The rank's host thread (RankRunner) walks the Plan and hands each operation to it; nothing
// here knows of Plans of steps, modules or sharding. One device is the CPU's pool of workers (cpu_device.h),
// another CUDA's (a module that is opened at run time, see trainer/cuda).
//
// An event is a (stream, sequence) pair: it has happened when the stream has completed that many of the items
// that were put on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "profiler/log/thread_log.h"
#include "traces/schema/rows.h"
#include "trainer/collective/collective_call.h"
#include "trainer/device/launch.h"
#include "trainer/device/memory_device.h"
#include "trainer/device/stream_event.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

// One rank's part in one collective.
struct CollectiveLaunch {
    int communicator = 0;        // Mesh::id
    int place = 0, members = 1;  // of the rank among the communicator's ranks
    std::int64_t sequence = 0;   // of the communicator's collectives, 0 the first
    CollectiveCall call;
    // For messages: what it belongs to.
    std::int64_t step = 0;
    std::int32_t unit = -1;
    Phase phase = Phase::none;
    // For the recorder; meant where `recorded`. `kernel`: the work that the device times.
    bool recorded = false;
    profiler::DeviceWork kernel;
    profiler::CollectiveWork row;
};

class Device : public MemoryDevice {
  public:
    // --- streams ---------------------------------------------------------------------------------------
    // A stream of the rank, for such work. Before any thread enqueues.
    virtual StreamIndex add_stream(int rank, Stream use) = 0;

    // These append an item that waits for `waits` at the head of its stream and return its event. One thread
    // at a time for each stream: its rank's host thread. What `launch` and `collective` name must stay until
    // the event has happened; they themselves need not.
    virtual StreamEvent enqueue(StreamIndex stream, const Waits& waits, const Launch& launch) = 0;
    virtual StreamEvent enqueue(StreamIndex stream, const Waits& waits,
                                const CollectiveLaunch& collective) = 0;
    // Nothing but the waits.
    virtual StreamEvent mark(StreamIndex stream, const Waits& waits) = 0;

    // The event is its stream's latest, and may be waited for: also when the stream has been given more by
    // then, a wait is for no more than what it stands for.
    virtual void hold(StreamEvent event) = 0;

    // --- memory ----------------------------------------------------------------------------------------
    // Whether host threads read and write memory of this space in place.
    virtual bool host_reads(MemorySpace space) const = 0;
    // Between any two spaces, done when it returns. The rank's streams are idle.
    virtual void copy(int rank, std::byte* to, const std::byte* from, std::int64_t bytes) = 0;

    // Device memory that the rank's matrix products may use while they run: `bytes` for those of the forward
    // and behind them as many for those of the backward. It stays until the run ends.
    virtual void use_product_workspaces(int rank, std::byte* both, std::int64_t bytes) = 0;

    // --- the run ---------------------------------------------------------------------------------------
    // What the device is, for the trace: device_name, device_memory, and what else RankRow tells of it.
    virtual void describe(traces::RankRow& row) const = 0;
    // Who carries out the collectives, as their kernels' names end: ncclDevKernel_AllGather_local.
    virtual const char* engine() const { return "local"; }
    // Whether it records the collectives' rows itself, with the work that it times.
    virtual bool records_collectives() const = 0;
    // Whether the library that carries out its collectives tells NVTX of them, as NCCL does.
    virtual bool announces_collectives() const { return false; }
    // Bytes that the device itself says are in use, by whomever; -1 where it does not say.
    virtual std::int64_t bytes_in_use(int rank) = 0;
    // Bytes of device memory that the rank can have in all, now that it has `reserved` and gets no more.
    virtual std::int64_t memory_for(int /*rank*/, std::int64_t reserved) { return reserved; }
    // Where a buffer of the rank does not fit: "into the memory that ...".
    virtual std::string out_of_memory_place(int rank, MemorySpace space) = 0;
    // The collective between processes that this one's ranks wait in, as a clause; empty: none.
    virtual std::string waiting() { return {}; }
    // Stops everything because of `error`; every waiting host gets it.
    virtual void fail(std::exception_ptr error) = 0;
    // Finishes what was enqueued, unless something failed. What work refers to may go after that. Idempotent.
    virtual void stop() = 0;
};

}  // namespace shardscope::trainer
