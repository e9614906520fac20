// JSON to and from text. nlohmann's parser and writer are templates that take a source a second or two each:
// they are compiled once, in json_text.cpp.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace shardscope::traces {

// What becomes of text that is no JSON: a value that is_discarded(), or an exception of nlohmann's that says
// where.
enum class BadJson { discarded, throws };

bool is_json(std::string_view text);
nlohmann::json parse_json(std::string_view text, BadJson bad = BadJson::discarded);
nlohmann::ordered_json parse_ordered_json(std::string_view text, BadJson bad = BadJson::discarded);

// `indent`: spaces for each level; -1: all in one line. What is no UTF-8 is replaced by U+FFFD.
std::string dump_json(const nlohmann::json& value, int indent = -1);
std::string dump_json(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace shardscope::traces
