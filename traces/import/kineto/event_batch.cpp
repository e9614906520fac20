#include "traces/import/kineto/event_batch.h"

#include <array>
#include <string_view>

#include <simdjson.h>

namespace shardscope::traces::importer {

namespace {

namespace od = simdjson::ondemand;

bool is_blank(char c) {
    return static_cast<unsigned char>(c) <= ' ';
}

// The characters of a key between its quotes, found backwards from the value: only a colon and perhaps white
// space lie in between. No key that we know has an escape.
std::string_view key_text(od::field& field) {
    const char* from = field.key().raw();
    const char* end = field.value().raw_json_token().data() - 1;
    while (end > from && is_blank(*end)) --end;
    if (end > from && *end == ':') --end;
    while (end > from && is_blank(*end)) --end;
    return {from, static_cast<std::size_t>(end - from)};
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

constexpr auto kOfNumbers = [] {
    std::array<bool, 256> of{};
    for (const char c : std::string_view("0123456789+-.eE")) of[static_cast<unsigned char>(c)] = true;
    return of;
}();

// Numbers and words are checked here, since simdjson parses a value only on request.
bool read_scalar(od::value& value, JsonScalar& into) {
    od::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) return false;
    const auto whole = [&](auto found, JsonKind kind) {
        std::string_view text;
        if (value.get(found) != simdjson::SUCCESS || found.raw_json().get(text) != simdjson::SUCCESS)
            return false;
        into = {kind, text};
        return true;
    };
    switch (type) {
        case od::json_type::string: {
            std::string_view text;
            if (value.get_string().get(text) != simdjson::SUCCESS) return false;
            into = {JsonKind::string, text};
            return true;
        }
        case od::json_type::number: {
            const std::string_view text = value.raw_json_token();  // with the white space that follows
            std::size_t size = 0;
            while (size < text.size() && kOfNumbers[static_cast<unsigned char>(text[size])]) ++size;
            if (!trimmed(text.substr(size)).empty()) return false;
            into = {JsonKind::number, text.substr(0, size)};
            return true;
        }
        case od::json_type::array:
            return whole(od::array(), JsonKind::array);
        case od::json_type::object:
            return whole(od::object(), JsonKind::object);
        case od::json_type::boolean:
        case od::json_type::null: {
            const std::string_view text = trimmed(value.raw_json_token());
            if (text != "true" && text != "false" && text != "null") return false;
            into = {JsonKind::word, text};
            return true;
        }
    }
    return false;
}

bool read_args(od::value& value, TraceEvent& event) {
    od::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) return false;
    if (type != od::json_type::object) return true;  // no arguments that we know
    od::object args;
    if (value.get_object().get(args) != simdjson::SUCCESS) return false;
    const bool counts = !event.has(EventKey::ph) || event.text(EventKey::ph) == "C";
    for (auto result : args) {
        if (result.error() != simdjson::SUCCESS) return false;
        od::field& field = result.value_unsafe();  // by reference: a copy costs more than the rest of it
        const std::string_view text = key_text(field);
        const EventKey key = padded_arg_key(text);
        if (key == EventKey::count && !counts) continue;
        JsonScalar scalar;
        if (!read_scalar(field.value(), scalar)) return false;
        if (key != EventKey::count) event.set(key, scalar);
        if (counts && scalar.kind == JsonKind::number) event.numbers.emplace_back(text, scalar.text);
    }
    return true;
}

bool read_event(od::object& object, TraceEvent& event) {
    for (auto result : object) {
        if (result.error() != simdjson::SUCCESS) return false;
        od::field& field = result.value_unsafe();
        const EventKey key = padded_event_key(key_text(field));
        if (key == EventKey::count) continue;
        if (key == EventKey::args) {
            if (!read_args(field.value(), event)) return false;
            continue;
        }
        JsonScalar scalar;
        if (!read_scalar(field.value(), scalar)) return false;
        event.set(key, scalar);
    }
    return true;
}

}  // namespace

struct EventBatchParser::Impl {
    od::parser parser;
    TraceEvent event;
};

EventBatchParser::EventBatchParser() : impl_(std::make_unique<Impl>()) {}
EventBatchParser::~EventBatchParser() = default;

std::size_t EventBatchParser::padding() {
    return simdjson::SIMDJSON_PADDING;
}

EventBatchParser::Result EventBatchParser::parse(const char* text, std::size_t size, std::uint64_t offset,
                                                 EventHandler& handler) {
    Result result;
    od::document document;
    if (impl_->parser.iterate(text, size, size + padding()).get(document) != simdjson::SUCCESS) return result;
    od::array array;
    if (document.get_array().get(array) != simdjson::SUCCESS) return result;
    TraceEvent& event = impl_->event;
    for (auto element : array) {
        od::value value;
        if (element.get(value) != simdjson::SUCCESS) return result;
        const auto at = static_cast<std::size_t>(value.raw_json_token().data() - text);
        od::json_type type{};
        result.good = false;
        result.at = at;
        if (value.type().get(type) != simdjson::SUCCESS) return result;
        if (type != od::json_type::object) {
            JsonScalar ignored;
            if (!read_scalar(value, ignored)) return result;
        } else {
            od::object object;
            event.clear();
            event.offset = offset + at;
            if (value.get_object().get(object) != simdjson::SUCCESS || !read_event(object, event))
                return result;
            handler.event(event);
        }
        ++result.events;
        result.good = true;
    }
    return result;
}

}  // namespace shardscope::traces::importer
