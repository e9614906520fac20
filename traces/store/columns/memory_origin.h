// The purpose of an allocation whose source has no categories but records the annotations, operators or
// stacks under which it was made (Kineto traces, PyTorch memory snapshots). One table contains the rules with
// their reasons; docs/foreign_memory.md prints it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "traces/schema/enums.h"

namespace shardscope::traces::store {

struct OriginRule {
    std::string_view file;  // part of the frame's file, for stacks only; empty: any
    std::string_view name;  // part of the annotation's, operator's or function's name; empty: any
    schema::MemoryCategory category;
    std::string_view reason;
    // The category of memory that is live when the optimizer steps; none: `category`.
    std::optional<schema::MemoryCategory> in_step = {};
};

// In order: the first match applies.
std::span<const OriginRule> annotation_rules();
std::span<const OriginRule> frame_rules();

// The rule that matches the name of an annotation or operator; nullptr if none does, so that the caller
// can try the next enclosing range.
const OriginRule* rule_of_origin(std::string_view annotation);

// The same for a stack: the first of its frames ("file.py:12 function", one per line, innermost first) that
// a rule matches applies.
const OriginRule* rule_of_stack(std::string_view stack);

// The category of the matching rule; `other` if none matches.
schema::MemoryCategory category_of_origin(std::string_view annotation);

}  // namespace shardscope::traces::store
