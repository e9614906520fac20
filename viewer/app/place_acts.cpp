// See place_acts.h.
#include "viewer/app/place_acts.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/model/go_to_place.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::viewer::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNoTrace = "Open a trace first.";

model::OpenTrace* ready_trace(Program& program) {
    model::OpenTrace* entry = program.session.current();
    if (entry != nullptr && entry->trace != nullptr) return entry;
    program.notice = kNoTrace;
    return nullptr;
}

model::View view_of(const Program& program) {
    return {.panel = std::string(program.shown().name()),
            .color_by = program.session.color_by,
            .content = program.shown().content(program.session),
            .place = model::place_of(program.session, program.session.active)};
}

std::string name_of(const model::View& view) {
    std::string name(panels::panel_title(view.panel));
    const auto& time = view.place.limit ? view.place.limit : view.place.visible;
    if (time)
        name += fmt::format(", {} to {}", draw::format_duration(static_cast<double>(time->from)),
                            draw::format_duration(static_cast<double>(time->to)));
    return name;
}

// Returns what is gone.
std::vector<std::string> show(Program& program, std::size_t index, const model::View& view) {
    if (index != program.session.active) program.session.set_active(index);
    std::vector<std::string> gone = model::go_to_place(program.session, index, view.place);
    program.session.color_by = view.color_by;
    if (program.show(view.panel)) {
        program.panel(view.panel).show_content(view.content, program.session);
    } else if (!view.panel.empty()) {
        gone.push_back(fmt::format("the panel \"{}\"", draw::shorten_middle(view.panel, 40)));
    }
    return gone;
}

void keep(Program& program, model::OpenTrace& entry) {
    entry.marks->save();
    if (!entry.marks->problem().empty()) program.say_problem(entry.marks->problem());
}

}  // namespace

std::string view_name(const Program& program, int key) {
    const model::OpenTrace* entry = program.session.current();
    if (entry == nullptr || entry->marks == nullptr) return "";
    const model::SavedView* view = entry->marks->view(key);
    return view == nullptr ? "" : view->name;
}

void save_view(Program& program, int key) {
    model::OpenTrace* entry = ready_trace(program);
    if (entry == nullptr) return;
    const std::string before = view_name(program, key);
    model::View view = view_of(program);
    std::string name = name_of(view);
    program.notice = fmt::format("View {} is \"{}\" now.", key, name);
    if (!before.empty()) program.notice += fmt::format(" It was \"{}\".", before);
    entry->marks->set_view({key, std::move(name), std::move(view)});
    keep(program, *entry);
}

void go_to_view(Program& program, int key) {
    const model::OpenTrace* entry = ready_trace(program);
    if (entry == nullptr) return;
    const model::SavedView* saved = entry->marks->view(key);
    if (saved == nullptr) {
        program.notice =
            fmt::format("No view {0} is saved for this trace; Ctrl+Shift+{0} saves what is shown.", key);
        return;
    }
    const std::vector<std::string> gone = show(program, program.session.active, saved->view);
    program.notice = saved->name;
    if (!gone.empty())
        program.notice = fmt::format("{}: {} lacks {}.", saved->name, entry->name, model::some_of(gone));
}

void remove_view(Program& program, int key) {
    model::OpenTrace* entry = ready_trace(program);
    if (entry == nullptr) return;
    entry->marks->remove_view(key);
    keep(program, *entry);
}

void rename_view(Program& program, int key, const std::string& name) {
    model::OpenTrace* entry = ready_trace(program);
    const model::SavedView* saved = entry == nullptr ? nullptr : entry->marks->view(key);
    if (saved == nullptr || name.empty()) return;
    model::SavedView view = *saved;
    view.name = name;
    entry->marks->set_view(std::move(view));
    keep(program, *entry);
}

// --- links

void copy_link(Program& program) {
    const model::OpenTrace* entry = ready_trace(program);
    if (entry == nullptr) return;
    model::Link link{fs::path(entry->path).filename().string(), model::identity_of(*entry->trace),
                     view_of(program)};
    constexpr std::size_t kLongestContent = 4000;
    const bool too_long = link.view.content.size() > kLongestContent;
    if (too_long) link.view.content.clear();
    program.copied_link = program.to_clipboard = model::link_text(link);
    program.notice = "The link is copied.";
    if (too_long) program.notice = "The link is copied, without the panel's text, which is too long for one.";
}

