// See saved_session.h.
#include "viewer/model/saved_session.h"

#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/json_text.h"
#include "viewer/model/fields.h"

namespace shardscope::viewer::model {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr const char* kVersionKey = "shardscope_session";

}  // namespace

std::string session_text(const SavedSession& session) {
    JsonOut json = {{kVersionKey, kFormat}};
    json.update(field_json(session));
    return traces::schema::dump_json(json, 1) + "\n";
}

ReadSession parse_session(std::string_view text) {
    JsonIn json;
    try {
        json = traces::schema::parse_json(text, traces::schema::BadJson::throws);
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(fmt::format("it is damaged: {}", error.what()));
    }
    std::int64_t version = 0;
    LeftOut left_out;
    const auto it = json.is_object() ? json.find(kVersionKey) : json.end();
    if (it == json.end() || !take_field(*it, version, left_out) || version < 1)
        throw std::runtime_error(fmt::format("it is not a session: it has no key {}", kVersionKey));
    if (version > kFormat)
        throw std::runtime_error(fmt::format(
            "a newer version of shardscope-view wrote it (format {}, this one reads {})", version, kFormat));
    ReadSession read;
    take_field(json, read.session, left_out);
    read.left_out = std::move(left_out.places);
    return read;
}

std::string some_of(const std::vector<std::string>& list) {
    constexpr std::size_t kMost = 3, kLongest = 200;
    std::string text;
    for (std::size_t i = 0; i < list.size() && i < kMost; ++i) {
        const bool last = i + 1 == list.size();
        text += (i == 0 ? "" : last ? " and " : ", ") + list[i].substr(0, kLongest);
    }
    return list.size() > kMost ? fmt::format("{} and {} more", text, list.size() - kMost) : text;
}

}  // namespace shardscope::viewer::model
