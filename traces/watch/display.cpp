#include "traces/watch/display.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/core.h>

#include "traces/report/text_table.h"

namespace shardscope::traces::watch {

namespace {

using report::display_width;
using report::shortened;
using status::RankState;
using status::RankStatus;
using status::RunStatus;

constexpr std::size_t kGap = 2;               // between columns and between parts of a line
constexpr std::size_t kLeastLastColumn = 30;  // of the last column, else one before it is left out
constexpr std::size_t kWidestBar = 60, kLeastBar = 8;

std::string rate_words(const RunStatus& run) {
    const std::string items = run.items.empty() ? "steps" : report::printable(run.items);
    if (*run.rate >= 100) return fmt::format("{} {}/s", store::grouped(std::llround(*run.rate)), items);
    return fmt::format("{:.{}f} {}/s", *run.rate, *run.rate >= 10 ? 1 : 2, items);
}

std::string time_words(double seconds) {
    if (seconds < 1e-3) return fmt::format("{:.0f} µs", seconds * 1e6);
    if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
    return fmt::format("{:.2f} s", seconds);
}

std::string memory_words(std::int64_t bytes) {
    if (bytes < 1 << 20) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
    const double mib = static_cast<double>(bytes) / (1 << 20);
    return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024);
}

std::string clock_words(double seconds) {
    const std::int64_t s = std::max<std::int64_t>(std::llround(seconds), 0);
    return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::optional<double> share_done(const RunStatus& run) {
    if (!run.steps_done || !run.steps || *run.steps <= 0) return std::nullopt;
    return std::clamp(static_cast<double>(*run.steps_done) / static_cast<double>(*run.steps), 0.0, 1.0);
}

// "step 452 of 1000"; the steps are those that are done.
std::string step_words(const RunStatus& run) {
    const std::string done = "step " + store::grouped(*run.steps_done);
    return run.steps ? done + " of " + store::grouped(*run.steps) : done;
}

std::string epoch_words(const RunStatus& run) {
    return fmt::format("epoch {:.2f}{}", *run.epoch, run.epochs ? fmt::format(" of {}", *run.epochs) : "");
}

// While ranks wait, nobody knows.
bool knows_time_left(const RunStatus& run) {
    return run.left_s && !is_over(run.state) && run.state != status::RunState::waiting;
}

// The parts one after the other, each whole, in as many lines as they need.
void flow(const std::vector<std::string>& parts, std::size_t width, std::vector<DisplayLine>& lines) {
    std::string line;
    const auto end_line = [&] {
        if (!line.empty()) lines.push_back({shortened(line, width)});
        line.clear();
    };
    for (const std::string& part : parts) {
        if (part.empty()) continue;
        if (!line.empty() && display_width(line) + kGap + display_width(part) > width) end_line();
        line += (line.empty() ? "" : std::string(kGap, ' ')) + part;
    }
    end_line();
}

void add_head(const RunStatus& run, std::size_t width, std::vector<DisplayLine>& lines) {
    const std::string right = fmt::format("{}, {}", name(run.state), clock_words(run.time_s));
    std::string left = report::printable(run.tool.empty() ? "a run" : run.tool);
    if (!run.run.empty()) left += ": " + report::printable(run.run);
    if (!run.host.empty()) left += " on " + report::printable(run.host);
    const std::size_t room = width > display_width(right) + kGap ? width - display_width(right) - kGap : 0;
    if (room < 16) {
        lines.push_back({shortened(left, width), Emphasis::heading});
        lines.push_back({shortened(right, width), Emphasis::heading});
        return;
    }
    left = shortened(left, room);
    left.append(width - display_width(right) - display_width(left), ' ');
    lines.push_back({left + right, Emphasis::heading});
}

void add_bar(const RunStatus& run, std::size_t width, std::vector<DisplayLine>& lines) {
    const auto share = share_done(run);
    if (!share) return;
    const std::string words = fmt::format(" {:5.1f} %  {}", 100 * *share, step_words(run));
    const std::size_t taken = display_width(words) + 2;
    if (width < taken + kLeastBar) {
        lines.push_back({shortened(words.substr(1), width)});
        return;
    }
    const std::size_t bar = std::min(width - taken, kWidestBar);
    const auto full = static_cast<std::size_t>(*share * static_cast<double>(bar));
    lines.push_back({"[" + std::string(full, '#') + std::string(bar - full, '.') + "]" + words});
}

void add_figures(const RunStatus& run, std::size_t width, std::vector<DisplayLine>& lines) {
    std::vector<std::string> parts;
    if (run.steps_done && !share_done(run)) parts.push_back(step_words(run));
    if (run.epoch) parts.push_back(epoch_words(run));
    if (run.loss) parts.push_back(fmt::format("loss {:.4f}", *run.loss));
    if (run.rate) parts.push_back(rate_words(run));
    if (run.step_s) parts.push_back(time_words(*run.step_s) + " a step");
    if (knows_time_left(run)) parts.push_back(duration_words(*run.left_s) + " left");
    if (run.slowest_rank) parts.push_back(fmt::format("slowest: rank {}", *run.slowest_rank));
    if (run.processes) {
        parts.push_back(
            fmt::format("{} process{}", store::grouped(*run.processes), *run.processes == 1 ? "" : "es"));
    }
    if (run.events) parts.push_back(fmt::format("{} events", store::grouped(*run.events)));
    if (run.dropped_events && *run.dropped_events > 0)
        parts.push_back(fmt::format("{} events lost", store::grouped(*run.dropped_events)));
    flow(parts, width, lines);
}

void add_courses(const Course& course, std::size_t width, std::vector<DisplayLine>& lines) {
    const std::size_t both = course.loss.is_course() && course.rate.is_course() ? 2 : 1;
    const std::size_t words = 6;  // "loss " and "speed "
    if (width < 2 * (words + kLeastBar) + kGap) return;
    const std::size_t room = std::min((width - (both - 1) * kGap) / both - words, kWidestBar);
    std::vector<std::string> parts;
    if (course.loss.is_course()) parts.push_back("loss " + course.loss.sparkline(room));
    if (course.rate.is_course()) parts.push_back("speed " + course.rate.sparkline(room));
    flow(parts, width, lines);
}

// --- ranks -----------------------------------------------------------------------------------------------

// A time that is worth a look: " for 3.0 s"; empty if it is short.
std::string long_words(const char* before, const std::optional<double>& seconds, const char* behind) {
    if (!seconds || *seconds < 1) return "";
    return fmt::format("{}{}{}", before,
                       *seconds < 10 ? fmt::format("{:.1f} s", *seconds) : duration_words(*seconds), behind);
}

// "in all_gather 12 of group 1 for 3.0 s", or "all_gather 12 of group 1, 3.0 s ago".
std::string place_words(const RankStatus& rank) {
    std::string text;
    if (rank.collective) {
        const status::CollectiveStatus& own = *rank.collective;
        text = fmt::format(
            "{}{} {} of group {}{}", own.open ? "in " : "", report::printable(own.operation), own.number,
            own.group, own.open ? long_words(" for ", own.for_s, "") : long_words(", ", own.for_s, " ago"));
    }
    if (rank.range) {
        text += fmt::format("{}{}{}", text.empty() ? "" : "; ", report::printable(rank.range->name),
                            long_words(" for ", rank.range->for_s, ""));
    }
    return text;
}

std::string state_words(const RankStatus& rank) {
    if (rank.state != RankState::silent) return std::string(name(rank.state));
    return fmt::format("silent {:.0f} s", rank.silent_s);
}

struct RankColumn {
    const char* title;
    std::function<std::string(const RankStatus&)> text;
    bool right = true;
    int priority = 0;  // those with a lower one are left out first where it is narrow
};

template <class Value, class Words>
auto if_known(std::optional<Value> RankStatus::*member, Words words) {
    return [member, words](const RankStatus& rank) { return rank.*member ? words(*(rank.*member)) : ""; };
}

const char* place_title(const std::vector<RankStatus>& ranks) {
    const bool collectives =
        std::any_of(ranks.begin(), ranks.end(), [](const auto& r) { return !!r.collective; });
    const bool ranges = std::any_of(ranks.begin(), ranks.end(), [](const auto& r) { return !!r.range; });
    return !ranges ? "last collective" : collectives ? "last collective; open range" : "open range";
}

std::vector<RankColumn> rank_columns(const std::vector<RankStatus>& ranks) {
    return {
        {"rank", [](const RankStatus& r) { return r.rank < 0 ? "other" : std::to_string(r.rank); }, true, 9},
        {"state", state_words, false, 8},
        {"step", if_known(&RankStatus::steps_done, [](std::int64_t n) { return std::to_string(n); }), true,
         6},
        {"memory", if_known(&RankStatus::memory_bytes, memory_words), true, 5},
        {"peak", if_known(&RankStatus::peak_bytes, memory_words), true, 4},
        {"process", if_known(&RankStatus::resident_bytes, memory_words), true, 3},
        {"cores", if_known(&RankStatus::cores, [](double n) { return fmt::format("{:.1f}", n); }), true, 4},
        {"waits", if_known(&RankStatus::waits_percent, [](double n) { return fmt::format("{:.0f} %", n); }),
         true, 5},
        {"host", [](const RankStatus& r) { return report::printable(r.host); }, false, 1},
        {place_title(ranks), place_words, false, 7},
    };
}

using Cells = std::vector<std::string>;

std::size_t width_of(const std::vector<Cells>& rows, std::size_t column) {
    std::size_t widest = 0;
    for (const Cells& row : rows) widest = std::max(widest, display_width(row[column]));
    return widest;
}

bool all_one_host(const std::vector<RankStatus>& ranks) {
    return std::all_of(ranks.begin(), ranks.end(),
                       [&](const RankStatus& rank) { return rank.host == ranks.front().host; });
}

// Columns that say nothing are left out, then those for which there is no room.
std::vector<RankColumn> fitting_columns(const std::vector<RankStatus>& ranks, std::size_t width) {
    std::vector<RankColumn> columns = rank_columns(ranks);
    std::erase_if(columns, [&](const RankColumn& column) {
        if (std::string_view(column.title) == "host" && all_one_host(ranks)) return true;
        return std::all_of(ranks.begin(), ranks.end(),
                           [&](const RankStatus& rank) { return column.text(rank).empty(); });
    });
    const auto needed = [&] {
        std::size_t sum = 0;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            std::size_t widest = display_width(columns[c].title);
            for (const RankStatus& rank : ranks)
                widest = std::max(widest, display_width(columns[c].text(rank)));
            const bool shrinks = c + 1 == columns.size() && !columns[c].right;
            sum += (c > 0 ? kGap : 0) + (shrinks ? std::min(widest, kLeastLastColumn) : widest);
        }
        return sum;
    };
    while (columns.size() > 1 && needed() > width) {
        columns.erase(std::min_element(columns.begin(), columns.end(),
                                       [](const auto& a, const auto& b) { return a.priority < b.priority; }));
    }
    return columns;
}

// The order in which ranks are shown where not all can be.
int urgency(const RankStatus& rank, const RunStatus& run) {
    if (rank.state == RankState::silent) return 0;
    if (rank.state == RankState::starting && run.state != status::RunState::starting) return 1;
    if (run.slowest_rank && *run.slowest_rank == rank.rank) return 2;
    return rank.state == RankState::running && run.state == status::RunState::waiting ? 2 : 3;
}

void add_ranks(const RunStatus& run, std::size_t width, std::size_t room, std::vector<DisplayLine>& lines) {
    if (run.ranks.empty() || room < 2) return;
    std::vector<RankStatus> shown = run.ranks;
    const std::size_t most =
        shown.size() < room ? shown.size() : room - 2;  // a heading, and what is left out
    if (most < shown.size()) {
        std::stable_sort(shown.begin(), shown.end(), [&](const RankStatus& a, const RankStatus& b) {
            return urgency(a, run) < urgency(b, run);
        });
        shown.resize(most);
        std::stable_sort(shown.begin(), shown.end(),
                         [](const RankStatus& a, const RankStatus& b) { return a.rank < b.rank; });
    }
    if (!shown.empty()) {
        const std::vector<RankColumn> columns = fitting_columns(run.ranks, width);
        std::vector<Cells> rows(1);
        for (const RankColumn& column : columns) rows[0].emplace_back(column.title);
        for (const RankStatus& rank : shown) {
            Cells& row = rows.emplace_back();
            for (const RankColumn& column : columns) row.push_back(column.text(rank));
        }
        std::vector<std::size_t> widths;
        for (std::size_t c = 0; c < columns.size(); ++c) widths.push_back(width_of(rows, c));
        for (std::size_t r = 0; r < rows.size(); ++r) {
            std::string line;
            for (std::size_t c = 0; c < columns.size(); ++c) {
                std::string cell = rows[r][c];
                const std::string blanks(widths[c] - display_width(cell), ' ');
                if (c > 0 && c + 1 == columns.size() && !columns[c].right) {
                    const std::size_t taken = display_width(line) + kGap;
                    cell = shortened(cell, width > taken ? width - taken : 0);
                }
                line += (c > 0 ? std::string(kGap, ' ') : "") +
                        (columns[c].right ? blanks + cell : cell + blanks);
            }
            line.resize(line.find_last_not_of(' ') + 1);
            const bool alarms = r > 0 && shown[r - 1].state == RankState::silent;
            lines.push_back({shortened(line, width), r == 0   ? Emphasis::heading
                                                     : alarms ? Emphasis::alarm
                                                              : Emphasis::none});
        }
    }
    if (most < run.ranks.size()) {
        lines.push_back({shortened(fmt::format("and {} more of {} ranks; a taller window shows them",
                                               run.ranks.size() - most, run.ranks.size()),
                                   width)});
    }
}

}  // namespace

