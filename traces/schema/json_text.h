// JSON to and from text. nlohmann's parser and writer are templates that take a second or two each to
// compile: they are compiled once, in json_text.cpp.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace shardscope::traces {

// The result for text that is not JSON: a value that is_discarded(), or an exception of nlohmann's with the
// position.
enum class BadJson { discarded, throws };

bool is_json(std::string_view text);
nlohmann::json parse_json(std::string_view text, BadJson bad = BadJson::discarded);
nlohmann::ordered_json parse_ordered_json(std::string_view text, BadJson bad = BadJson::discarded);

// `indent`: spaces per level; -1: all in one line. Invalid UTF-8 is replaced by U+FFFD.
std::string dump_json(const nlohmann::json& value, int indent = -1);
std::string dump_json(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace shardscope::traces
