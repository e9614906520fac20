// Reads Python pickles that are data: numbers, texts, lists, tuples, sets and dictionaries, of protocols 0 to
// 5 (the C pickler's, the Python pickler's and PyTorch's own). Opcodes that would import, call or build
// anything are refused by name, except for the classes that the caller lists, whose objects are read as
// lists. No name is ever looked up: a pickle cannot make this reader do anything.
//
// The machine has no recursion but a stack, marks and a memo, each bounded by what the file's bytes can fill:
// at most 40 bytes of memory per byte of pickle. A memory snapshot of PyTorch takes about 2 bytes per byte.
//
// Source of the opcodes: Python's documentation of the module pickletools and PEP 3154, PEP 574.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "traces/import/input/input.h"
#include "traces/import/json/value_tree.h"

namespace shardscope::traces::importer {

struct PickleOptions {
    bool partial = false;           // for a damaged pickle, return the values that were read
    std::size_t most_marks = 1000;  // nesting of lists, tuples and dictionaries; Python's own limit
    // "module.name" of the classes and functions that may occur; they must outlive the call. A name is read
    // as a text. An object, or the result of a call, becomes a list of the name, the arguments (a list) and,
    // if it has one, the state. A persistent identifier becomes a list of "persistent" and what identifies.
    std::span<const std::string_view> classes = {};
};

struct ParsedPickle {
    ValueTree tree;
    std::string damage;  // with `partial`: the sentence that would have been thrown; "" if undamaged
};

// Reads one pickle. Throws StoreError with the byte offset: an opcode that would import or call (named, with
// what it would have imported), a damaged or cut pickle, one that nests too deeply.
ParsedPickle parse_pickle(Input& input, const PickleOptions& options = {});

}  // namespace shardscope::traces::importer
