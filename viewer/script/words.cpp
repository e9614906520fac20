// See words.h.
#include "viewer/script/words.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "traces/schema/sort_rows.h"
#include "traces/schema/text.h"

namespace shardscope::viewer::script {
namespace {

bool blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

char escaped(char c) {
    return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

// Takes one word from the front; false if a quote is not closed.
bool take_word(std::string_view& line, std::string& word) {
    word.clear();
    if (line.front() != '"') {
        std::size_t end = 0;
        while (end < line.size() && !blank(line[end])) ++end;
        word = line.substr(0, end);
        line.remove_prefix(end);
        return true;
    }
    line.remove_prefix(1);
    while (!line.empty()) {
        const char c = line.front();
        line.remove_prefix(1);
        if (c == '"') return true;
        if (c == '\\' && !line.empty()) {
            word += escaped(line.front());
            line.remove_prefix(1);
        } else {
            word += c;
        }
    }
    return false;
}

std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
        }
    }
    return row.back();
}

}  // namespace

Words split_words(std::string_view line) {
    Words result;
    line = traces::schema::trimmed(line);
    std::string word;
    while (!line.empty() && line.front() != '#') {
        if (!take_word(line, word)) {
            result.error = "a quote is not closed";
            return result;
        }
        result.words.push_back(word);
        line = traces::schema::trimmed(line);
        if (result.words.size() == 1) result.rest = line;
    }
    // If the rest is one quoted word, removes the quotes.
    if (result.words.size() == 2 && result.rest.starts_with('"')) result.rest = result.words[1];
    return result;
}

std::vector<std::string> nearest_names(std::string_view wanted, const std::vector<std::string>& names,
                                       std::size_t most) {
    std::vector<std::pair<std::size_t, std::string_view>> found;
    for (const std::string& name : names) {
        const std::string_view start = std::string_view(name).substr(0, 200);
        if (!wanted.empty() && name.find(wanted) != std::string::npos) {
            found.emplace_back(0, name);
        } else if (const std::size_t d = distance(wanted.substr(0, 200), start);
                   d <= std::max(wanted.size(), start.size()) / 2) {
            found.emplace_back(d, name);
        }
    }
    traces::schema::sort_rows(found, [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> nearest;
    for (std::size_t i = 0; i < std::min(most, found.size()); ++i) nearest.emplace_back(found[i].second);
    return nearest;
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names) {
    const std::vector<std::string> nearest = nearest_names(wanted, names);
    if (nearest.empty()) return "";
    std::string text;
    for (const std::string& name : nearest) text += (text.empty() ? "" : ", ") + name;
    return "; did you mean " + text + "?";
}

}  // namespace shardscope::viewer::script
