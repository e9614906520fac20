#include "traces/import/json/json_scan.h"

#include <array>
#include <cctype>

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kDeepest = 512;     // nested values; no tracer writes more
constexpr std::size_t kLongestKey = 256;  // searched to decide whether a key follows a string

bool is_word(char c) {
    return !is_space(c) && c != ',' && c != '}' && c != ']' && c != '{' && c != '[' && c != '"' && c != ':';
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

void append_code_point(std::string& into, std::uint32_t code) {
    if (code < 0x80) {
        into += static_cast<char>(code);
    } else if (code < 0x800) {
        into += static_cast<char>(0xC0 | code >> 6);
        into += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        into += static_cast<char>(0xE0 | code >> 12);
        into += static_cast<char>(0x80 | (code >> 6 & 0x3F));
        into += static_cast<char>(0x80 | (code & 0x3F));
    } else {
        into += static_cast<char>(0xF0 | code >> 18);
        into += static_cast<char>(0x80 | (code >> 12 & 0x3F));
        into += static_cast<char>(0x80 | (code >> 6 & 0x3F));
        into += static_cast<char>(0x80 | (code & 0x3F));
    }
}

constexpr std::uint32_t kReplacement = 0xFFFD;

// A string may contain unescaped quotes or line ends; if it has both, more likely a comma or a bracket is
// missing after it.
constexpr const char* kAfterString = "a comma or a bracket after the text";

// RFC 8259's number.
bool is_number(std::string_view text) {
    std::size_t i = 0;
    const auto digits = [&] {
        const std::size_t from = i;
        while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]))) ++i;
        return i > from;
    };
    if (i < text.size() && text[i] == '-') ++i;
    if (!digits()) return false;
    if (i < text.size() && text[i] == '.') {
        ++i;
        if (!digits()) return false;
    }
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        ++i;
        if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
        if (!digits()) return false;
    }
    return i == text.size();
}

}  // namespace

char JsonScanner::peek_at(std::size_t at) const {
    if (at < text_.size()) return text_[at];
    if (!at_end_) throw Incomplete();
    return '\0';
}

std::size_t JsonScanner::skip_space(std::size_t at) const {
    while (at < text_.size() && is_space(text_[at])) ++at;
    return at;
}

char JsonScanner::next() {
    at_ = skip_space(at_);
    if (at_ >= text_.size()) throw Incomplete();
    return text_[at_];
}

void JsonScanner::expect(char c, const char* expected) {
    if (next() != c) throw Broken{at_, expected};
    ++at_;
}

bool JsonScanner::take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
}

// Whether the quote at `quote` ends its string: what follows must be able to follow a string there.
bool JsonScanner::closes(std::size_t quote, bool key) const {
    const auto after = [&](std::size_t from) {
        const std::size_t at = skip_space(from);
        if (at >= text_.size() && !at_end_) throw Incomplete();
        return at;
    };
    std::size_t at = after(quote + 1);
    if (at >= text_.size()) return true;
    if (key) return text_[at] == ':';
    const char c = text_[at];
    if (c == '}' || c == ']') {
        at = after(at + 1);
        return at >= text_.size() || text_[at] == ',' || text_[at] == '}' || text_[at] == ']';
    }
    if (c != ',') return false;
    at = after(at + 1);
    if (at >= text_.size()) return true;
    if (text_[at] != '"') return text_[at] != ',';  // an array's next element; an object would have a key
    // Accepts a key with its colon, or a string of an array.
    for (std::size_t end = at + 1; end < at + kLongestKey; ++end) {
        const char in = peek_at(end);
        if (in == '\0' || in == '\n') return true;
        if (in == '\\') {
            ++end;
            continue;
        }
        if (in != '"') continue;
        const std::size_t colon = after(end + 1);
        if (colon >= text_.size()) return true;
        return text_[colon] == ':' || text_[colon] == ',' || text_[colon] == ']';
    }
    return true;
}

void JsonScanner::read_escape(std::string& into) {
    const char c = peek_at(at_ + 1);
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const auto i = kLetters.find(c); c != '\0' && i != kLetters.npos) {
        into += kMeanings[i];
        at_ += 2;
        return;
    }
    const auto unit = [&](std::size_t at) {
        std::uint32_t code = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            const int digit = hex_digit(peek_at(at + i));
            if (digit < 0) return -1;
            code = code << 4 | static_cast<std::uint32_t>(digit);
        }
        return static_cast<int>(code);
    };
    if (c == 'u') {
        if (const int first = unit(at_ + 2); first >= 0) {
            auto code = static_cast<std::uint32_t>(first);
            at_ += 6;
            if (code >= 0xD800 && code < 0xDC00 && peek_at(at_) == '\\' && peek_at(at_ + 1) == 'u') {
                if (const int second = unit(at_ + 2); second >= 0xDC00 && second < 0xE000) {
                    code = 0x10000 + ((code - 0xD800) << 10) + (static_cast<std::uint32_t>(second) - 0xDC00);
                    at_ += 6;
                }
            }
            const bool lone = code >= 0xD800 && code < 0xE000;
            if (lone) ++repairs_.utf8;
            append_code_point(into, lone ? kReplacement : code);
            return;
        }
    }
    ++repairs_.backslashes;  // a Windows path
    into += '\\';
    ++at_;
}

