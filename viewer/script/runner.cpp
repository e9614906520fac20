// See runner.h.
#include "viewer/script/runner.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "viewer/app/actions.h"
#include "viewer/app/export.h"
#include "viewer/app/place_acts.h"
#include "viewer/app/session_file.h"
#include "viewer/script/match.h"
#include "viewer/script/words.h"

namespace shardscope::viewer::script {
namespace {

constexpr int kSettled = 4;          // frames until Dear ImGui has settled sizes and hovers and opened popups
constexpr double kPatience = 120;    // seconds that a command waits for its item or text
constexpr int kDragFrames = 8;       // number of mouse positions along a drag
constexpr float kBetweenClicks = 1;  // seconds: keeps two clicks from being a double-click

std::string item_list() {
    const std::vector<std::string> names = draw::items::names();
    return names.empty() ? "no item has a name" : fmt::format("{} items have names", names.size());
}

float along(const Offset& offset, float from, float to) {
    return offset.share ? from + static_cast<float>(offset.value) * (to - from)
                        : from + static_cast<float>(offset.value);
}

// Keeps the keys and buttons that are held down; drops the input that is for one frame only.
Input held(Input now) {
    now.wheel = now.seconds = 0;
    now.key.reset();
    now.text.clear();
    return now;
}

void press(Input& now, const Modifiers& with) {
    now.ctrl = with.ctrl;
    now.shift = with.shift;
}

}  // namespace

std::string unknown_names(const Script& script, const app::Program& program) {
    std::vector<std::string> panels, ids;
    for (const auto& panel : program.panels) panels.emplace_back(panel->name());
    for (const app::Action& action : app::actions()) ids.emplace_back(action.id);
    const auto check = [&](const Command& command, const char* what, const std::string& name,
                           const std::vector<std::string>& names) {
        if (std::find(names.begin(), names.end(), name) != names.end()) return std::string();
        return fmt::format("{}:{}: there is no {} called {}{}", script.file, command.line, what, name,
                           did_you_mean(name, names));
    };
    for (const Command& command : script.commands) {
        std::string wrong;
        if (const auto* show = std::get_if<ShowPanel>(&command.act))
            wrong = check(command, "panel", show->name, panels);
        if (const auto* arrange = std::get_if<ArrangePanes>(&command.act)) {
            const app::Panes panes = app::parse_panes(arrange->text).value_or(app::Panes());
            for (std::size_t i = 0; i < panes.count() && wrong.empty(); ++i)
                wrong = check(command, "panel", panes.panel(i), panels);
        }
        if (const auto* action = std::get_if<RunAction>(&command.act))
            wrong = check(command, "action", action->id, ids);
        if (!wrong.empty()) return wrong.ends_with('?') ? wrong : wrong + ".";
    }
    return "";
}

Runner::Runner(Script script, app::Program& program, backend::Surface& surface, app::SecondWindow* second)
    : script_(std::move(script)),
      program_(program),
      surface_(surface),
      second_(second),
      began_(std::chrono::steady_clock::now()) {
    draw::items::keep(true);
}

Runner::~Runner() {
    draw::items::keep(false);
}

void Runner::before_frame() {
    Input now = input_;
    if (!moments_.empty()) {
        now = moments_.front();
        moments_.pop_front();
        input_ = held(now);
    }
    apply(now);
}

void Runner::after_frame() {
    draw::items::begin_frame();  // makes this frame's items available to queries
    ++frames_;
    while (!done() && moments_.empty()) {
        const Step step =
            std::visit([this](const auto& act) { return run(act); }, script_.commands[next_].act);
        if (!failure_.empty()) {
            next_ = script_.commands.size();
            return;
        }
        if (step == Step::again) return;
        ++next_;
        frames_ = 0;
        started_ = false;
        began_ = std::chrono::steady_clock::now();
    }
}

Runner::Step Runner::fail(const std::string& what) {
    const Command& command = script_.commands[next_];
    failure_ = fmt::format("{}:{}: {}: {}", script_.file, command.line, command.source, what);
    if (!failure_.ends_with('.') && !failure_.ends_with('?')) failure_ += '.';
    return Step::again;
}

bool Runner::settling() const {
    return frames_ < kSettled || (program_.working() && waited() < kPatience);
}

double Runner::waited() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

std::optional<draw::items::Item> Runner::wanted(const std::string& name) {
    auto item = draw::items::find(name);
    if (item || settling()) return item;
    const std::string hint = did_you_mean(name, draw::items::names());
    fail(fmt::format("no item is called {}{}", name, hint.empty() ? "; " + item_list() : hint));
    return std::nullopt;
}

std::optional<ImVec2> Runner::place(const Spot& spot) {
    const auto item = wanted(spot.item);
    if (!item) return std::nullopt;
    if (!item->in_sight) {
        if (!settling())
            fail(fmt::format("{} is scrolled out of sight; turn the wheel over its list", spot.item));
        return std::nullopt;
    }
    return ImVec2{std::floor(along(spot.x, item->min.x, item->max.x)),
                  std::floor(along(spot.y, item->min.y, item->max.y))};
}

model::OpenTrace* Runner::ready_trace() {
    model::OpenTrace* entry = program_.session.current();
    if (entry != nullptr && entry->trace) return entry;
    if (!settling()) fail("no trace is open");
    return nullptr;
}

Runner::Step Runner::done_after(int frames) {
    const Input still = held(moments_.empty() ? input_ : moments_.back());
    for (int i = 0; i < frames; ++i) play(still);
    return Step::done;
}

void Runner::written(const std::function<void()>& write) {
    try {
        write();
    } catch (const std::exception& error) {
        fail(error.what());
    }
}

// --- mouse and keys ---

Runner::Step Runner::run(const Click& click) {
    const auto at = place(click.spot);
    if (!at) return Step::again;
    Input over = input_;
    over.mouse = *at;
    press(over, click.with);
    over.seconds = kBetweenClicks;
    play(over);
    over.seconds = 0;
    play(over);
    Input down = over;
    (click.right ? down.right : down.left) = true;
    for (int i = 0; i < (click.twice ? 2 : 1); ++i) {
        play(down);
        play(over);
    }
    over.ctrl = over.shift = false;
    play(over);
    return done_after(2);
}

Runner::Step Runner::run(const Hover& hover) {
    const auto at = place(hover.spot);
    if (!at) return Step::again;
    Input over = input_;
    over.mouse = *at;
    play(over);
    return done_after(2);
}

Runner::Step Runner::run(const Drag& drag) {
    const auto from = place(drag.from);
    if (!from) return Step::again;
    ImVec2 to{from->x + static_cast<float>(drag.dx), from->y + static_cast<float>(drag.dy)};
    if (!drag.to.empty()) {
        const auto target = place({.item = drag.to});
        if (!target) return Step::again;
        to = *target;
    }
    Input now = input_;
    now.mouse = *from;
    press(now, drag.with);
    now.seconds = kBetweenClicks;
    play(now);
    now.seconds = 0;
    now.left = true;
    play(now);
    for (int i = 1; i <= kDragFrames; ++i) {
        const float part = static_cast<float>(i) / kDragFrames;
        now.mouse = {from->x + (to.x - from->x) * part, from->y + (to.y - from->y) * part};
        play(now);
    }
    now.left = false;
    play(now);
    now.ctrl = now.shift = false;
    play(now);
    return done_after(2);
}

Runner::Step Runner::run(const Wheel& wheel) {
    const auto at = place(wheel.spot);
    if (!at) return Step::again;
    Input over = input_;
    over.mouse = *at;
    press(over, wheel.with);
    play(over);
    // One notch per frame, as by hand; a fraction comes last.
    for (double left = std::abs(wheel.notches); left > 0; left -= 1) {
        over.wheel = static_cast<float>(std::copysign(std::min(left, 1.0), wheel.notches));
        play(over);
    }
    over.wheel = 0;
    over.ctrl = over.shift = false;
    play(over);
    return done_after(2);
}

Runner::Step Runner::run(const PressKey& key) {
    Input now = input_;
    now.key = key.chord;
    now.ctrl = key.chord.ctrl;
    now.shift = key.chord.shift;
    now.key_down = true;
    play(now);
    now.key_down = false;
    now.ctrl = now.shift = false;
    play(now);
    return done_after(2);
}

Runner::Step Runner::run(const TypeText& type) {
    Input now = input_;
    now.text = type.text;
    play(now);
    return done_after(2);
}

// --- the program ---

Runner::Step Runner::run(const Open& open) {
    if (open.merged) {
        program_.session.open_merged(open.paths);
        program_.session.set_active(program_.session.open.size() - 1);
    } else {
        for (const std::string& path : open.paths) {
            if (path.ends_with(app::kSessionEnding)) {
                app::open_session(program_, path);
            } else {
                program_.session.open_file(path);
                program_.session.set_active(program_.session.open.size() - 1);
            }
        }
    }
    return done_after(1);
}

Runner::Step Runner::run(const Close&) {
    program_.session.close(program_.session.active);
    return done_after(1);
}

Runner::Step Runner::run(const ShowPanel& show) {
    program_.show(show.name);
    return done_after(2);
}

Runner::Step Runner::run(const ArrangePanes& arrange) {
    program_.arrange(arrange.text);
    return done_after(2);
}

Runner::Step Runner::run(const RunAction& run) {
    for (const app::Action& action : app::actions()) {
        if (action.id != run.id) continue;
        if (!is_available(action, program_)) {
            return fail(fmt::format("the action is for the panel {}, which is not shown", action.panel));
        }
        action.run(program_);
    }
    quit_ = quit_ || program_.quit;
    return done_after(2);
}

Runner::Step Runner::run(const Wait& wait) {
    if (program_.working() || frames_ < kSettled) {
        if (waited() > wait.seconds) fail(fmt::format("work is not done after {} s", wait.seconds));
        return Step::again;
    }
    if (const std::string failure = program_.session.analyses.failure(); !failure.empty()) fail(failure);
    return Step::done;
}

Runner::Step Runner::run(const Frames& frames) {
    return done_after(frames.count);
}

Runner::Step Runner::run(const Quit&) {
    quit_ = true;
    next_ = script_.commands.size() - 1;
    return Step::done;
}

Runner::Step Runner::run(const SetLimit& set) {
    model::OpenTrace* entry = ready_trace();
    if (entry == nullptr) return Step::again;
    entry->limit = set.range;
    return done_after(2);
}

Runner::Step Runner::run(const SetArea& set) {
    model::OpenTrace* entry = ready_trace();
    if (entry == nullptr) return Step::again;
    entry->area = set.area;
    return done_after(2);
}

Runner::Step Runner::run(const SetVisible& set) {
    model::OpenTrace* entry = ready_trace();
    if (entry == nullptr) return Step::again;
    entry->visible = set.range;
    return done_after(2);
}

Runner::Step Runner::run(const SetSize& set) {
    surface_.resize(set.width, set.height);
    return done_after(kSettled);
}

Runner::Step Runner::run(const SetRank& set) {
    const model::OpenTrace* entry = ready_trace();
    if (entry == nullptr) return Step::again;
    if (!program_.session.choose_rank(set.number))
        return fail(fmt::format("the trace has no rank {}", set.number));
    return done_after(2);
}

Runner::Step Runner::run(const SetTrace& set) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < program_.session.open.size(); ++i) {
        names.push_back(program_.session.open[i].name);
        if (names.back() != set.name) continue;
        program_.session.set_active(i);
        return done_after(2);
    }
    return fail(fmt::format("no open trace is called {}{}", set.name, did_you_mean(set.name, names)));
}

