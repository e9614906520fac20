// See session.h. Each file is read on its own thread; poll() takes over what has been read.
#include "viewer/model/session.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <future>
#include <utility>

#include <fmt/core.h>

#include "traces/import/open.h"
#include "viewer/model/file_stamp.h"
#include "viewer/model/go_to_place.h"
#include "viewer/model/rank_steps.h"
#include "viewer/model/same_event.h"

namespace shardscope::viewer::model {
namespace {

// A file that has not grown for this long is no longer being written.
constexpr std::chrono::seconds kStillRuns{10};

struct Outcome {
    TracePtr trace;
    std::string error;
};

// One file being read. Destroying it waits for its thread, so cancel first.
struct Load {
    std::vector<FileStamp> stamps;  // of the files when reading began
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
    std::shared_ptr<traces::store::LoadProgress> progress = std::make_shared<traces::store::LoadProgress>();
    std::future<Outcome> outcome;
    bool finished() const { return outcome.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
};

Outcome read(const std::vector<std::string>& paths, traces::store::LoadProgress& progress) {
    try {
        // The readable part of a damaged file is shown, and the Runs panel reports the damage.
        traces::importer::ImportOptions options;
        options.partial = true;
        options.progress = &progress;
        return {traces::importer::open_any(paths, options), {}};
    } catch (const std::bad_alloc&) {
        return {nullptr,
                paths.front() + ": there is not enough memory to read it; slice it to a shorter time range."};
    } catch (const std::exception& e) {
        return {nullptr, e.what()};
    }
}

// Whether every index into the first trace is valid in the second, as after a trace has grown.
bool has_all_of(const traces::store::Trace& now, const traces::store::Trace& before) {
    return now.ranks.size() >= before.ranks.size() && now.device.size() >= before.device.size() &&
           now.ranges.size() >= before.ranges.size() && now.runtime.size() >= before.runtime.size();
}

traces::store::RankIndex last_valid(traces::store::RankIndex rank, std::size_t ranks) {
    return traces::store::RankIndex(std::min(rank.at(), std::max<std::size_t>(ranks, 1) - 1));
}

// The same rank in a trace that was read again: ranks with lower numbers may have joined it since.
traces::store::RankIndex same_rank(const traces::store::Trace& before, traces::store::RankIndex rank,
                                   const traces::store::Trace& now) {
    const bool there = rank.at() < before.ranks.size();
    const auto same = there ? now.rank_of_number(before.ranks[rank.at()].number) : traces::store::RankIndex();
    return same.known() ? same : last_valid(rank, now.ranks.size());
}

std::string with_folder(const std::string& path) {
    const std::filesystem::path p(path);
    const auto folder = p.parent_path().filename().string();
    return folder.empty() ? p.filename().string() : folder + "/" + p.filename().string();
}

}  // namespace

bool holds_plan(const traces::store::Trace& trace) {
    return !trace.plan.empty() || !trace.config_value("plan.job").empty();
}

bool holds_only_plan(const traces::store::Trace& trace) {
    return holds_plan(trace) && trace.device.size() == 0 && trace.ranges.size() == 0 &&
           trace.runtime.size() == 0 && trace.memory.size() == 0;
}
std::string_view only_panel(const traces::store::Trace& trace) {
    if (holds_only_plan(trace)) return "plan";
    return trace.events() == 0 && trace.samples.size() > 0 ? "samples" : "";
}

namespace {

// "12 s ago" (or "a moment ago", which does not change in every second), "4 min ago": since an instant of the
// system's clock.
std::string ago_text(std::int64_t then_ns, bool in_seconds) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t seconds = std::max<std::int64_t>(
        1, std::chrono::duration_cast<std::chrono::seconds>(now - std::chrono::nanoseconds(then_ns)).count());
    if (seconds < 60 && !in_seconds) return "a moment ago";
    if (seconds < 60) return fmt::format("{} s ago", seconds);
    if (seconds < 60 * 60) return fmt::format("{} min ago", seconds / 60);
    if (seconds < 48 * 60 * 60) return fmt::format("{} h ago", seconds / (60 * 60));
    return fmt::format("{} days ago", seconds / (24 * 60 * 60));
}

// When a run without an end wrote its last event. A copied file is younger than its events.
std::int64_t stopped_ns(const OpenTrace& entry) {
    const traces::store::Trace& trace = *entry.trace;
    if (trace.start_utc_ns <= 0) return entry.wrote_ns;
    const std::int64_t last = trace.start_utc_ns + trace.last_ns;
    return entry.wrote_ns > 0 ? std::min(last, entry.wrote_ns) : last;
}

}  // namespace

std::string run_state_in_short(const OpenTrace& entry) {
    if (entry.trace == nullptr) return "";
    if (entry.trace->ended) return "finished";
    if (!entry.running()) return "stopped without finishing";
    const auto steps = steps_of(*entry.trace, traces::store::RankIndex(0));
    return steps.empty() ? "running" : fmt::format("running, step {}", steps.back().number);
}

std::string run_state(const OpenTrace& entry) {
    std::string state = run_state_in_short(entry);
    if (entry.trace == nullptr || entry.trace->ended) return state;
    if (entry.running())
        return entry.wrote_ns > 0 ? fmt::format("{}, {}", state, ago_text(entry.wrote_ns, true)) : state;
    const std::int64_t stopped = stopped_ns(entry);
    return stopped > 0 ? fmt::format("stopped {} without finishing", ago_text(stopped, false)) : state;
}

// The margin keeps the first and last event from touching the edge.
TimeRange Session::whole(const traces::store::Trace& trace) {
    const std::int64_t length = std::max<std::int64_t>(trace.last_ns - trace.first_ns, 1000);
    const std::int64_t air = length / 50;
    return {trace.first_ns - air, trace.first_ns + length + air};
}

struct Session::Loads {
    std::vector<std::unique_ptr<Load>> of_entry;  // parallel to `open`; nullptr: nothing is being read
    struct Read {
        std::vector<FileStamp> stamps;  // of the trace that is shown; empty: it came from memory
        std::chrono::steady_clock::time_point next_look;
    };
    std::vector<Read> of_file;  // parallel to `open`
    std::vector<std::unique_ptr<Load>> cancelled;
    int next_color = 0;

