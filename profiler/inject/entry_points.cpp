// The library's own C interface, for programs without NVTX (Python's ctypes on $NVTX_INJECTION64_PATH):
// ranges and marks of the default domain, and the beginning and end of what is recorded. Each joins the
// session automatically, and does nothing without one. Any thread.
#include "profiler/inject/nvtx_events.h"
#include "profiler/inject/process_log.h"
#include "profiler/inject/window.h"

namespace inject = shardscope::profiler::inject;

#define SHARDSCOPE_EXPORT extern "C" __attribute__((visibility("default")))

// A range from here to the matching shardscope_range_pop() of the same thread. UTF-8; copied.
SHARDSCOPE_EXPORT void shardscope_range_push(const char* text) {
    if (inject::join_session()) inject::push(*inject::default_domain(), inject::describe(text));
}
SHARDSCOPE_EXPORT void shardscope_range_pop() {
    if (inject::join_session()) inject::pop(*inject::default_domain());
}
SHARDSCOPE_EXPORT void shardscope_mark(const char* text) {
    if (inject::join_session()) inject::mark(*inject::default_domain(), inject::describe(text));
}

// These act as cudaProfilerStart() and cudaProfilerStop() do, for a session that waits for those.
SHARDSCOPE_EXPORT void shardscope_profiler_start() {
    if (inject::join_session()) inject::set_window(shardscope::profiler::WindowKind::cuda_profiler, true);
}
SHARDSCOPE_EXPORT void shardscope_profiler_stop() {
    if (inject::join_session()) inject::set_window(shardscope::profiler::WindowKind::cuda_profiler, false);
}