Runner::Step Runner::run(const SetScale& set) {
    program_.set_zoom(set.percent);
    return done_after(kSettled);
}

Runner::Step Runner::run(const SetAppearance& set) {
    program_.set_appearance(set.appearance);
    return done_after(2);
}

// --- reading ---

Runner::Step Runner::run(const Expect& expect) {
    const auto item = draw::items::find(expect.item);
    const std::string wrong = mismatch(expect, item ? std::optional(item->text) : std::nullopt);
    if (wrong.empty()) return Step::done;
    if (settling()) return Step::again;
    return fail(wrong + (item ? "" : did_you_mean(expect.item, draw::items::names())));
}

Runner::Step Runner::run(const Print& print) {
    const auto item = wanted(print.item);
    if (!item || settling()) return Step::again;
    fmt::print("{}\n", item->text);
    std::fflush(stdout);
    return Step::done;
}

Runner::Step Runner::run(const List& list) {
    if (settling()) return Step::again;
    for (const std::string& name : draw::items::names()) {
        if (!name.starts_with(list.prefix)) continue;
        const draw::items::Item item = draw::items::find(name).value_or(draw::items::Item{});
        fmt::print("{}\t{}\n", name, item.text);
    }
    std::fflush(stdout);
    return Step::done;
}

// --- files ---