    ~Loads() {
        for (auto& load : of_entry) {
            if (load) load->progress->cancel = true;
        }
    }
};

Session::Session() : loads_(std::make_unique<Loads>()) {}
Session::~Session() = default;

void Session::open_file(const std::string& path) {
    OpenTrace entry;
    entry.path = path;
    entry.name = std::filesystem::path(path).filename().string();
    entry.color = loads_->next_color++;
    for (OpenTrace& other : open) {
        if (other.name != entry.name || other.path == path) continue;
        other.name = with_folder(other.path);
        entry.name = with_folder(path);
    }
    start(std::move(entry));
}

void Session::open_merged(const std::vector<std::string>& paths) {
    if (paths.empty()) return;
    if (paths.size() == 1) return open_file(paths.front());
    OpenTrace entry;
    entry.path = paths.front();
    entry.merged = paths;
    entry.name = fmt::format("{} + {} more", std::filesystem::path(paths.front()).filename().string(),
                             paths.size() - 1);
    entry.color = loads_->next_color++;
    start(std::move(entry));
}

void Session::start(OpenTrace entry) {
    open.push_back(std::move(entry));
    loads_->of_entry.push_back(nullptr);
    loads_->of_file.emplace_back();
    read_entry(open.size() - 1);
}

void Session::read_entry(std::size_t index) {
    const OpenTrace& entry = open[index];
    auto load = std::make_unique<Load>();
    std::vector<std::string> paths = entry.files();
    load->stamps = stamps_of(paths);
    load->outcome = std::async(std::launch::async, [paths = std::move(paths), progress = load->progress] {
        return read(paths, *progress);
    });
    loads_->of_entry[index] = std::move(load);
}

void Session::reload(std::size_t index) {
    if (index >= open.size() || loads_->of_entry[index] || open[index].next) return;
    OpenTrace& entry = open[index];
    entry.notice.clear();
    entry.error.clear();
    entry.progress = 0;
    entry.reading_again = entry.trace != nullptr;
    entry.followed = false;
    read_entry(index);
}

// Repeats the old trace's analyses for the new one while the old one is still shown.
void Session::renew(std::size_t index, TracePtr trace) {
    OpenTrace& entry = open[index];
    entry.next = std::move(trace);
    if (has_all_of(*entry.next, *entry.trace)) analyses.renew(entry.trace, entry.next);
}

// The visible range stays; if it was all of the old trace, it becomes all of the new one, and if it reached
// the end, it moves with the end.
void Session::replace(std::size_t index) {
    OpenTrace& entry = open[index];
    entry.reading_again = false;
    const TracePtr before = std::exchange(entry.trace, std::exchange(entry.next, nullptr));
    look_at_state(entry);
    entry.result.reset();  // of the trace before
    const TimeRange all_before = whole(*before);
    if (entry.visible.from <= all_before.from && entry.visible.to >= all_before.to)
        entry.visible = whole(*entry.trace);
    else if (entry.followed && entry.visible.to >= before->last_ns) {
        const std::int64_t further = entry.trace->last_ns - before->last_ns;
        entry.visible = {entry.visible.from + further, entry.visible.to + further};
    }
    if (index == active) {
        selected = same_event(*before, selected, *entry.trace);
        rank = same_rank(*before, rank, *entry.trace);
        if (selected_unit.known())
            selected_unit = entry.trace->unit_of_id(before->units[selected_unit.at()].id);
    }
    analyses.forget(before);
    trials.replaced(before, entry.trace);
    gone_.push_back({before, entry.trace});
}

std::vector<GoneTrace> Session::take_gone() {
    return std::exchange(gone_, {});
}

bool Session::poll_files() {
    const auto now = std::chrono::steady_clock::now();
    bool news = false;
    for (std::size_t i = 0; i < open.size(); ++i) {
        auto& file = loads_->of_file[i];
        OpenTrace& entry = open[i];
        if (loads_->of_entry[i] || entry.next || file.stamps.empty() || now < file.next_look || !entry.trace)
            continue;
        file.next_look = now + std::chrono::seconds(1);
        const std::vector<std::string> paths = entry.files();
        bool same = true;
        for (std::size_t f = 0; f < paths.size(); ++f) {
            const FileStamp stamp = stamp_of(paths[f]);
            const std::string change = change_of(file.stamps[f], stamp);
            if (change.empty()) continue;
            same = false;
            const bool grows =
                stamp.exists() && stamp.inode == file.stamps[f].inode && stamp.bytes >= file.stamps[f].bytes;
            if (!entry.trace->ended && grows) entry.grew = now;
            if (follow && !entry.trace->ended && grows) {
                reload(i);
                entry.followed = true;
            } else {
                news = true;
                entry.notice = fmt::format("{} {}.", paths[f], change);
                file.stamps[f] = stamp;  // reported once; a reload clears it
            }
            break;
        }
        // Only polling can notice that it has stopped growing: while a large trace is reloaded nothing polls.
        if (same && entry.grew && now - *entry.grew > kStillRuns) {
            entry.grew.reset();
            news = true;
        }
    }
    return news;
}

void Session::look_at_state(OpenTrace& entry) {
    const std::vector<std::string> paths = entry.files();
    entry.held = std::any_of(paths.begin(), paths.end(), is_open_elsewhere);
    entry.was_held = entry.was_held || entry.held;
    entry.wrote_ns = 0;
    for (const std::string& path : paths)
        entry.wrote_ns = std::max(entry.wrote_ns, written_ns(stamp_of(path)));
    entry.said_state = run_state(entry);
}

bool Session::poll_states() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_states_) return false;
    next_states_ = now + std::chrono::seconds(1);
    bool news = false;
    for (std::size_t i = 0; i < open.size(); ++i) {
        OpenTrace& entry = open[i];
        if (entry.trace == nullptr || entry.trace->ended || loads_->of_file[i].stamps.empty()) continue;
        const std::string said = entry.said_state;
        look_at_state(entry);
        news = news || said != entry.said_state;
    }
    return news;
}