void Course::add(const RunStatus& status) {
    if (!status.steps_done || *status.steps_done == steps_done_) return;
    steps_done_ = *status.steps_done;
    if (status.loss) loss.add(*status.loss);
    if (status.rate) rate.add(*status.rate);
}

std::string duration_words(double seconds) {
    const std::int64_t s = std::llround(std::clamp(seconds, 0.0, 1e12));
    if (s < 60) return fmt::format("{} s", s);
    if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
    if (s < 172800) return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
    return fmt::format("{} d {:02} h", s / 86400, s / 3600 % 24);
}

std::vector<DisplayLine> display(const RunStatus& run, const Course& course, const std::string& note,
                                 std::size_t width, std::size_t height) {
    std::vector<DisplayLine> lines;
    add_head(run, width, lines);
    add_bar(run, width, lines);
    add_figures(run, width, lines);
    add_courses(course, width, lines);
    if (!run.trace.empty()) lines.push_back({shortened("trace " + report::printable(run.trace), width)});
    for (const std::string& sentence : {run.reason, note}) {
        if (sentence.empty()) continue;
        for (const std::string& part : report::broken_at_blanks(report::printable(sentence), width))
            lines.push_back({shortened(part, width), Emphasis::alarm});
    }
    if (lines.size() < height) lines.push_back({});
    add_ranks(run, width, height > lines.size() ? height - lines.size() : 0, lines);
    if (lines.size() > height) lines.resize(height);
    return lines;
}

std::string log_line(const RunStatus& run) {
    std::string text = clock_words(run.time_s);
    const auto add = [&](const std::string& part) { text += (text.ends_with(',') ? " " : ", ") + part; };
    text += fmt::format(" {}", name(run.state));
    if (run.steps_done) {
        add(step_words(run));
        if (const auto share = share_done(run)) text += fmt::format(" ({:.1f} %)", 100 * *share);
    }
    if (run.epoch) add(epoch_words(run));
    if (run.loss) add(fmt::format("loss {:.4f}", *run.loss));
    if (run.rate) add(rate_words(run));
    if (run.events) add(fmt::format("{} events", store::grouped(*run.events)));
    if (knows_time_left(run)) add(duration_words(*run.left_s) + " left");
    return text + (run.reason.empty() ? "" : ": " + report::printable(run.reason));
}

}  // namespace shardscope::traces::watch
