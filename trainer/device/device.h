// Carries out a run's work: the streams, the memory and the communicators of a device, for all ranks of this
// process. The rank's host thread (RankRunner) walks the Plan and passes it each operation; nothing here
// knows about Plans of steps, modules or sharding. One device is the CPU's pool of workers (cpu_device.h),
// another CUDA's (a module that is opened at run time, see trainer/cuda).
//
// An event is a (stream, sequence) pair: it has happened when the stream has completed that many of its
// items.
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

namespace shardscope::trainer::device {

// One rank's part in one collective.
struct CollectiveLaunch {
    plan::CommunicatorId communicator = plan::CommunicatorId::world;
    int place = 0, members = 1;  // of the rank among the communicator's ranks
    std::int64_t sequence = 0;   // of the communicator's collectives, 0 the first
    collective::CollectiveCall call;
    // What the collective belongs to, for messages.
    std::int64_t step = 0;
    std::int32_t unit = -1;
    plan::Phase phase = plan::Phase::none;
    // For the recorder; valid only if `recorded`. `kernel`: the work that the device times.
    bool recorded = false;
    profiler::DeviceWork kernel;
    profiler::CollectiveWork row;
};

class Device : public MemoryDevice {
  public:
    // --- streams ---------------------------------------------------------------------------------------
    // Adds a stream of the rank for that use. Called before any thread enqueues.
    virtual StreamIndex add_stream(int rank, plan::Stream use) = 0;

    // These append an item that waits for `waits` at the head of its stream, and return its event. Each
    // stream is used by one thread, its rank's host thread. What `launch` and `collective` refer to must live
    // until the event has happened; the arguments themselves need not.
    virtual StreamEvent enqueue(StreamIndex stream, const Waits& waits, const Launch& launch) = 0;
    virtual StreamEvent enqueue(StreamIndex stream, const Waits& waits,
                                const CollectiveLaunch& collective) = 0;
    // Appends an item that only waits.
    virtual StreamEvent mark(StreamIndex stream, const Waits& waits) = 0;

    // Prepares for a wait for the event, which is its stream's latest: even if more has been enqueued by
    // then, the wait is for no more than this event.
    virtual void hold(StreamEvent event) = 0;

    // --- memory ----------------------------------------------------------------------------------------
    // Whether host threads can read and write memory of this space in place.
    virtual bool host_reads(plan::MemorySpace space) const = 0;
    // Copies between any two spaces; done when it returns. The rank's streams must be idle.
    virtual void copy(int rank, std::byte* to, const std::byte* from, std::int64_t bytes) = 0;

    // Sets the device memory that the rank's matmuls may use while they run: `bytes` for those of the
    // forward, followed by as many for those of the backward. It stays until the run ends.
    virtual void use_product_workspaces(int rank, std::byte* both, std::int64_t bytes) = 0;

    // --- the run ---------------------------------------------------------------------------------------
    // Describes the device for the trace: device_name, device_memory, and the other columns of RankRow about
    // it.
    virtual void describe(traces::schema::RankRow& row) const = 0;
    // The engine that carries out the collectives, the end of their kernels' names:
    // ncclDevKernel_AllGather_local.
    virtual const char* engine() const { return "local"; }
    // Whether the device records the collectives' rows itself, with the work that it times.
    virtual bool records_collectives() const = 0;
    // Whether the library that carries out its collectives reports them to NVTX, as NCCL does.
    virtual bool announces_collectives() const { return false; }
    // Bytes in use, by any process, as reported by the device; -1 if it does not report them.
    virtual std::int64_t bytes_in_use(int rank) = 0;
    // The total device memory in bytes that the rank can have, if it has `reserved` and cannot get more.
    virtual std::int64_t memory_for(int /*rank*/, std::int64_t reserved) { return reserved; }
    // The place, for messages, into which a buffer of the rank does not fit: "into the memory that ...".
    virtual std::string out_of_memory_place(int rank, plan::MemorySpace space) = 0;
    // The collective between processes that the ranks of this process wait in, as a clause; empty if none.
    virtual std::string waiting() { return {}; }
    // Stops everything because of `error`, which every waiting host thread receives.
    virtual void fail(std::exception_ptr error) = 0;
    // Finishes what was enqueued, unless something failed. Afterwards, what the work refers to may be freed.
    // Idempotent.
    virtual void stop() = 0;
};

}  // namespace shardscope::trainer::device