void Session::add_trace(TracePtr trace, const std::string& name) {
    OpenTrace entry;
    entry.path = trace->path;
    entry.name = name;
    entry.color = loads_->next_color++;
    entry.visible = first_range.value_or(whole(*trace));
    entry.limit = first_range;
    entry.marks = std::make_shared<MarkFile>(entry.path);
    entry.trace = std::move(trace);
    open.push_back(std::move(entry));
    loads_->of_entry.push_back(nullptr);
    loads_->of_file.emplace_back();
}

void Session::close(std::size_t index) {
    if (index >= open.size()) return;
    if (auto& load = loads_->of_entry[index]) {
        load->progress->cancel = true;
        loads_->cancelled.push_back(std::move(load));
    }
    for (const TracePtr& trace : {open[index].trace, open[index].next}) {
        if (trace == nullptr) continue;
        analyses.forget(trace);
        trials.forget(*trace);
        gone_.push_back({trace, nullptr});
    }
    simulation.remove(open[index].path);
    loads_->of_entry.erase(loads_->of_entry.begin() + static_cast<std::ptrdiff_t>(index));
    loads_->of_file.erase(loads_->of_file.begin() + static_cast<std::ptrdiff_t>(index));
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
    if (index == active) {
        set_active(std::min(active, open.empty() ? 0 : open.size() - 1));
    } else if (index < active) {
        --active;
    }
}