void follow_link(Program& program, std::string_view text) {
    try {
        model::ReadLink read = model::parse_link(text);
        if (!read.left_out.empty())
            program.say_problem(
                fmt::format("The link's {} cannot be read and is left out.", model::some_of(read.left_out)));
        program.link = WantedLink{.link = std::move(read.link)};
    } catch (const std::exception& error) {
        program.say_problem(fmt::format("The link cannot be followed: {}.", error.what()));
    }
}

namespace {

// The open trace with the link's content, else one of the same run, else none.
std::optional<std::size_t> trace_of(const Program& program, const model::Link& link) {
    const auto& open = program.session.open;
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < open.size(); ++i) {
        if (open[i].trace == nullptr) continue;
        const model::TraceIdentity identity = model::identity_of(*open[i].trace);
        const bool same = identity.content == link.identity.content;
        if (same && (i == program.session.active || !best)) return i;
        if (same || (identity.run == link.identity.run && !best)) best = i;
    }
    return best;
}

// A recent file of the link's name that was not tried yet.
std::optional<std::string> recent_file(const Program& program, const WantedLink& wanted) {
    for (const std::string& path : program.recent) {
        const bool tried = std::find(wanted.tried.begin(), wanted.tried.end(), path) != wanted.tried.end();
        std::error_code error;
        if (!tried && fs::path(path).filename() == wanted.link.trace && fs::exists(path, error)) return path;
    }
    return std::nullopt;
}

void arrive(Program& program, std::size_t index, const model::Link& link) {
    model::View view = link.view;
    const model::OpenTrace& entry = program.session.open[index];
    view.place.rows = entry.rows;
    const std::vector<std::string> gone = show(program, index, view);
    const model::TraceIdentity now = model::identity_of(*entry.trace);
    const bool changed = now != link.identity;
    if (!changed && gone.empty()) return;
    std::string said = entry.name;
    if (changed)
        said += fmt::format(" has changed since the link was made: {} events then, {} now",
                            draw::format_count(link.identity.events), draw::format_count(now.events));
    if (!gone.empty()) said += fmt::format("{} lacks {}", changed ? ", and it" : "", model::some_of(gone));
    program.say_problem(said + ".");
}

}  // namespace

void go_to_link(Program& program) {
    if (!program.link || program.session.loading()) return;
    WantedLink& wanted = *program.link;
    std::vector<const traces::store::Trace*> open;
    for (const model::OpenTrace& entry : program.session.open) open.push_back(entry.trace.get());
    if (wanted.looked && wanted.open == open) return;
    wanted.looked = true;
    wanted.open = open;
    if (const auto index = trace_of(program, wanted.link)) {
        const model::Link link = std::move(wanted.link);
        std::erase(program.problems, wanted.said);
        program.link.reset();
        return arrive(program, *index, link);
    }
    // A file that was opened for it and is another trace is closed again.
    if (const std::string opened = std::exchange(wanted.opened, {}); !opened.empty()) {
        const auto& all = program.session.open;
        const auto found =
            std::find_if(all.rbegin(), all.rend(), [&](const auto& e) { return e.path == opened; });
        if (found != all.rend()) program.session.close(static_cast<std::size_t>(all.rend() - found) - 1);
    }
    if (const auto path = recent_file(program, wanted)) {
        wanted.tried.push_back(*path);
        wanted.opened = *path;
        wanted.looked = false;
        program.session.open_file(*path);
        return;
    }
    if (!wanted.said.empty()) return;
    program.say_problem(fmt::format(
        "The link is to {} ({} events), and no open trace has this content; open it, and the link goes to "
        "its place.",
        draw::shorten_middle(wanted.link.trace, 60), draw::format_count(wanted.link.identity.events)));
    wanted.said = program.problems.back();
}

}  // namespace shardscope::viewer::app
