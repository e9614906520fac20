// Parts of the JSON that several verbs print.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "trainer/job/job.h"
#include "trainer/plan/account.h"

namespace shardscope::trainer::cli {

// {"fsdp.wrap":"root",…}
nlohmann::ordered_json settings_json(const std::vector<job::Override>& settings);

// {"parameters":bytes,…}
nlohmann::ordered_json categories_json(const plan::CategoryBytes& bytes);

}  // namespace shardscope::trainer::cli