void Session::set_active(std::size_t index) {
    active = index;
    selected = {};
    selected_module = -1;
    selected_unit = {};
    const TracePtr now = trace();
    rank = last_valid(rank, now ? now->ranks.size() : 0);
}

void Session::open_simulated(const std::string& path, const std::string& name) {
    wanted_panel = "timeline";
    for (std::size_t i = 0; i < open.size(); ++i) {
        if (open[i].path == path && open[i].error.empty()) return set_active(i);
    }
    open_file(path);
    if (!name.empty()) open.back().name = name;
    set_active(open.size() - 1);
}

void Session::poll(const std::function<bool(const TracePtr&)>& ready) {
    analyses.begin_frame();
    noted_work_ = std::exchange(notes_work_, false);
    advance(ready);
}

bool Session::advance(const std::function<bool(const TracePtr&)>& ready) {
    bool news = false;
    if (const auto made = simulation.poll()) open_simulated(made->path, made->name);
    if (trials.poll()) news = true;
    if (const auto wanted = std::exchange(wanted_trace, std::nullopt)) {
        open_simulated(wanted->path, wanted->name);
        wanted_panel = wanted->panel;
    }
    for (std::size_t i = 0; i < open.size(); ++i) {
        auto& load = loads_->of_entry[i];
        if (open[i].next && !analyses.busy_with(open[i].next) &&
            (i != active || !ready || ready(open[i].next) || analyses.failed_with(open[i].next))) {
            replace(i);
            news = true;
        }
        if (!load) continue;
        open[i].progress = load->progress->fraction;
        if (!load->finished()) continue;
        Outcome outcome = load->outcome.get();
        // A growing trace is not reloaded all the time: the pause is three times as long as reading takes.
        const auto took = std::chrono::steady_clock::now() - load->began;
        loads_->of_file[i] = {std::move(load->stamps),
                              std::chrono::steady_clock::now() +
                                  std::max<std::chrono::nanoseconds>(3 * took, std::chrono::seconds(1))};
        load.reset();
        open[i].progress = 1;
        if (open[i].trace) {
            news = news || outcome.trace == nullptr;
            if (outcome.trace) {
                renew(i, std::move(outcome.trace));
            } else {
                open[i].reading_again = false;
                open[i].notice = outcome.error + " What was read before is still shown.";
            }
            continue;
        }
        news = true;
        open[i].error = std::move(outcome.error);
        open[i].trace = std::move(outcome.trace);
        if (!open[i].trace) continue;
        if (!open[i].trace->ended) look_at_state(open[i]);
        open[i].visible = first_range.value_or(whole(*open[i].trace));
        open[i].limit = first_range;
        open[i].marks = std::make_shared<MarkFile>(open[i].path);
        if (i == active) set_active(i);
        if (open[i].wanted) take_wanted(*this, i);
        if (first_range) {  // the command line's, whatever a session says
            open[i].visible = *first_range;
            open[i].limit = first_range;
        }
        const std::string_view panel = only_panel(*open[i].trace);
        if (i == active && open[i].leads_to_panel && !panel.empty()) wanted_panel = panel;
    }
    std::erase_if(loads_->cancelled, [](const auto& load) { return load->finished(); });
    return news;
}

