// See marks.h.
#include "viewer/timeline/marks.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "traces/schema/sort_rows.h"
#include "traces/schema/text.h"
#include "viewer/model/time_view.h"

namespace shardscope::viewer::timeline {
namespace {

bool earlier(const Mark& a, const Mark& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
}

}  // namespace

MarkBook::MarkBook(std::vector<Mark> marks) : marks_(std::move(marks)) {
    for (Mark& mark : marks_) mark.to = std::max(mark.from, mark.to);
    traces::schema::sort_rows(marks_, earlier);
}

std::size_t MarkBook::add(Mark mark) {
    mark.to = std::max(mark.from, mark.to);
    for (int n = 1; mark.text.empty(); ++n) {
        std::string name = fmt::format("{} {}", mark.is_range() ? "range" : "mark", n);
        if (std::none_of(marks_.begin(), marks_.end(), [&](const Mark& m) { return m.text == name; }))
            mark.text = std::move(name);
    }
    const auto at = std::upper_bound(marks_.begin(), marks_.end(), mark, earlier);
    const auto index = static_cast<std::size_t>(at - marks_.begin());
    marks_.insert(at, std::move(mark));
    return index;
}

void MarkBook::rename(std::size_t index, const std::string& text) {
    if (index < marks_.size() && !text.empty()) marks_[index].text = text;
}

void MarkBook::remove(std::size_t index) {
    if (index < marks_.size()) marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(index));
}

std::optional<std::size_t> MarkBook::after(std::int64_t time) const {
    const auto at =
        std::partition_point(marks_.begin(), marks_.end(), [time](const Mark& m) { return m.from <= time; });
    return at == marks_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - marks_.begin()));
}

std::optional<std::size_t> MarkBook::before(std::int64_t time) const {
    const auto at =
        std::partition_point(marks_.begin(), marks_.end(), [time](const Mark& m) { return m.from < time; });
    return at == marks_.begin() ? std::nullopt
                                : std::optional(static_cast<std::size_t>(at - marks_.begin()) - 1);
}

std::vector<std::int64_t> MarkBook::edges() const {
    std::vector<std::int64_t> edges;
    for (const Mark& mark : marks_) {
        edges.push_back(mark.from);
        if (mark.is_range()) edges.push_back(mark.to);
    }
    return edges;
}

namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::uintmax_t kLargest = 16U << 20;  // bytes; a marks file has a few hundred

// Its hash gives each path a file name in one folder.
std::string state_path(const std::string& trace_path) {
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    fs::path folder;
    if (state != nullptr && *state == '/') {
        folder = state;
    } else if (home != nullptr && *home != '\0') {
        folder = fs::path(home) / ".local" / "state";
    } else {
        return {};
    }
    std::error_code error;
    const fs::path whole = fs::absolute(trace_path, error);
    return (folder / "shardscope" / "marks" /
            fmt::format("{:016x}-{}.json", traces::schema::hash_of(whole.string()),
                        whole.filename().string()))
        .string();
}

bool is_file(const std::string& path) {
    std::error_code error;
    return !path.empty() && fs::is_regular_file(path, error);
}

bool is_younger(const std::string& a, const std::string& b) {
    std::error_code error;
    const auto ta = fs::last_write_time(a, error);
    if (error) return false;
    const auto tb = fs::last_write_time(b, error);
    return error || ta > tb;
}

std::string read_text(const std::string& path) {
    std::error_code error;
    if (fs::file_size(path, error) > kLargest || error)
        throw std::runtime_error("it is too large for a file of marks");
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("it cannot be read");
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string marks_json(const MarkBook& marks, const std::string& trace_path) {
    OrderedJson list = OrderedJson::array();
    for (const Mark& mark : marks.all()) {
        OrderedJson one = {{"from_ns", mark.from}};
        if (mark.is_range()) one["to_ns"] = mark.to;
        one["text"] = mark.text;
        list.push_back(std::move(one));
    }
    const OrderedJson file = {
        {"shardscope_marks", kVersion}, {"trace", trace_path}, {"marks", std::move(list)}};
    return traces::schema::dump_json(file, 2) + "\n";
}

MarkBook parse_marks(std::string_view json) {
    try {
        const OrderedJson file = traces::schema::parse_ordered_json(json, traces::schema::BadJson::throws);
        if (!file.is_object() || !file.contains("shardscope_marks"))
            throw std::runtime_error("it has no key shardscope_marks");
        if (file.at("shardscope_marks").get<int>() > kVersion)
            throw std::runtime_error("a newer version of shardscope-view wrote it");
        std::vector<Mark> marks;
        for (const OrderedJson& one : file.at("marks")) {
            Mark mark;
            mark.from = one.at("from_ns").get<std::int64_t>();
            mark.to = one.value("to_ns", mark.from);
            mark.text = one.value("text", std::string());
            for (const std::int64_t time : {mark.from, mark.to}) {
                if (!model::is_viewable(time))
                    throw std::runtime_error(fmt::format(
                        "mark {} is at {} ns, more than 73 years from the start", marks.size() + 1, time));
            }
            marks.push_back(std::move(mark));
        }
        return MarkBook(std::move(marks));
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(error.what());
    }
}

MarkFile::MarkFile(std::string trace_path) : trace_path_(std::move(trace_path)) {
    if (!is_file(trace_path_)) return;
    beside_ = trace_path_ + ".marks.json";
    in_state_ = state_path(trace_path_);
    path_ = beside_;
    if (is_file(in_state_) && (!is_file(beside_) || is_younger(in_state_, beside_))) path_ = in_state_;
    if (!is_file(path_)) return;
    try {
        marks = parse_marks(read_text(path_));
    } catch (const std::exception& error) {
        locked_ = true;
        problem_ = fmt::format(
            "{}: not a file of marks ({}); it is left unchanged, and marks stay in memory only. Move it away "
            "to have them saved.",
            path_, error.what());
    }
}

void MarkFile::save() {
    if (beside_.empty() || locked_) return;
    problem_.clear();
    for (const std::string& path : {beside_, in_state_}) {
        if (path.empty()) continue;
        if (write(path)) {
            path_ = path;
            return;
        }
    }
    problem_ =
        fmt::format("{}: the marks cannot be saved, neither there nor in {}; they stay in memory only.",
                    beside_, in_state_.empty() ? "a state folder (HOME is not set)" : in_state_);
}

// Written beside the old file, which the new one replaces when it is complete.
bool MarkFile::write(const std::string& path) const {
    std::error_code error;
    if (path == in_state_) fs::create_directories(fs::path(path).parent_path(), error);
    const std::string part = path + ".part";
    {
        std::ofstream out(part, std::ios::binary | std::ios::trunc);
        out << marks_json(marks, trace_path_);
        out.close();
        if (!out) {
            fs::remove(part, error);
            return false;
        }
    }
    fs::rename(part, path, error);
    if (!error) return true;
    fs::remove(part, error);
    return false;
}

}  // namespace shardscope::viewer::timeline
