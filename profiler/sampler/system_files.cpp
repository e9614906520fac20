#include "profiler/sampler/system_files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "traces/schema/text.h"
#include "traces/store/file_descriptor.h"

namespace shardscope::profiler {
namespace {

std::optional<std::uint64_t> first_number(std::string_view text) {
    const std::size_t from = text.find_first_not_of(" \t");
    if (from == std::string_view::npos) return std::nullopt;
    std::uint64_t number = 0;
    const auto [behind, error] = std::from_chars(text.data() + from, text.data() + text.size(), number);
    return error == std::errc{} ? std::optional(number) : std::nullopt;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Digits that follow each other are compared as one number.
bool counts_before(std::string_view a, std::string_view b) {
    while (!a.empty() && !b.empty()) {
        const auto digits = [](std::string_view text) {
            return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) -
                                            text.begin());
        };
        const std::size_t of_a = digits(a), of_b = digits(b);
        if (of_a > 0 && of_b > 0) {
            if (of_a != of_b) return of_a < of_b;
            if (const int order = a.substr(0, of_a).compare(b.substr(0, of_b)); order != 0) return order < 0;
            a.remove_prefix(of_a);
            b.remove_prefix(of_b);
        } else {
            if (a[0] != b[0]) return a[0] < b[0];
            a.remove_prefix(1);
            b.remove_prefix(1);
        }
    }
    return a.size() < b.size();
}

}  // namespace

std::optional<std::string> SystemFiles::read(const std::string& path, int* error, std::size_t most) const {
    const traces::store::FileDescriptor file(
        ::open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const auto failed = [&]() -> std::optional<std::string> {
        if (error != nullptr) *error = errno;
        return std::nullopt;
    };
    if (!file) return failed();
    std::string text;
    char part[4096];
    while (text.size() < most) {
        const ssize_t size = ::read(file.get(), part, std::min(sizeof part, most - text.size()));
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return failed();
        if (size == 0) break;
        text.append(part, static_cast<std::size_t>(size));
    }
    return text;
}

std::string SystemFiles::line(const std::string& path) const {
    const std::optional<std::string> text = read(path, nullptr, 4096);
    if (!text) return "";
    return std::string(traces::schema::trimmed(std::string_view(*text).substr(0, text->find('\n'))));
}

std::optional<std::uint64_t> SystemFiles::number(const std::string& path, int* error) const {
    const std::optional<std::string> text = read(path, error, 64);
    if (!text) return std::nullopt;
    if (error != nullptr) *error = EINVAL;  // if it is not a number
    return first_number(*text);
}

bool SystemFiles::exists(const std::string& path) const {
    return ::access((root_ + path).c_str(), F_OK) == 0;
}

std::vector<std::string> SystemFiles::names_in(const std::string& folder) const {
    std::vector<std::string> names;
    DIR* entries = ::opendir((root_ + folder).c_str());
    if (entries == nullptr) return names;
    while (const dirent* entry = ::readdir(entries)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(entries);
    std::sort(names.begin(), names.end(), counts_before);
    return names;
}

std::string SystemFiles::target_of(const std::string& link) const {
    char target[PATH_MAX];
    const ssize_t size = ::readlink((root_ + link).c_str(), target, sizeof target);
    if (size <= 0) return "";
    const std::string_view path(target, static_cast<std::size_t>(size));
    return std::string(path.substr(path.rfind('/') + 1));  // all of it without a slash
}

std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view word) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = text.substr(at, end - at);
        at = end + 1;
        if (!line.starts_with(word)) continue;
        const std::string_view rest = line.substr(word.size());
        if (rest.empty() || (rest[0] != ' ' && rest[0] != '\t')) continue;  // a longer word
        return first_number(rest);
    }
    return std::nullopt;
}

std::int64_t count_of_list(std::string_view list) {
    std::int64_t count = 0;
    for (list = traces::schema::trimmed(list); !list.empty();) {
        const std::size_t comma = std::min(list.find(','), list.size());
        const std::string_view part = list.substr(0, comma);
        list.remove_prefix(std::min(comma + 1, list.size()));
        const std::size_t dash = part.find('-');
        const auto first = first_number(part);
        const auto last = dash == std::string_view::npos ? first : first_number(part.substr(dash + 1));
        if (!first || !last || *last < *first || *last > 1'000'000) return 0;
        count += static_cast<std::int64_t>(*last - *first) + 1;
    }
    return count;
}

}  // namespace shardscope::profiler
