#include "trainer/pipeline/csv.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "trainer/pipeline/check.h"

namespace shardscope::trainer::pipeline {

namespace {

constexpr std::size_t kMostBytes = 64 << 20;

class CsvReader {
  public:
    CsvReader(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

    Schedule read() {
        while (!rest_.empty()) {
            if (made_.ranks() == kMostRanks)
                throw ScheduleError(
                    fmt::format("{}: more than {} lines, of which each is a rank", file_, kMostRanks));
            const std::string_view line = take(rest_, '\n');
            // Blank lines at the end are no ranks.
            if (rest_.find_first_not_of(" \t\r\n,") == std::string_view::npos) rest_ = {};
            read_rank(line);
        }
        if (actions_ == 0)
            throw ScheduleError(
                fmt::format("{}: no action; a line is a rank, its actions are separated by commas", file_));
        for (std::vector<Action>& own : made_.actions) rename_older(own);
        place_stages();
        if (const auto problem = find_problem(made_)) {
            if (problem->at)
                fail(problem->rank, cells_[static_cast<std::size_t>(problem->rank)][*problem->at],
                     problem->text);
            throw ScheduleError(
                fmt::format("{}:{}: (rank {}): {}", file_, problem->rank + 1, problem->rank, problem->text));
        }
        return std::move(made_);
    }

  private:
    static std::string_view take(std::string_view& rest, char end) {
        const auto at = std::min(rest.find(end), rest.size());
        const std::string_view part = rest.substr(0, at);
        rest.remove_prefix(std::min(at + 1, rest.size()));
        return part;
    }
    [[noreturn]] void fail(int rank, int cell, const std::string& what) const {
        throw ScheduleError(fmt::format("{}:{}: cell {} (rank {}): {}", file_, rank + 1, cell, rank, what));
    }

    void read_rank(std::string_view line) {
        const int rank = made_.ranks();
        std::vector<Action>& own = made_.actions.emplace_back();
        std::vector<int>& cells = cells_.emplace_back();
        for (int cell = 1; !line.empty(); ++cell) {
            if (const std::string wrong = parse_cell(take(line, ','), own); !wrong.empty())
                fail(rank, cell, wrong);
            cells.resize(own.size(), cell);
        }
        actions_ += own.size();
        if (own.empty())
            throw ScheduleError(
                fmt::format("{}:{}: rank {} has no action; each line is a rank that holds a stage", file_,
                            rank + 1, rank));
    }

    // A list with W but without I is of an older version, whose B is I where its W is apart.
    static void rename_older(std::vector<Action>& own) {
        std::set<std::pair<int, int>> weights;
        for (const Action& a : own) {
            if (a.kind == ActionKind::backward_input) return;
            if (a.kind == ActionKind::backward_weight) weights.emplace(a.stage, a.micro_batch);
        }
        for (Action& a : own) {
            if (a.kind == ActionKind::backward && weights.contains({a.stage, a.micro_batch}))
                a.kind = ActionKind::backward_input;
        }
    }

    void place_stages() {
        int stages = 0;
        for (const std::vector<Action>& own : made_.actions) {
            for (const Action& a : own) {
                stages = std::max(stages, a.stage + 1);
                made_.micro_batches = std::max(made_.micro_batches, a.micro_batch + 1);
            }
        }
        made_.rank_of_stage.assign(static_cast<std::size_t>(stages), -1);
        for (int rank = 0; rank < made_.ranks(); ++rank) {
            for (const Action& a : made_.actions[static_cast<std::size_t>(rank)]) {
                int& owner = made_.rank_of_stage[static_cast<std::size_t>(a.stage)];
                if (owner < 0) owner = rank;
            }
        }
        const auto none = std::find(made_.rank_of_stage.begin(), made_.rank_of_stage.end(), -1);
        if (none != made_.rank_of_stage.end())
            throw ScheduleError(
                fmt::format("{}: there are actions of stage {} but none of stage {}; stages are numbered "
                            "from 0 without gaps",
                            file_, stages - 1, none - made_.rank_of_stage.begin()));
    }

    std::string_view rest_, file_;
    Schedule made_;
    std::vector<std::vector<int>> cells_;  // the cell of each action, numbered from 1
    std::size_t actions_ = 0;
};

}  // namespace

Schedule parse_csv(std::string_view text, std::string_view file) {
    return CsvReader(text, file).read();
}

Schedule read_csv(const std::string& file) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (error)
        throw ScheduleError(fmt::format("{}: cannot be read ({}); check the path", file, error.message()));
    if (size > kMostBytes)
        throw ScheduleError(fmt::format("{}: larger than 64 MiB; it is not a schedule", file));
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (!stream)
        throw ScheduleError(
            fmt::format("{}: cannot be read ({}); check the path", file, std::strerror(errno)));
    return parse_csv(text, file);
}

std::string csv_text(const Schedule& schedule) {
    std::string text;
    for (const std::vector<Action>& own : schedule.actions) {
        for (std::size_t at = 0; at < own.size();) {
            const std::span<const Action> cell = cell_at(own, at);
            if (at > 0) text += ',';
            text += cell_text(cell);
            at += cell.size();
        }
        text += '\n';
    }
    return text;
}

}  // namespace shardscope::trainer::pipeline
