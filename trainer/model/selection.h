// Modules selected by class, to be frozen or checkpointed.
#pragma once

#include <string>

#include "trainer/job/job.h"
#include "trainer/model/module.h"

namespace shardscope::trainer {

// The parameters of modules of these classes, and of what is inside them, are no longer trained, as after
// module.requires_grad_(False); this includes a table that a tied head shares. Throws JobError if the model
// has no such class, a class has no parameters, or nothing is left to train; `where` ("job.toml:7: ")
// precedes the message.
void freeze(Module& root, const ModuleClasses& classes, const std::string& where = {});

// Marks the modules of these classes as checkpointed. Throws JobError if the model has no such class.
void checkpoint_modules(Module& root, const ModuleClasses& classes, const std::string& where = {});

}  // namespace shardscope::trainer
