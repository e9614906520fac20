// What an allocation is for, where a source knows no categories but tells the annotations, operators or
// stacks under which it was made (Kineto traces, memory snapshots of PyTorch). One table says it, with its
// reasons; docs/foreign_memory.md prints it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "traces/schema/enums.h"

namespace shardscope::traces {

struct OriginRule {
    std::string_view file;  // part of the frame's file, of stacks only; empty: any
    std::string_view name;  // part of the annotation's, operator's or function's name; empty: any
    MemoryCategory category;
    std::string_view reason;
    // Of what still lives when the optimizer steps; none: the same.
    std::optional<MemoryCategory> in_step = {};
};

// In order: the first that fits counts.
std::span<const OriginRule> annotation_rules();
std::span<const OriginRule> frame_rules();

// The rule that fits the name of an annotation or operator; nullptr where it says nothing, so that the next
// range around it may be asked.
const OriginRule* rule_of_origin(std::string_view annotation);

// The same of a stack: of its frames ("file.py:12 function", one a line, innermost first) the first that a
// rule fits counts.
const OriginRule* rule_of_stack(std::string_view stack);

// The rules' categories; `other` where none fits.
MemoryCategory category_of_origin(std::string_view annotation);
MemoryCategory category_of_stack(std::string_view stack);

}  // namespace shardscope::traces
