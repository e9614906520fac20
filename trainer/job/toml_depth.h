// Limits how deep the tables of a TOML text nest, before a recursive parser reads it.
#pragma once

#include <string_view>

namespace shardscope::trainer::job {

inline constexpr int kMostKeyParts = 32;  // parts of a.b.c: a job's keys have 2, a cost model's 4

// The first line with a key of more than kMostKeyParts parts; 0 if there is none.
int line_too_deep(std::string_view toml);

}  // namespace shardscope::trainer::job
