// See marks.h.
#include "viewer/model/marks.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/json_text.h"
#include "traces/schema/sort_rows.h"
#include "traces/schema/text.h"
#include "viewer/model/fields.h"
#include "viewer/model/time_view.h"
#include "viewer/model/whole_file.h"

namespace shardscope::viewer::model {
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

bool is_valid(const Mark& mark) {
    return is_viewable(mark.from) && is_viewable(mark.to);
}

const SavedView* KeptBeside::view(int key) const {
    const auto at =
        std::find_if(views.begin(), views.end(), [key](const SavedView& v) { return v.key == key; });
    return at == views.end() ? nullptr : &*at;
}

void KeptBeside::remove_view(int key) {
    std::erase_if(views, [key](const SavedView& v) { return v.key == key; });
}

void KeptBeside::set_view(SavedView view) {
    remove_view(view.key);
    const auto at =
        std::find_if(views.begin(), views.end(), [&](const SavedView& v) { return v.key > view.key; });
    views.insert(at, std::move(view));
}

std::vector<std::string> KeptBeside::add(const std::vector<Mark>& more,
                                         const std::vector<SavedView>& more_views) {
    for (const Mark& mark : more) {
        const auto& all = marks.all();
        if (std::find(all.begin(), all.end(), mark) == all.end()) marks.add(mark);
    }
    std::vector<std::string> left_out;
    for (SavedView next : more_views) {
        const auto same = [&](const SavedView& v) { return v.name == next.name && v.view == next.view; };
        if (std::any_of(views.begin(), views.end(), same)) continue;
        for (int key = 1; key <= kViewKeys && view(next.key) != nullptr; ++key) {
            if (view(key) == nullptr) next.key = key;
        }
        if (view(next.key) != nullptr) {
            left_out.push_back(next.name);
        } else {
            set_view(std::move(next));
        }
    }
    return left_out;
}

namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 2;                     // 1 where there are no views
constexpr std::uintmax_t kLargest = 16U << 20;  // bytes; a marks file has a few hundred

// The hash of its whole path gives each trace a file name in one folder.
std::string path_in_state(const std::string& trace_path) {
    const std::string folder = state_folder();
    if (folder.empty()) return {};
    std::error_code error;
    const fs::path whole = fs::absolute(trace_path, error);
    return fmt::format("{}/marks/{:016x}-{}.json", folder, traces::schema::hash_of(whole.string()),
                       whole.filename().string());
}

bool is_younger(const std::string& a, const std::string& b) {
    std::error_code error;
    const auto ta = fs::last_write_time(a, error);
    if (error) return false;
    const auto tb = fs::last_write_time(b, error);
    return error || ta > tb;
}

}  // namespace

std::string marks_json(const KeptBeside& kept, const std::string& trace_path) {
    JsonOut list = JsonOut::array();
    for (const Mark& mark : kept.marks.all()) {
        JsonOut one = {{"from_ns", mark.from}};
        if (mark.is_range()) one["to_ns"] = mark.to;
        one["text"] = mark.text;
        list.push_back(std::move(one));
    }
    JsonOut file = {{"shardscope_marks", kept.views.empty() ? 1 : kVersion},
                    {"trace", trace_path},
                    {"marks", std::move(list)}};
    if (!kept.views.empty()) file["views"] = field_json(kept.views);
    return traces::schema::dump_json(file, 2) + "\n";
}

KeptBeside parse_marks(std::string_view json) {
    try {
        const JsonIn file = traces::schema::parse_json(json, traces::schema::BadJson::throws);
        if (!file.is_object() || !file.contains("shardscope_marks"))
            throw std::runtime_error("it has no key shardscope_marks");
        if (file.at("shardscope_marks").get<int>() > kVersion)
            throw std::runtime_error("a newer version of shardscope-view wrote it");
        std::vector<Mark> marks;
        for (const JsonIn& one : file.at("marks")) {
            Mark mark;
            mark.from = one.at("from_ns").get<std::int64_t>();
            mark.to = one.value("to_ns", mark.from);
            mark.text = one.value("text", std::string());
            for (const std::int64_t time : {mark.from, mark.to}) {
                if (!is_viewable(time))
                    throw std::runtime_error(fmt::format(
                        "mark {} is at {} ns, more than 73 years from the start", marks.size() + 1, time));
            }
            marks.push_back(std::move(mark));
        }
        KeptBeside kept{MarkBook(std::move(marks)), {}};
        if (const auto it = file.find("views"); it != file.end()) {
            std::vector<SavedView> views;
            LeftOut left_out;
            take_part(*it, views, left_out, "views");
            if (!left_out.places.empty())
                throw std::runtime_error(left_out.places.front() + " cannot be read");
            for (SavedView& view : views) kept.set_view(std::move(view));
        }
        return kept;
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(error.what());
    }
}

MarkFile::MarkFile(std::string trace_path) : trace_path_(std::move(trace_path)) {
    if (!is_file(trace_path_)) return;
    beside_ = trace_path_ + ".marks.json";
    in_state_ = path_in_state(trace_path_);
    path_ = beside_;
    if (is_file(in_state_) && (!is_file(beside_) || is_younger(in_state_, beside_))) path_ = in_state_;
    if (!is_file(path_)) return;
    try {
        static_cast<KeptBeside&>(*this) = parse_marks(read_whole(path_, kLargest));
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
        std::error_code error;
        if (path == in_state_) fs::create_directories(fs::path(path).parent_path(), error);
        if (!write_whole(path, marks_json(*this, trace_path_)).empty()) continue;
        path_ = path;
        return;
    }
    problem_ =
        fmt::format("{}: the marks cannot be saved, neither there nor in {}; they stay in memory only.",
                    beside_, in_state_.empty() ? "a state folder (HOME is not set)" : in_state_);
}

}  // namespace shardscope::viewer::model
