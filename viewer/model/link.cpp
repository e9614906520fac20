// See link.h.
#include "viewer/model/link.h"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"
#include "viewer/model/fields.h"

namespace shardscope::viewer::model {
namespace {

constexpr int kLinkFormat = 1;
constexpr std::string_view kHex = "0123456789ABCDEF";

std::string encoded(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           std::string_view("-._~,").find(c) != std::string_view::npos;
        const auto byte = static_cast<unsigned char>(c);
        if (plain) {
            result += c;
        } else {
            result += {'%', kHex[byte >> 4], kHex[byte & 15]};
        }
    }
    return result;
}

std::string decoded(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            result += text[i];
            continue;
        }
        int byte = 0;
        for (const std::size_t at : {i + 1, i + 2}) {
            const char c = at < text.size() ? text[at] : ' ';
            const std::size_t digit = kHex.find(c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c);
            if (digit == std::string_view::npos)
                throw std::runtime_error(
                    fmt::format("it is damaged: \"{}\" is no character", text.substr(i, 3)));
            byte = byte * 16 + static_cast<int>(digit);
        }
        result += static_cast<char>(byte);
        i += 2;
    }
    return result;
}

// The keys whose values are written as they are, and as two numbers; others are JSON.
struct Keys {
    std::set<std::string, std::less<>> texts, ranges;
};
Keys keys_of_link() {
    Keys keys;
    Link link;
    fields(link, [&](const char* key, const auto& member) {
        using Member = std::remove_cvref_t<decltype(member)>;
        if constexpr (std::same_as<Member, std::string> || HasNames<Member>) keys.texts.insert(key);
        if constexpr (std::same_as<Member, std::optional<TimeRange>>) keys.ranges.insert(key);
    });
    return keys;
}

// As it was copied: with blanks and line ends around it.
}  // namespace

std::string link_text(const Link& link) {
    std::string text = fmt::format("{}{}", kLinkScheme, kLinkFormat);
    char before = '?';
    const Keys keys = keys_of_link();
    const JsonOut json = field_json(link);
    for (const auto& [key, value] : json.items()) {
        std::string own = value.is_string() ? value.get<std::string>() : traces::schema::dump_json(value);
        if (keys.ranges.count(key) > 0) own = own.substr(1, own.size() - 2);
        text += fmt::format("{}{}={}", before, key, encoded(own));
        before = '&';
    }
    return text;
}

ReadLink parse_link(std::string_view text) {
    text = traces::schema::trimmed(text);
    if (!text.starts_with(kLinkScheme))
        throw std::runtime_error(fmt::format("it does not begin with {}", kLinkScheme));
    if (text.size() > kLongestLink)
        throw std::runtime_error(fmt::format("it is longer than {} characters", kLongestLink));
    text.remove_prefix(kLinkScheme.size());
    const std::size_t query = text.find('?');
    const auto version = traces::schema::number_of<int>(text.substr(0, query));
    if (!version || *version < 1) throw std::runtime_error("it is damaged: it has no version");
    if (*version > kLinkFormat)
        throw std::runtime_error(
            fmt::format("a newer version of shardscope-view made it (format {}, this one reads {})", *version,
                        kLinkFormat));
    text = query == std::string_view::npos ? std::string_view() : text.substr(query + 1);
    const Keys keys = keys_of_link();
    JsonIn json = JsonIn::object();
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('&'), text.size());
        const std::string_view part = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t equals = std::min(part.find('='), part.size());
        const std::string key = decoded(part.substr(0, equals));
        const std::string value = decoded(part.substr(std::min(equals + 1, part.size())));
        if (keys.texts.count(key) > 0) {
            json[key] = value;
        } else {
            json[key] = traces::schema::parse_json(keys.ranges.count(key) > 0 ? "[" + value + "]" : value);
        }
    }
    ReadLink read;
    LeftOut left_out;
    take_field(json, read.link, left_out);
    read.left_out = std::move(left_out.places);
    if (read.link.identity.content.empty()) throw std::runtime_error("it is damaged: it names no trace");
    return read;
}

}  // namespace shardscope::viewer::model
