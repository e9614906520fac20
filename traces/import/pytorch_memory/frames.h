// Stacks as PyTorch writes them (lists of {"name", "filename", "line"}, innermost first) become texts: one
// frame per line, "file.py:12 function". Each frame and each stack is made once, however often it occurs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/import/json/value_tree.h"
#include "traces/store/sink.h"

namespace shardscope::traces::importer {

class Frames {
  public:
    explicit Frames(store::EventSink& sink) : sink_(sink) {}

    // The id of a stack's text; empty if `frames` is not a list of frames.
    schema::StringId stack(const Value& frames);
    // The text of an id.
    std::string_view text(schema::StringId stack) const;

  private:
    struct HashOfRefs {
        std::size_t operator()(const std::vector<ValueRef>& refs) const;
    };

    const std::string& line(const Value& frame);

    store::EventSink& sink_;
    std::unordered_map<ValueRef, schema::StringId> by_list_;
    std::unordered_map<std::vector<ValueRef>, schema::StringId, HashOfRefs> by_frames_;
    std::unordered_map<ValueRef, std::string> lines_;
    std::unordered_map<schema::StringId, std::string> texts_;  // a sink need not keep them
};

}  // namespace shardscope::traces::importer
