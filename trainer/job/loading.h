// The steps of load_job. `origins` records where each key was given.
#pragma once

#include <string>

#include "trainer/job/job.h"
#include "trainer/job/keys.h"

namespace shardscope::trainer::job {

// Where a key was given that is in no file.
inline constexpr const char* kCommandLine = "command line";

// Stores a value of the key's type in the job; a JobError that begins with `where` if it is not allowed.
void set_key(Job& job, const Key& key, const Value& value, const std::string& where, Origins& origins);

void apply(Job& job, const Override& override, Origins& origins);

// Sets run.ranks to the number of processes, if the job runs as processes. JobError if the command line
// contradicts that; a note if the file does.
void apply_launcher(Job& job, const Launched& launched, const Origins& origins);

// Runs the checks that span several keys, and sets defaults that depend on another key. JobError if a check
// fails.
void finish(Job& job, const std::string& file, const Origins& origins);

}  // namespace shardscope::trainer::job
