// See session.h. Each file is read on its own thread; poll() takes over what has arrived.
#include "viewer/app/session.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <future>
#include <utility>

#include <fmt/format.h>

#include "traces/import/open.h"

namespace shardscope::viewer {
namespace {

struct Outcome {
    TracePtr trace;
    std::string error;
};

// One file being read. Destroying it waits for its thread, so cancel first.
struct Load {
    std::shared_ptr<traces::LoadProgress> progress = std::make_shared<traces::LoadProgress>();
    std::future<Outcome> outcome;
    bool finished() const { return outcome.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
};

Outcome read(const std::vector<std::string>& paths, traces::LoadProgress& progress) {
    try {
        // Of a damaged file what can be read is shown, and the Runs panel says so.
        traces::ImportOptions options;
        options.partial = true;
        options.progress = &progress;
        return {traces::open_any(paths, options), {}};
    } catch (const std::bad_alloc&) {
        return {nullptr,
                paths.front() + ": there is not enough memory to read it; slice it to a shorter time range."};
    } catch (const std::exception& e) {
        return {nullptr, e.what()};
    }
}

// A little air at both ends, so that the first and last event do not touch the edge.
TimeRange whole(const traces::Trace& trace) {
    const std::int64_t length = std::max<std::int64_t>(trace.last_ns - trace.first_ns, 1000);
    const std::int64_t air = length / 50;
    return {trace.first_ns - air, trace.first_ns + length + air};
}

std::string with_folder(const std::string& path) {
    const std::filesystem::path p(path);
    const auto folder = p.parent_path().filename().string();
    return folder.empty() ? p.filename().string() : folder + "/" + p.filename().string();
}

}  // namespace

struct Session::Loads {
    std::vector<std::unique_ptr<Load>> of_entry;  // beside `open`; nullptr: nothing is being read
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
    start(std::move(entry), {path});
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
    start(std::move(entry), paths);
}

void Session::start(OpenTrace entry, std::vector<std::string> paths) {
    auto load = std::make_unique<Load>();
    load->outcome = std::async(std::launch::async, [paths = std::move(paths), progress = load->progress] {
        return read(paths, *progress);
    });
    open.push_back(std::move(entry));
    loads_->of_entry.push_back(std::move(load));
}

void Session::add_trace(TracePtr trace, const std::string& name) {
    OpenTrace entry;
    entry.path = trace->path;
    entry.name = name;
    entry.color = loads_->next_color++;
    entry.visible = first_range.value_or(whole(*trace));
    entry.limit = first_range;
    entry.trace = std::move(trace);
    open.push_back(std::move(entry));
    loads_->of_entry.push_back(nullptr);
}

void Session::close(std::size_t index) {
    if (index >= open.size()) return;
    if (auto& load = loads_->of_entry[index]) {
        load->progress->cancel = true;
        loads_->cancelled.push_back(std::move(load));
    }
    if (open[index].trace) analyses.forget(open[index].trace);
    loads_->of_entry.erase(loads_->of_entry.begin() + static_cast<std::ptrdiff_t>(index));
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
    const TracePtr now = trace();
    const int ranks = now ? static_cast<int>(now->ranks.size()) : 0;
    rank = std::clamp(rank, 0, std::max(0, ranks - 1));
}

void Session::poll() {
    noted_work_ = std::exchange(notes_work_, false);
    for (std::size_t i = 0; i < open.size(); ++i) {
        auto& load = loads_->of_entry[i];
        if (!load) continue;
        open[i].progress = load->progress->fraction;
        if (!load->finished()) continue;
        Outcome outcome = load->outcome.get();
        load.reset();
        open[i].error = std::move(outcome.error);
        open[i].trace = std::move(outcome.trace);
        if (!open[i].trace) continue;
        open[i].progress = 1;
        open[i].visible = first_range.value_or(whole(*open[i].trace));
        open[i].limit = first_range;
        if (i == active) set_active(i);
    }
    std::erase_if(loads_->cancelled, [](const auto& load) { return load->finished(); });
}

bool Session::loading() const {
    return std::any_of(open.begin(), open.end(), [](const OpenTrace& e) { return e.loading(); });
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
        if (entry.trace) traces.push_back(entry.trace);
    }
    return traces;
}

void Session::fit() {
    if (OpenTrace* entry = current(); entry != nullptr && entry->trace) entry->visible = whole(*entry->trace);
}

void Session::go_to(TimeRange time, std::optional<int> rank_index, SelectedEvent event) {
    OpenTrace* entry = current();
    if (entry == nullptr || entry->trace == nullptr) return;
    const TimeRange all = whole(*entry->trace);
    const std::int64_t air = std::max<std::int64_t>((time.to - time.from) / 2, 500);
    entry->visible = {std::max(all.from, time.from - air), std::min(all.to, time.to + air)};
    if (entry->visible.to <= entry->visible.from) entry->visible = all;
    if (rank_index) rank = *rank_index;
    if (event.kind != EventKind::none) selected = event;
    wanted_panel = "timeline";
}

traces::Selection Session::selection(const OpenTrace& entry) {
    traces::Selection selection;
    if (entry.limit) {
        selection.from_ns = entry.limit->from;
        selection.to_ns = entry.limit->to;
    }
    return selection;
}

}  // namespace shardscope::viewer
