// Modules chosen by class: which are frozen, which are checkpointed.
#pragma once

#include <string>

#include "trainer/job/job.h"
#include "trainer/model/module.h"

namespace shardscope::trainer {

// The parameters that modules of these classes own are no longer trained (a table that a frozen class only
// shares goes on training). JobError where the model has no such class, or nothing is left to train; `where`
// stands before the message ("job.toml:7: ").
void freeze(Module& root, const ModuleClasses& classes, const std::string& where = {});

// Modules of these classes are checkpointed. JobError where the model has no such class.
void checkpoint_modules(Module& root, const ModuleClasses& classes, const std::string& where = {});

}  // namespace shardscope::trainer
