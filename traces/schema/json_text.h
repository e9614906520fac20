// JSON to and from text. nlohmann's parser and writer are templates that take a second or two each to
// compile: they are compiled once, in json_text.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace shardscope::traces::schema {

// What parsing does with text that is not JSON: it returns a value that is_discarded(), or throws
// nlohmann's exception, which has the position.
enum class BadJson { discarded, throws };

bool is_json(std::string_view text);
nlohmann::json parse_json(std::string_view text, BadJson bad = BadJson::discarded);
nlohmann::ordered_json parse_ordered_json(std::string_view text, BadJson bad = BadJson::discarded);

// `indent`: spaces per level; -1: all in one line. Invalid UTF-8 is replaced by U+FFFD.
std::string dump_json(const nlohmann::json& value, int indent = -1);
std::string dump_json(const nlohmann::ordered_json& value, int indent = -1);

// The member's text; empty if `object` has no such member or it is not a string.
std::string string_member(const nlohmann::json& object, const char* key);

// The functions below are for sources that read little JSON: these need not compile <nlohmann/json.hpp> (1
// to 2 s).

// Each key of an object and its value: a string as it is, anything else as JSON. Nothing if the text is not
// an object.
std::optional<std::vector<std::pair<std::string, std::string>>> json_members(std::string_view text);

// The text of an object in one line, its keys sorted; empty if the text is not an object or has no keys.
std::string object_in_one_line(std::string_view text);

// A list of strings. Nothing if the text is something else.
std::optional<std::vector<std::string>> json_strings(std::string_view text);
std::string dump_strings(const std::vector<std::string>& strings);

}  // namespace shardscope::traces::schema