// Appends one character of several bytes; what is not UTF-8 becomes U+FFFD.
void JsonScanner::append_utf8(std::string& into) {
    const auto first = static_cast<unsigned char>(text_[at_]);
    const std::size_t size = first >= 0xF0 && first < 0xF5   ? 4
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xC2 && first < 0xE0 ? 2
                                                             : 0;
    std::uint32_t code = size == 4 ? first & 0x07 : size == 3 ? first & 0x0F : first & 0x1F;
    bool good = size != 0;
    for (std::size_t i = 1; good && i < size; ++i) {
        const auto byte = static_cast<unsigned char>(peek_at(at_ + i));
        good = (byte & 0xC0) == 0x80;
        code = code << 6 | (byte & 0x3F);
    }
    if (good && size == 3) good = code >= 0x800 && (code < 0xD800 || code >= 0xE000);
    if (good && size == 4) good = code >= 0x10000 && code < 0x110000;
    if (good) {
        into.append(text_.substr(at_, size));
        at_ += size;
    } else {
        ++repairs_.utf8;
        append_code_point(into, kReplacement);
        ++at_;
    }
}

void JsonScanner::read_string(std::string& into, bool key) {
    into.clear();
    expect('"', "a string");
    std::size_t inner_quote = 0;  // the first quote that seems to belong to the text
    for (;;) {
        if (at_ >= text_.size()) throw Incomplete();
        const char c = text_[at_];
        if (c == '\n' && inner_quote != 0) throw Broken{inner_quote, kAfterString};
        if (c == '"') {
            if (closes(at_, key)) {
                ++at_;
                return;
            }
            ++repairs_.quotes;
            if (inner_quote == 0) inner_quote = at_;
            into += c;
            ++at_;
        } else if (c == '\\') {
            read_escape(into);
        } else if (static_cast<unsigned char>(c) >= 0x80) {
            append_utf8(into);
        } else {
            if (static_cast<unsigned char>(c) < 0x20) ++repairs_.controls;
            into += c;
            ++at_;
        }
    }
}

void JsonScanner::skip_string() {
    ++at_;
    std::size_t inner_quote = 0;
    for (;;) {
        if (at_ >= text_.size()) throw Incomplete();
        const char c = text_[at_];
        if (c == '\n' && inner_quote != 0) throw Broken{inner_quote, kAfterString};
        if (c == '"' &&
            closes(at_, skip_space(at_ + 1) < text_.size() && text_[skip_space(at_ + 1)] == ':')) {
            ++at_;
            return;
        }
        if (c == '"' && inner_quote == 0) inner_quote = at_;
        // Even in a Windows path, a backslash before the closing quote escapes the quote.
        at_ += c == '\\' ? 2 : 1;
    }
}

void JsonScanner::skip_value() {
    std::array<char, kDeepest> open{};  // the closing brackets that are expected
    std::size_t depth = 0;
    do {
        const char c = next();
        if (c == '"') {
            skip_string();
        } else if (c == '{' || c == '[') {
            if (depth == open.size()) throw Broken{at_, "less deeply nested values"};
            open[depth++] = c == '{' ? '}' : ']';
            ++at_;
        } else if (c == '}' || c == ']') {
            if (depth == 0 || open[depth - 1] != c) throw Broken{at_, "a value"};
            --depth;
            ++at_;
        } else if (c == ',' || c == ':') {
            if (depth == 0) throw Broken{at_, "a value"};
            ++at_;
        } else {
            while (at_ < text_.size() && is_word(text_[at_])) ++at_;
            if (at_ >= text_.size() && !at_end_) throw Incomplete();
        }
    } while (depth > 0);
}

JsonScalar JsonScanner::read_value(std::string& scratch) {
    const char c = next();
    if (c == '"') {
        read_string(scratch, false);
        return {JsonKind::string, scratch};
    }
    const std::size_t from = at_;
    skip_value();
    const std::string_view text = text_.substr(from, at_ - from);
    if (c == '{') return {JsonKind::object, text};
    if (c == '[') return {JsonKind::array, text};
    if (is_number(text)) return {JsonKind::number, text};
    if (text != "true" && text != "false" && text != "null") ++repairs_.words;
    return {JsonKind::word, text};
}

}  // namespace shardscope::traces::importer
