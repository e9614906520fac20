#include "trainer/pipeline/walk.h"

namespace shardscope::trainer::pipeline {

namespace {

// Which results have reached the stage that waits for them.
class Arrivals {
  public:
    explicit Arrivals(const Schedule& schedule)
        : schedule_(schedule),
          transfers_(schedule.has_transfers()),
          outputs_(schedule.index(schedule.stages(), 0)),
          gradients_(outputs_.size()) {}

    bool has(const Action& computed) const {
        const std::size_t i = schedule_.index(computed.stage, computed.micro_batch);
        return computed.kind == ActionKind::forward ? outputs_[i] : gradients_[i];
    }
    void add(const Action& done) {
        const std::size_t i = is_compute(done.kind) || is_transfer(done.kind)
                                  ? schedule_.index(done.stage, done.micro_batch)
                                  : 0;
        if (done.kind == ActionKind::send_forward ||
            (done.kind == ActionKind::forward && stays(done.stage, done.stage + 1))) {
            outputs_[i] = true;
        } else if (done.kind == ActionKind::send_backward ||
                   (gives_input_gradient(done.kind) && stays(done.stage, done.stage - 1))) {
            gradients_[i] = true;
        }
    }

  private:
    // Whether a result is there without being sent.
    bool stays(int stage, int to) const {
        if (!transfers_ || to < 0 || to >= schedule_.stages()) return true;
        return schedule_.rank_of_stage[static_cast<std::size_t>(stage)] ==
               schedule_.rank_of_stage[static_cast<std::size_t>(to)];
    }

    const Schedule& schedule_;
    bool transfers_;
    std::vector<bool> outputs_, gradients_;
};

}  // namespace

std::optional<Action> awaited(const Schedule& schedule, const Action& action) {
    if (action.kind == ActionKind::forward && action.stage > 0)
        return Action{action.stage - 1, ActionKind::forward, action.micro_batch};
    if (gives_input_gradient(action.kind) && action.stage + 1 < schedule.stages())
        return Action{action.stage + 1, ActionKind::backward, action.micro_batch};
    return std::nullopt;
}

std::vector<BlockedRank> walk(const Schedule& schedule,
                              const std::function<void(int rank, std::span<const Action> cell)>& visit) {
    Arrivals arrivals(schedule);
    std::vector<std::size_t> next(schedule.actions.size());
    std::vector<BlockedRank> blocked;
    for (bool progress = true; progress;) {
        progress = false;
        blocked.clear();
        for (int rank = 0; rank < schedule.ranks(); ++rank) {
            const std::vector<Action>& own = schedule.actions[static_cast<std::size_t>(rank)];
            std::size_t& at = next[static_cast<std::size_t>(rank)];
            if (at == own.size()) continue;
            const std::span<const Action> cell = cell_at(own, at);
            bool ready = true;
            for (const Action& action : cell) {
                const std::optional<Action> other = awaited(schedule, action);
                if (!other || arrivals.has(*other)) continue;
                if (ready) blocked.push_back({rank, at, action, *other});
                ready = false;
            }
            if (!ready) continue;
            visit(rank, cell);
            for (const Action& action : cell) arrivals.add(action);
            at += cell.size();
            progress = true;
        }
    }
    return blocked;
}

}  // namespace shardscope::trainer::pipeline
