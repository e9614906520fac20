#include "traces/import/inputs.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/core.h>

#include "traces/import/importer_table.h"
#include "traces/schema/text.h"
#include "traces/store/error.h"

namespace shardscope::traces::importer {

namespace fs = std::filesystem;

namespace {

constexpr int kRankAtMost = 1 << 20;

// The number that begins at `at`, -1 if there is none.
int number_at(const std::string& text, std::size_t at) {
    int number = -1;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0; ++at) {
        number = (number < 0 ? 0 : number * 10) + (text[at] - '0');
        if (number > kRankAtMost) return -1;
    }
    return number;
}

// The number before the last extension ("trace_3.json"), -1 if there is none.
int number_of_name(const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    const std::string stem = name.substr(0, name.find('.'));
    const auto last = stem.find_last_not_of("0123456789");
    return number_at(stem, last == std::string::npos ? 0 : last + 1);
}

// Sorts "worker2" before "worker10".
bool natural_less(const std::string& a, const std::string& b) {
    const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (!digit(a[i]) || !digit(b[j])) {
            if (a[i] != b[j]) return a[i] < b[j];
            ++i;
            ++j;
            continue;
        }
        const auto number = [&](const std::string& text, std::size_t& at) {
            while (at < text.size() && text[at] == '0') ++at;
            const std::size_t from = at;
            while (at < text.size() && digit(text[at])) ++at;
            return text.substr(from, at - from);
        };
        const std::string x = number(a, i), y = number(b, j);
        if (x.size() != y.size()) return x.size() < y.size();
        if (x != y) return x < y;
    }
    return a.size() - i < b.size() - j;
}

void list_folder(const std::string& folder, std::vector<InputFile>& files) {
    std::vector<std::string> found;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        std::error_code ignored;
        if (name.starts_with('.') || name.ends_with("-wal") || name.ends_with("-shm") ||
            name.ends_with("-journal") || !entry.is_regular_file(ignored))
            continue;
        if (is_trace(entry.path().string())) found.push_back(entry.path().string());
    }
    if (error)
        throw store::StoreError(
            fmt::format("{} cannot be read ({}); check its permissions", folder, error.message()));
    if (found.empty())
        throw store::StoreError(fmt::format("{} is a folder without a trace in it; give a file", folder));
    std::sort(found.begin(), found.end(), natural_less);
    for (std::string& path : found) files.push_back({std::move(path), 0});
}

template <typename Number>
bool assign(std::vector<InputFile>& files, Number number, bool from_zero_on) {
    std::set<int> ranks;
    for (const InputFile& file : files) ranks.insert(number(file.path));
    if (ranks.size() != files.size() || *ranks.begin() < 0) return false;
    if (from_zero_on && (*ranks.begin() != 0 || *ranks.rbegin() != static_cast<int>(files.size()) - 1))
        return false;
    for (InputFile& file : files) file.rank = number(file.path);
    return true;
}

}  // namespace

int rank_of_name(const std::string& path) {
    const std::string name = schema::lower_case(fs::path(path).filename().string());
    for (const std::string word : {"rank", "worker"}) {
        for (auto at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
            std::size_t digits = at + word.size();
            if (digits < name.size() && std::strchr("-_=", name[digits]) != nullptr) ++digits;
            if (const int number = number_at(name, digits); number >= 0) return number;
        }
    }
    return -1;
}

std::vector<InputFile> list_inputs(const std::vector<std::string>& paths) {
    std::vector<InputFile> files;
    for (const std::string& path : paths) {
        std::error_code error;
        if (fs::is_directory(path, error)) {
            list_folder(path, files);
        } else {
            files.push_back({path, 0});
        }
    }
    if (assign(files, rank_of_name, false)) return files;
    if (files.size() > 1 && assign(files, number_of_name, true)) return files;
    for (std::size_t i = 0; i < files.size(); ++i) files[i].rank = static_cast<int>(i);
    return files;
}

std::vector<std::string> file_paths(const std::vector<std::string>& paths) {
    std::vector<std::string> files;
    for (const InputFile& file : list_inputs(paths)) files.push_back(file.path);
    return files;
}

}  // namespace shardscope::traces::importer
