// A recorder's use of CUPTI: the library, the one subscription that it grants a process, the calls that it
// knows and the buffers that it fills. The recorder decides what is recorded, and takes the records.
//
// A session is a static object: CUPTI's callbacks take no object of ours, come from the program's threads,
// and may come after the recording. Nothing here takes a lock or uses the heap, since CUPTI holds locks of
// its own when it calls; one worker of the recorder empties the buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/cupti/buffers.h"
#include "profiler/cupti/calls.h"
#include "profiler/cupti/convert.h"
#include "profiler/cupti/library.h"

namespace shardscope::profiler::cupti {

class CuptiSession {
  public:
    using Reason = char[512];  // a sentence that says what is missing

    // Opens CUPTI and subscribes. False if CUPTI cannot be used or has another user; `why` then ends with
    // `advice` in the second case.
    bool open(Callback callback, const char* advice, CudaCalls::IsWanted is_wanted, Reason& why);
    void close() { cupti_.Unsubscribe(subscriber_); }
    const Cupti& cupti() const { return cupti_; }
    CudaCalls& calls() { return calls_; }
    // Enables a callback for a call or for another number of a domain; ignores 0, a call that CUPTI lacks.
    void enable_callback(int domain, std::uint32_t number) {
        if (number != 0) cupti_.EnableCallback(1, subscriber_, domain, number);
    }

    // Records these kinds and the wanted calls from now on. False if a kind failed that `is_needed`; the
    // others are then enabled, and `why` ends with `advice`.
    bool enable(std::span<const std::uint32_t> kinds, bool (*is_needed)(std::uint32_t kind),
                const char* advice, Reason& why);
    // Returns false if this version of CUPTI can hang when it is turned off: it then stays on.
    bool disable(std::span<const std::uint32_t> kinds);

    // --- in CUPTI's callbacks ------------------------------------------------------------------------------

    // BufferRequested; `refused`: no buffer is handed out.
    void request(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records, bool refused = false);
    // BufferCompleted; `is_read`: the worker still empties buffers.
    void complete(std::uint8_t* buffer, std::size_t valid, bool is_read);

    // --- the worker ----------------------------------------------------------------------------------------

    // Prepares buffers, once CUPTI has requested one.
    void provide_spare() {
        if (requested_.load(std::memory_order_relaxed)) buffers_.provide_spare();
    }

    // Takes the buffers that CUPTI has filled, calls `begin` with whether there are any, and then `visit`
    // with each record in them (see visit_record()).
    template <typename Begin, typename Visit>
    void take_buffers(Begin begin, Visit visit) {
        CudaBuffers::Filled* filled = buffers_.take_filled();
        begin(filled != nullptr);
        while (filled != nullptr) {
            CudaBuffers::Filled* next = filled->next;
            void* record = nullptr;
            while (cupti_.ActivityGetNextRecord(filled->data, filled->valid, &record) == kSuccess &&
                   record != nullptr) {
                visit_record(record, cupti_.version, visit);
            }
            buffers_.recycle(filled);
            filled = next;
        }
    }
    void discard_buffers();

    // Asks for finished records, and takes the buffers by `take`. Does nothing before CUPTI has requested a
    // buffer: until then the program may be in cuInit(), which can take seconds.
    template <typename Take>
    void flush(std::uint32_t flag, Take take) {
        if (!flush_only(flag)) return;
        take();
        std::size_t more = 0;
        if (cupti_.ActivityGetNumDroppedRecords(nullptr, 0, &more) == kSuccess) dropped_ += more;
    }
    // Without taking the buffers; any thread. False: no buffer was requested so far.
    bool flush_only(std::uint32_t flag) {
        const bool requested = requested_.load(std::memory_order_relaxed);
        if (requested) cupti_.ActivityFlushAll(flag);
        return requested;
    }
    // How many records CUPTI had no room for since open().
    std::uint64_t dropped() const { return dropped_; }

  private:
    bool subscribe(Callback callback, const char* advice, Reason& why);
    void describe_failure(const char* function, Result result, const char* advice, Reason& why) const;

    Cupti cupti_;
    CudaBuffers buffers_;
    CudaCalls calls_;
    void* subscriber_ = nullptr;
    std::uint64_t dropped_ = 0;
    std::atomic<bool> requested_{false};   // a buffer: there is something to flush
    std::atomic<bool> may_refuse_{false};  // older libraries crash when a buffer is refused
};

}  // namespace shardscope::profiler::cupti
