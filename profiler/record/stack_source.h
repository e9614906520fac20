// Chooses how the command's threads are sampled: by perf events, or by timers inside the program where the
// kernel refuses those.
#pragma once

#include <memory>
#include <string>

#include "profiler/record/record_command.h"
#include "profiler/stacks/sample_source.h"

namespace shardscope::profiler {

struct StackSource {
    std::unique_ptr<SampleSource> source;  // null: threads are not sampled
    std::string library;                   // to be loaded into the command; empty: none
    std::string notice;                    // a sentence for the user; empty: nothing to say
};

// Before the command is started, on the thread that starts it. `session_directory`: that of the session.
StackSource make_stack_source(const RecordOptions& options, const std::string& session_directory);

}  // namespace shardscope::profiler
