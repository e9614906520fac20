// Structs to and from JSON by one list of their fields: fields(value, visit), found beside the struct, calls
// visit(key, member) for each. The list takes the struct apart by a structured binding, so that a field that
// is added to the struct and not to the list does not compile. Enums have names(), and a value that is read
// must pass is_valid() where its type has that.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "viewer/model/place.h"

namespace shardscope::viewer::model {

using JsonOut = nlohmann::ordered_json;
using JsonIn = nlohmann::json;  // ordered_json takes quadratic time for an object with many keys

// What was left out while reading, by its place: "traces[1].place.limit".
struct LeftOut {
    std::vector<std::string> places;
    std::string at;  // the place that is being read
};

template <class T>
concept HasFields = requires(T& value) {
    fields(value, [](const char*, auto&) {});
};
template <class T>
concept HasNames = requires(T value) {
    names(value).size();
};

// --- to JSON: a member that has its default value is left out

template <class T>
requires std::integral<T> JsonOut field_json(T value) {
    return value;
}
inline JsonOut field_json(const std::string& value) {
    return value;
}
template <HasNames T>
JsonOut field_json(T value) {
    return names(value).at(static_cast<std::size_t>(value));  // throws where a name is missing
}
inline JsonOut field_json(const TimeRange& range) {
    return JsonOut::array({range.from, range.to});
}
template <HasFields T>
JsonOut field_json(const T& value);
template <class T>
JsonOut field_json(const std::optional<T>& value) {
    return value ? field_json(*value) : JsonOut();
}
template <class List>
JsonOut list_json(const List& list) {
    JsonOut json = JsonOut::array();
    for (const auto& value : list) json.push_back(field_json(value));
    return json;
}
template <class T>
JsonOut field_json(const std::vector<T>& list) {
    return list_json(list);
}
template <class T>
JsonOut field_json(const std::set<T>& list) {
    return list_json(list);
}
template <class T>
JsonOut field_json(const std::map<std::string, T>& map) {
    JsonOut json = JsonOut::object();
    for (const auto& [key, value] : map) json[key] = field_json(value);
    return json;
}
template <HasFields T>
JsonOut field_json(const T& value) {
    JsonOut plain = JsonOut::object(), json = JsonOut::object();
    const T none{};
    fields(none, [&](const char* key, const auto& member) { plain[key] = field_json(member); });
    fields(value, [&](const char* key, const auto& member) {
        JsonOut own = field_json(member);
        if (own != plain[key]) json[key] = std::move(own);
    });
    return json;
}

// --- from JSON: false if the value has another type, or is not valid; parts that cannot be read are left out

template <class T>
requires std::integral<T>
bool take_field(const JsonIn& json, T& value, LeftOut&) {
    if constexpr (std::same_as<T, bool>) {
        if (json.is_boolean()) value = json.get<bool>();
        return json.is_boolean();
    } else {
        if (!json.is_number_integer()) return false;
        const bool large =
            json.is_number_unsigned() &&
            json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        if (large || !std::in_range<T>(json.get<std::int64_t>())) return false;
        value = static_cast<T>(json.get<std::int64_t>());
        return true;
    }
}
inline bool take_field(const JsonIn& json, std::string& value, LeftOut&) {
    if (json.is_string()) value = json.get<std::string>();
    return json.is_string();
}
inline bool take_field(const JsonIn& json, TimeRange& range, LeftOut& left_out) {
    return json.is_array() && json.size() == 2 && take_field(json[0], range.from, left_out) &&
           take_field(json[1], range.to, left_out) && is_valid(range);
}
template <HasNames T>
bool take_field(const JsonIn& json, T& value, LeftOut&) {
    const auto all = names(value);
    for (std::size_t i = 0; i < all.size() && json.is_string(); ++i) {
        if (json.get_ref<const std::string&>() != all[i]) continue;
        value = static_cast<T>(i);
        return true;
    }
    return false;
}
template <HasFields T>
bool take_field(const JsonIn& json, T& value, LeftOut& left_out);

// A part at a place below the current one.
template <class T>
bool take_part(const JsonIn& json, T& value, LeftOut& left_out, const std::string& place) {
    const std::size_t length = left_out.at.size();
    left_out.at += place;
    T read{};
    const bool taken = take_field(json, read, left_out);
    if (taken) {
        value = std::move(read);
    } else {
        left_out.places.push_back(left_out.at.starts_with('.') ? left_out.at.substr(1) : left_out.at);
    }
    left_out.at.resize(length);
    return taken;
}

template <class T>
bool take_field(const JsonIn& json, std::optional<T>& value, LeftOut& left_out) {
    if (json.is_null()) {
        value.reset();
        return true;
    }
    T read{};
    if (!take_field(json, read, left_out)) return false;
    value = std::move(read);
    return true;
}
template <class List>
bool take_list(const JsonIn& json, List& list, LeftOut& left_out) {
    if (!json.is_array()) return false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        typename List::value_type value{};
        if (take_part(json[i], value, left_out, fmt::format("[{}]", i)))
            list.insert(list.end(), std::move(value));
    }
    return true;
}
template <class T>
bool take_field(const JsonIn& json, std::vector<T>& list, LeftOut& left_out) {
    return take_list(json, list, left_out);
}
template <class T>
bool take_field(const JsonIn& json, std::set<T>& list, LeftOut& left_out) {
    return take_list(json, list, left_out);
}
template <class T>
bool take_field(const JsonIn& json, std::map<std::string, T>& map, LeftOut& left_out) {
    if (!json.is_object()) return false;
    for (const auto& [key, part] : json.items()) {
        T value{};
        if (take_part(part, value, left_out, "." + key)) map[key] = std::move(value);
    }
    return true;
}
template <HasFields T>
bool take_field(const JsonIn& json, T& value, LeftOut& left_out) {
    if (!json.is_object()) return false;
    fields(value, [&](const char* key, auto& member) {
        if (const auto it = json.find(key); it != json.end())
            take_part(*it, member, left_out, std::string(".") + key);
    });
    if constexpr (requires { is_valid(value); }) {
        return is_valid(value);
    } else {
        return true;
    }
}

// --- as text: empty if every field has its default value. Any text can be read.

template <HasFields T>
std::string fields_text(const T& value) {
    const JsonOut json = field_json(value);
    return json.empty() ? std::string() : traces::schema::dump_json(json);
}
template <HasFields T>
T fields_from(std::string_view text) {
    T value{};
    LeftOut ignored;
    take_field(traces::schema::parse_json(text), value, ignored);
    return value;
}

}  // namespace shardscope::viewer::model
