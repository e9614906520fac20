// JSON as a tree of values, for small files (a flight recorder's dump): read from front to back, no
// recursion.
#pragma once

#include <string>

#include "traces/import/input/input.h"
#include "traces/import/json/value_tree.h"

namespace shardscope::traces::importer {

struct ParsedJson {
    ValueTree tree;
    std::string damage;  // with `partial`: the sentence that would have been thrown; "" if undamaged
};

// Throws StoreError with the byte offset and what was expected there. With `partial`, everything before the
// damage is kept.
ParsedJson parse_json(Input& input, bool partial);

}  // namespace shardscope::traces::importer
