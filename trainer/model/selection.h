// Modules selected by class or path, to be frozen, checkpointed or made units.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "trainer/job/job.h"
#include "trainer/model/module.h"

namespace shardscope::trainer::model {

// The modules that `modules` selects; wrappers do not count. Throws JobError if a name or pattern matches
// none; `where` ("job.toml:7: ") and `key` precede the message.
std::set<const Module*> selected(const Module& root, const job::ModuleSelection& modules,
                                 const std::string& where, std::string_view key);

// The parameters of these modules, and of what is inside them, are no longer trained, as after
// module.requires_grad_(False); this includes a table that a tied head shares. Throws JobError, too, if a
// name or pattern matches no parameters, or nothing is left to train.
void freeze(Module& root, const job::ModuleSelection& modules, const std::string& where = {});

// Marks these modules as checkpointed.
void checkpoint_modules(Module& root, const job::ModuleSelection& modules, const std::string& where = {});

}  // namespace shardscope::trainer::model
