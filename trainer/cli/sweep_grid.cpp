#include "trainer/cli/sweep_grid.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "trainer/job/keys.h"

namespace shardscope::trainer::cli {

namespace {

constexpr std::size_t kMaxNameBytes =
    200;  // file systems allow 255, including the suffixes of SQLite's side files

[[noreturn]] void refuse(const std::string& key, const std::string& why) {
    throw job::JobError(fmt::format("command line: --{}: {}", key, why));
}

const job::Key& key_of(const std::string& full_name) {
    if (const job::Key* key = job::find_key(full_name)) return *key;
    refuse(full_name, job::unknown_key(full_name));
}

// A trailing separator ends the last value and does not begin another.
std::vector<std::string> split_at(const std::string& text, char separator) {
    std::vector<std::string> pieces(1);
    int depth = 0;
    for (const char c : text) {
        if (c == '[') ++depth;
        if (c == ']') --depth;
        if (c == separator && depth <= 0) {
            pieces.emplace_back();
        } else {
            pieces.back() += c;
        }
    }
    if (separator == ';' && pieces.size() > 1 && pieces.back().empty()) pieces.pop_back();
    return pieces;
}

// What is wrong with a value, or ""; the setter checks the form of a text.
std::string fault(const job::Key& key, const std::string& text) {
    const auto value = parse_value(key.type, text);
    if (!value) return fmt::format("\"{}\" is not {}; use {}", text, name(key.type), allowed(key));
    if (std::string wrong = problem(key, *value); !wrong.empty()) return wrong;
    try {
        job::Job scratch;
        key.set(scratch, *value);
    } catch (const job::JobError& error) {
        return error.what();
    }
    return {};
}

// The value in the key's canonical form: "true" and "on" are one value.
std::string canonical(const job::Key& key, const std::string& text) {
    const auto value = parse_value(key.type, text);
    return value ? job::to_text(*value) : text;
}

std::vector<std::string> values_of(const job::Key& key, const std::vector<std::string>& texts) {
    const std::string full_name = key.full_name();
    if (texts.size() > 1) return texts;
    const std::string& text = texts.front();
    if (text.find(';') != std::string::npos) return split_at(text, ';');
    std::vector<std::string> pieces = split_at(text, ',');
    if (pieces.size() == 1) return pieces;
    const std::string way =
        fmt::format("write --{}='{};' for one value with commas, ';' between several", full_name, text);
    if (key.type == job::ValueType::numbers) {
        const bool bracketed = std::all_of(pieces.begin(), pieces.end(),
                                           [](const std::string& piece) { return piece.starts_with('['); });
        if (!bracketed)
            refuse(full_name,
                   fmt::format("the commas of \"{}\" may separate values or belong to one; {}", text, way));
        return pieces;
    }
    // If a comma belongs to a value ("module:A,B"), the whole text is a value but its pieces are not.
    for (const std::string& piece : pieces) {
        const std::string wrong = fault(key, piece);
        if (!wrong.empty() && fault(key, text).empty())
            refuse(full_name, fmt::format("a comma separates values, but \"{}\" is none; {}", piece, way));
    }
    return pieces;
}

void check_values(const job::Key& key, const std::vector<std::string>& values, bool repeated) {
    const char* hint = repeated ? " (a key that is given again has one value each time)" : "";
    std::set<std::string> seen;
    for (const std::string& value : values) {
        if (const std::string wrong = fault(key, value); !wrong.empty())
            refuse(key.full_name(), wrong + hint);
        if (!seen.insert(canonical(key, value)).second)
            refuse(key.full_name(), fmt::format("\"{}\" is given twice; name each value once", value));
    }
}

std::string file_name_of(const std::string& text) {
    std::string name;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           c == '.' || c == '_' || c == '+' || c == '-';
        name += plain ? c : '-';
    }
    return name;
}

}  // namespace

SweepGrid make_grid(const std::vector<job::Override>& overrides) {
    std::vector<std::pair<std::string, std::vector<std::string>>> given;  // in the order of the command line
    for (const job::Override& override : overrides) {
        const auto found = std::find_if(given.begin(), given.end(),
                                        [&](const auto& entry) { return entry.first == override.key; });
        if (found == given.end()) {
            given.push_back({override.key, {override.value}});
        } else {
            found->second.push_back(override.value);
        }
    }
    SweepGrid grid;
    std::size_t runs = 1;
    for (const auto& [full_name, texts] : given) {
        if (full_name == "run.trace")
            refuse(full_name, "a sweep names its traces; give their folder with -o FOLDER");
        if (full_name == "run.overwrite") refuse(full_name, "use --overwrite");
        const job::Key& key = key_of(full_name);
        std::vector<std::string> values = values_of(key, texts);
        check_values(key, values, texts.size() > 1);
        runs *= values.size();
        if (runs > kMaxSweepRuns) {
            throw job::JobError(fmt::format(
                "command line: the values make more than {} combinations; name fewer", kMaxSweepRuns));
        }
        if (values.size() == 1) {
            grid.fixed.push_back({full_name, values.front()});
        } else {
            grid.axes.push_back({full_name, std::move(values)});
        }
    }
    return grid;
}

std::vector<std::string> short_names(const std::vector<SweepAxis>& axes) {
    const auto last_word = [](const std::string& key) { return key.substr(key.find('.') + 1); };
    std::vector<std::string> names;
    for (const SweepAxis& axis : axes) {
        const auto same = std::count_if(axes.begin(), axes.end(), [&](const SweepAxis& other) {
            return last_word(other.key) == last_word(axis.key);
        });
        names.push_back(same > 1 ? axis.key : last_word(axis.key));
    }
    return names;
}

std::vector<SweepPoint> combinations(const SweepGrid& grid, const std::string& job_name) {
    const std::vector<std::string> words = short_names(grid.axes);
    std::size_t count = 1;
    for (const SweepAxis& axis : grid.axes) count *= axis.values.size();

    std::vector<SweepPoint> points;
    std::set<std::string> taken;
    for (std::size_t n = 0; n < count; ++n) {
        SweepPoint point;
        std::size_t rest = n;
        for (std::size_t a = grid.axes.size(); a-- > 0;) {  // the last axis changes fastest
            const SweepAxis& axis = grid.axes[a];
            point.settings.insert(point.settings.begin(), {axis.key, axis.values[rest % axis.values.size()]});
            rest /= axis.values.size();
        }
        std::string name = grid.axes.empty() ? file_name_of(job_name) : "";
        for (std::size_t a = 0; a < words.size(); ++a)
            name += fmt::format("{}{}={}", a ? "," : "", words[a], file_name_of(point.settings[a].value));
        if (name.size() > kMaxNameBytes) name = fmt::format("run-{}", n + 1);
        point.name = name;
        for (int again = 2; !taken.insert(point.name).second; ++again)
            point.name = fmt::format("{}-{}", name, again);
        points.push_back(std::move(point));
    }
    return points;
}

}  // namespace shardscope::trainer::cli
