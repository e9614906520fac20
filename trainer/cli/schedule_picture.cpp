#include "trainer/cli/schedule_picture.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/core.h>

namespace shardscope::trainer::cli {

namespace {

using pipeline::Action;
using pipeline::Schedule;
using pipeline::ScheduleReplay;

constexpr std::size_t kMostLines = 600;
constexpr std::size_t kEvery = 5;  // cells, with a time above

// "F2" with one stage per rank, otherwise with the stage: "3F2"; "0F7+7B3" for two that run together.
std::string label_of(std::span<const Action> cell, bool one_stage) {
    std::string label;
    for (const Action& action : cell) {
        const std::string text = text_of(action);
        label += (label.empty() ? "" : "+") +
                 (one_stage ? text.substr(text.find_first_not_of("0123456789")) : text);
    }
    return label;
}

class Picture {
  public:
    Picture(const Schedule& schedule, const ScheduleReplay& replay)
        : schedule_(schedule), replay_(replay), one_stage_(schedule.stages() == schedule.ranks()) {
        for (const pipeline::ReplayedRank& rank : replay.ranks) {
            for (const pipeline::ReplayedCell& cell : rank.cells) {
                unit_ = std::gcd(unit_, std::gcd(cell.begin, cell.end));
            }
        }
        cells_ = static_cast<std::size_t>(replay.makespan / unit_);
        for_each_cell(
            [&](std::size_t /*rank*/, std::size_t cells, std::size_t /*first*/, const std::string& label) {
                column_ = std::max(column_, (label.size() + cells) / cells);  // a blank follows
            });
    }

    std::string text(std::size_t width) const {
        const std::size_t margin = fmt::format("rank {}  ", replay_.ranks.size() - 1).size();
        std::size_t per_block = std::max<std::size_t>(1, (width - std::min(width, margin)) / column_);
        if (per_block >= kEvery && per_block < cells_)
            per_block -= per_block % kEvery;  // blocks begin with a time
        const std::size_t blocks = (cells_ + per_block - 1) / per_block;
        const std::size_t lines = blocks * (replay_.ranks.size() + 2);
        if (lines > kMostLines)
            return fmt::format("(The picture is omitted: it would have {} lines.)\n", lines);
        const std::vector<std::string> rows = rows_of_ranks(per_block);
        const std::string times = ruler();
        std::string out;
        for (std::size_t block = 0; block < blocks; ++block) {
            const std::size_t from = block * per_block * column_, size = per_block * column_;
            const auto line = [&](const std::string& title, const std::string& row) {
                std::string text = fmt::format("{:<{}}{}", title, margin, row.substr(from, size));
                text.erase(text.find_last_not_of(' ') + 1);
                out += text + "\n";
            };
            if (block > 0) out += "\n";
            line("time", times);
            for (std::size_t r = 0; r < rows.size(); ++r) line(fmt::format("rank {}", r), rows[r]);
        }
        return out + legend();
    }

  private:
    template <class Call>
    void for_each_cell(Call call) const {
        for (std::size_t r = 0; r < replay_.ranks.size(); ++r) {
            for (const pipeline::ReplayedCell& cell : replay_.ranks[r].cells) {
                const std::string label = label_of(cell_at(schedule_.actions[r], cell.at), one_stage_);
                call(r, static_cast<std::size_t>((cell.end - cell.begin) / unit_),
                     static_cast<std::size_t>(cell.begin / unit_), label);
            }
        }
    }

    std::vector<std::string> rows_of_ranks(std::size_t per_block) const {
        std::string idle;
        for (std::size_t i = 0; i < cells_; ++i) idle += fmt::format("{:<{}}", ".", column_);
        std::vector<std::string> rows(replay_.ranks.size(), idle);
        for_each_cell([&](std::size_t rank, std::size_t cells, std::size_t first, const std::string& label) {
            // A label goes to the next line with its end if only there is room for it.
            const std::size_t here = std::min(cells, per_block - first % per_block), below = cells - here;
            const bool fits = label.size() < here * column_ || label.size() >= below * column_;
            rows[rank].replace(first * column_, cells * column_, std::string(cells * column_ - 1, '-') + ' ');
            rows[rank].replace((first + (fits ? 0 : here)) * column_, label.size(), label);
        });
        return rows;
    }

    // Every fifth cell's time, or further apart where its digits need the room.
    std::string ruler() const {
        std::string line(cells_ * column_ + 16, ' ');
        std::size_t every = kEvery;
        const std::size_t room = time_of(cells_).size() + 1;
        while (every * column_ < room) every *= 2;
        for (std::size_t i = 0; i < cells_; i += every) {
            const std::string time = time_of(i);
            line.replace(i * column_, time.size(), time);
        }
        line.resize(cells_ * column_);
        return line;
    }
    std::string time_of(std::size_t cells) const {
        return time_text(replay_.costs.units(static_cast<std::int64_t>(cells) * unit_));
    }

    std::string legend() const {
        bool split = false, whole = false, pairs = false;
        for (const std::vector<Action>& own : schedule_.actions) {
            for (const Action& action : own) {
                split = split || action.kind == pipeline::ActionKind::backward_input;
                whole = whole || action.kind == pipeline::ActionKind::backward;
                pairs = pairs || action.with_next;
            }
        }
        const std::string what = one_stage_ ? "Action and micro-batch" : "Stage, action, micro-batch";
        return fmt::format("{}; a cell is {} unit{} of time\nF forward,{}{}{} . idle\n", what,
                           time_text(replay_.costs.units(unit_)), replay_.costs.scale < unit_ ? "s" : "",
                           whole ? " B backward," : "",
                           split ? " I and W its parts for the input and the weights," : "",
                           pairs ? " + run together," : "");
    }

    const Schedule& schedule_;
    const ScheduleReplay& replay_;
    bool one_stage_;
    std::int64_t unit_ = 0;   // ticks of a cell: all times are multiples of it
    std::size_t cells_ = 0;   // in the makespan
    std::size_t column_ = 1;  // characters of a cell
};

}  // namespace

std::string schedule_picture(const Schedule& schedule, const ScheduleReplay& replay, std::size_t width) {
    return Picture(schedule, replay).text(width);
}

}  // namespace shardscope::trainer::cli
