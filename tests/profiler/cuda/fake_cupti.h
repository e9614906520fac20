// A library that looks like CUPTI to the injected library; a test program tells it what "happened". It is as
// strict as the real one: it calls back under its own lock, so that calling it from a callback deadlocks; it
// drops records of kinds that were not enabled; its buffers come back in any order.
//
// The environment: FAKE_CUPTI_VERSION (what cuptiGetVersion returns; records get that version's length),
// FAKE_CUPTI_HOLDER (another tool's name: the subscription is refused), FAKE_CUPTI_SUBSCRIBE and
// FAKE_CUPTI_ENABLE (the errors with which the subscription and enabling records fail).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Puts a record of cupti/abi.h into the buffer of a lane (0..15), if its kind is enabled; returns 1 if it
// did. `name`: the call of an API record ("cudaLaunchKernel_v7000"), whose number is filled in; otherwise
// null. The external ids that the calling thread has pushed precede an API record.
int fake_emit(int lane, const void* record, std::size_t size, const char* name);

// Returns the lane's buffer.
void fake_complete(int lane);

// While held, the lane is skipped by unforced flushes, as if it had an incomplete record.
void fake_hold(int lane, int held);

// Requests a buffer and keeps it forever; returns 1 if it got one.
int fake_take_buffer();

// Calls the subscriber as if this call was made, if it subscribed to it. site 0: enter, 1: exit.
void fake_call(int domain, const char* name, int site);

// Adds to the result of the next cuptiActivityGetNumDroppedRecords().
void fake_drop(std::size_t records);

// Counts: requested buffers that were not zeroed; forced and other flushes; kinds currently enabled; buffers
// read to their end.
struct FakeCounts {
    int not_zeroed, forced_flushes, flushes, enabled_kinds, thread_id_type, wrong_size, buffers_read;
};
FakeCounts fake_counts();
}
