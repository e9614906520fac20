// A library that looks like CUPTI to the injected library, and that a test program tells what "happened". It
// is as hard to please as the real one: it calls back under its own lock, so that whoever calls it from there
// hangs; it forgets the records of kinds that were not enabled; its buffers come back in any order.
//
// The environment: FAKE_CUPTI_VERSION (what cuptiGetVersion says; records get that version's length),
// FAKE_CUPTI_HOLDER (another tool's name: the subscription is refused), FAKE_CUPTI_SUBSCRIBE and
// FAKE_CUPTI_ENABLE (what the subscription and turning records on fail with).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Puts a record of cupti/abi.h into the buffer of a lane (0..15), if its kind is enabled; 1: it did. `name`:
// of an API record's call ("cudaLaunchKernel_v7000"), whose number is filled in; else null. Before an API
// record come the external ids that the calling thread has pushed.
int fake_emit(int lane, const void* record, std::size_t size, const char* name);

// Gives the lane's buffer back.
void fake_complete(int lane);

// Flushes without force leave this lane alone: it holds a record that is not complete.
void fake_hold(int lane, int held);

// Asks for a buffer and keeps it for ever; 1: got one.
int fake_take_buffer();

// Calls the subscriber as if that call was made, if it asked for it. site 0: enter, 1: exit.
void fake_call(int domain, const char* name, int site);

// The next cuptiActivityGetNumDroppedRecords() tells of so many more.
void fake_drop(std::size_t records);

// How often buffers were asked for and handed out not zeroed; forced and other flushes; kinds enabled now.
struct FakeCounts {
    int not_zeroed, forced_flushes, flushes, enabled_kinds, thread_id_type, wrong_size;
};
FakeCounts fake_counts();
}
