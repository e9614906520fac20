// Reads JSON as programs really write it, one value or one string at a time, in place. A slow and tolerant
// fallback for what simdjson refuses. It accepts and counts these deviations from JSON: bare words (N/A, NaN,
// inf), raw control characters, bytes that are not UTF-8, backslashes that escape nothing, unescaped quotes
// within a string (distinguished from the closing one by what follows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::traces::importer {

// White space of JSON.
constexpr bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

enum class JsonKind : std::uint8_t { none, string, number, word, array, object };

// `text`: unescaped for a string, otherwise as it is written.
struct JsonScalar {
    JsonKind kind = JsonKind::none;
    std::string_view text;

    bool is_text() const { return kind == JsonKind::string; }
    explicit operator bool() const { return kind != JsonKind::none; }
};

// The number of deviations from JSON, by kind.
struct JsonRepairs {
    std::uint64_t words = 0, controls = 0, utf8 = 0, backslashes = 0, quotes = 0;
    std::uint64_t sum() const { return words + controls + utf8 + backslashes + quotes; }
};

class JsonScanner {
  public:
    // Thrown as values are read. Incomplete: the text ends within the value (more of the file may follow).
    // Broken: the text at `at` is not valid JSON.
    struct Incomplete {};
    struct Broken {
        std::size_t at = 0;
        const char* expected = "";
    };

    // `at_end`: nothing follows the text.
    JsonScanner(std::string_view text, bool at_end, JsonRepairs& repairs)
        : text_(text), at_end_(at_end), repairs_(repairs) {}

    std::size_t position() const { return at_; }

    // The next character that is not white space, without moving past it.
    char next();
    // Moves past `c`, or throws Broken.
    void expect(char c, const char* expected);
    bool take(char c);  // moves past it if it is there

    // A string with its quotes; `key`: a colon follows. Unescaped into `into`.
    void read_string(std::string& into, bool key);
    // Moves past any value and returns its text as it is written. A string is unescaped into `scratch`, which
    // then holds the scalar's text.
    JsonScalar read_value(std::string& scratch);
    void skip_value();

  private:
    char peek_at(std::size_t at) const;
    bool closes(std::size_t quote, bool key) const;
    std::size_t skip_space(std::size_t at) const;
    void skip_string();
    void read_escape(std::string& into);
    void append_utf8(std::string& into);

    std::string_view text_;
    bool at_end_;
    JsonRepairs& repairs_;
    std::size_t at_ = 0;
};

}  // namespace shardscope::traces::importer
