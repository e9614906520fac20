// Modules chosen by class: which are frozen, which are checkpointed.
#pragma once

#include <string>

#include "trainer/job/job.h"
#include "trainer/model/module.h"

namespace shardscope::trainer {

// The parameters of modules of these classes, and of what is inside them, are no longer trained, as after
// module.requires_grad_(False): also a table that a tied head shares. JobError where the model has no such
// class, a class has no parameters, or nothing is left to train; `where` stands before the message
// ("job.toml:7: ").
void freeze(Module& root, const ModuleClasses& classes, const std::string& where = {});

// Modules of these classes are checkpointed. JobError where the model has no such class.
void checkpoint_modules(Module& root, const ModuleClasses& classes, const std::string& where = {});

}  // namespace shardscope::trainer
