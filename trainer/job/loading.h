// What the loader knows of a job while it is put together: where each key came from.
#pragma once

#include <string>

#include "trainer/job/job.h"
#include "trainer/job/keys.h"

namespace shardscope::trainer {

// Puts a value of the key's type into the job; JobError that begins with `where` if it does not fit.
void set_key(Job& job, const Key& key, const Value& value, const std::string& where, Origins& origins);

void apply(Job& job, const Override& override, Origins& origins);

// The ranks of a job whose processes are there, or are to be: run.ranks is theirs. JobError where the command
// line says otherwise; a note where the file does.
void apply_launcher(Job& job, const Launched& launched, const Origins& origins);

// Checks that span several keys; fills defaults that depend on another key. JobError if something does not
// fit.
void finish(Job& job, const std::string& file, const Origins& origins);

}  // namespace shardscope::trainer