bool Session::only_follows() const {
    std::vector<TracePtr> successors;
    bool any = false;
    for (const OpenTrace& entry : open) {
        if (entry.loading() || (entry.reading_again && !entry.followed)) return false;
        any = any || entry.reading_again;
        if (entry.next) successors.push_back(entry.next);
    }
    return any && !simulation.busy() && !trials.busy() && !noted_work_ && !analyses.busy_without(successors);
}

bool Session::loading() const {
    return std::any_of(open.begin(), open.end(),
                       [](const OpenTrace& e) { return e.loading() || e.reading_again; });
}

OpenTrace* Session::current() {
    return active < open.size() ? &open[active] : nullptr;
}

const OpenTrace* Session::current() const {
    return active < open.size() ? &open[active] : nullptr;
}

TracePtr Session::trace() const {
    return active < open.size() ? open[active].trace : nullptr;
}

std::vector<TracePtr> Session::ready() const {
    std::vector<TracePtr> traces;
    for (const OpenTrace& entry : open) {
        if (entry.trace && !holds_only_plan(*entry.trace)) traces.push_back(entry.trace);
    }
    return traces;
}

void Session::fit() {
    if (OpenTrace* entry = current(); entry != nullptr && entry->trace) entry->visible = whole(*entry->trace);
}

bool Session::choose_rank(int number) {
    const TracePtr of = trace();
    const auto index = of == nullptr ? traces::store::RankIndex() : of->rank_of_number(number);
    if (index.known()) rank = index;
    return index.known();
}

void Session::go_to(TimeRange time, traces::store::RankIndex shown, SelectedEvent event) {
    OpenTrace* entry = current();
    if (entry == nullptr || entry->trace == nullptr) return;
    const TimeRange all = whole(*entry->trace);
    const std::int64_t air = std::max<std::int64_t>((time.to - time.from) / 2, 500);
    entry->visible = {std::max(all.from, time.from - air), std::min(all.to, time.to + air)};
    if (entry->visible.to <= entry->visible.from) entry->visible = all;
    if (shown.known()) rank = shown;
    if (event.kind != EventKind::none) selected = event;
    wanted_panel = "timeline";
}

traces::analysis::Selection Session::selection(const OpenTrace& entry) {
    traces::analysis::Selection selection;
    if (entry.limit) {
        selection.from_ns = entry.limit->from;
        selection.to_ns = entry.limit->to;
    }
    return selection;
}

}  // namespace shardscope::viewer::model
