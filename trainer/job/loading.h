// What the loader knows about a job while it is built: where each key was given.
#pragma once

#include <string>

#include "trainer/job/job.h"
#include "trainer/job/keys.h"

namespace shardscope::trainer {

// Stores a value of the key's type in the job; JobError that begins with `where` if it does not fit.
void set_key(Job& job, const Key& key, const Value& value, const std::string& where, Origins& origins);

void apply(Job& job, const Override& override, Origins& origins);

// Sets the ranks of a job whose processes exist, or will: run.ranks is their number. JobError where the
// command line says otherwise; a note where the file does.
void apply_launcher(Job& job, const Launched& launched, const Origins& origins);

// Checks that span several keys; fills defaults that depend on another key. JobError if something does not
// fit.
void finish(Job& job, const std::string& file, const Origins& origins);

}  // namespace shardscope::trainer
