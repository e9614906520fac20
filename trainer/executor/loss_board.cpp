#include "trainer/executor/loss_board.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

namespace shardscope::trainer::executor {

LossBoard::LossBoard(const Size& size, std::function<void(const BoardLoss&)> on_step)
    : ranks_(static_cast<std::size_t>(size.ranks)),
      with_losses_(static_cast<std::size_t>(size.with_losses)),
      parts_(size.parts),
      on_step_(std::move(on_step)),
      latest_(ranks_, std::numeric_limits<std::int64_t>::min()) {}

void LossBoard::tell(int rank, std::int64_t step, std::span<const double> losses, std::int32_t module,
                     const StepMemory& memory, std::optional<double> norm) {
    const std::lock_guard lock(mutex_);
    const auto r = static_cast<std::size_t>(rank);
    if (step <= latest_[r]) return;
    latest_[r] = step;
    Row& row = rows_
                   .try_emplace(step, Row{std::vector<std::vector<double>>(ranks_),
                                          std::vector<std::int32_t>(ranks_, -1),
                                          {},
                                          norm})
                   .first->second;
    row.losses[r].assign(losses.begin(), losses.end());
    row.modules[r] = module;
    row.memory = {std::max(row.memory.allocated, memory.allocated), std::max(row.memory.peak, memory.peak)};
    if (++row.told < ranks_) return;
    const BoardLoss total = sum(step, row);
    rows_.erase(step);
    on_step_(total);
}

BoardLoss LossBoard::sum(std::int64_t step, const Row& row) const {
    BoardLoss total;
    total.step = step;
    total.memory = row.memory;
    total.gradient_norm = row.norm;
    std::size_t pieces = 0, reports = 0;
    for (const std::vector<double>& losses : row.losses) {
        pieces = std::max(pieces, losses.size());
        reports += losses.empty() ? 0 : 1;
    }
    if (reports != with_losses_) {
        throw std::logic_error(fmt::format("step {}: {} ranks reported losses, but {} compute them", step,
                                           reports, with_losses_));
    }
    for (std::size_t piece = 0; piece < pieces; ++piece) {
        for (const std::vector<double>& losses : row.losses) {
            if (losses.empty()) continue;
            if (losses.size() != pieces) throw std::logic_error("ranks report different numbers of losses");
            total.loss += losses[piece];
            ++total.pieces;
        }
    }
    total.pieces /= parts_;
    total.loss /= static_cast<double>(total.pieces);
    for (const std::int32_t module : row.modules) {
        if (total.module < 0) total.module = module;
    }
    return total;
}

}  // namespace shardscope::trainer::executor
