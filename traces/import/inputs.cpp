#include "traces/import/inputs.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/core.h>

#include "traces/import/format.h"
#include "traces/import/read_file.h"

namespace shardscope::traces {

namespace fs = std::filesystem;

namespace {

bool is_trace(const std::string& path) {
    try {
        Input input = Input::open(path);
        sniff_format(input);
        return true;
    } catch (const StoreError&) {
        return false;
    }
}

// "worker2" before "worker10".
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
        throw StoreError(
            fmt::format("{} cannot be read ({}); check its permissions", folder, error.message()));
    if (found.empty())
        throw StoreError(fmt::format("{} is a folder without a trace in it; give a file", folder));
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

}  // namespace shardscope::traces