Runner::Step Runner::run(const Shot& shot) {
    if (settling()) return Step::again;
    if (shot.item == "window.2") {
        written([&] {
            if (second_ == nullptr) throw std::runtime_error("There is no second window.");
            second_->write_picture(shot.file);
        });
        return Step::done;
    }
    std::optional<draw::items::Item> item;
    if (!shot.item.empty()) {
        item = wanted(shot.item);
        if (!item) return Step::again;
    }
    written([&] {
        if (item) {
            app::write_picture(shot.file, surface_, item->min, item->max);
        } else {
            app::write_picture(shot.file, surface_);
        }
    });
    return Step::done;
}

Runner::Step Runner::run(const ExportTable& order) {
    if (settling()) return Step::again;
    written([&] { app::write_shown_table(order.table, order.file); });
    return Step::done;
}

Runner::Step Runner::run(const ExportReport& report) {
    if (!started_) {
        if (program_.session.loading() && waited() < kPatience) return Step::again;  // the report needs it
        if (report.what == ExportReport::What::report) {
            program_.report.start(program_.session, report.file);
        } else {
            program_.report.start_timeline(program_.session, report.file,
                                           report.what == ExportReport::What::visible_timeline);
        }
        started_ = true;
    }
    if (program_.report.busy()) return Step::again;
    if (const std::string error = program_.report.error(); !error.empty()) fail(error);
    return Step::done;
}

Runner::Step Runner::run(const FollowLink& link) {
    follow_link(program_, link.text);
    return done_after(2);
}

Runner::Step Runner::run(const ExportSession& session) {
    if (settling()) return Step::again;
    written([&] { app::save_session(program_, session.file); });
    return Step::done;
}

}  // namespace shardscope::viewer::script
