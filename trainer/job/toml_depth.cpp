#include "trainer/job/toml_depth.h"

#include <cstddef>

namespace shardscope::trainer::job {

namespace {

// The end of the string that begins at `at`: '...', "...", or either with three quotes. Adds its line breaks
// to `line`.
std::size_t end_of_string(std::string_view text, std::size_t at, int& line) {
    const char quote = text[at];
    const std::string_view three = quote == '"' ? R"(""")" : "'''";
    const bool several_lines = text.substr(at).starts_with(three);
    at += several_lines ? 3 : 1;
    while (at < text.size()) {
        if (several_lines && text.substr(at).starts_with(three)) {
            at += 3;
            for (int more = 0; more < 2 && at < text.size() && text[at] == quote; ++more)
                ++at;  // up to two quotes before the closing three are text
            return at;
        }
        if (!several_lines && text[at] == quote) return at + 1;
        if (text[at] == '\n') {
            if (!several_lines) return at;  // the string is not closed, which the parser reports
            ++line;
        }
        at += quote == '"' && text[at] == '\\' && at + 1 < text.size() && text[at + 1] != '\n' ? 2 : 1;
    }
    return at;
}

}  // namespace

int line_too_deep(std::string_view text) {
    int line = 1, parts = 1;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == '"' || c == '\'') {
            at = end_of_string(text, at, line);
            continue;
        }
        ++at;
        switch (c) {
            case '.':
                if (++parts > kMostKeyParts) return line;
                break;
            case '#':
                while (at < text.size() && text[at] != '\n') ++at;
                break;
            case '\n':
                ++line;
                [[fallthrough]];
            case '=':
            case ',':
            case '[':
            case ']':
            case '{':
            case '}':
                parts = 1;
                break;
            default:
                break;
        }
    }
    return 0;
}

}  // namespace shardscope::trainer::job
