#include "trainer/pipeline/lower.h"

#include <algorithm>
#include <map>

#include "trainer/pipeline/walk.h"

namespace shardscope::trainer::pipeline {

namespace {

using Actions = std::vector<Action>;
using Kind = ActionKind;

// Where the cells of a list begin.
std::vector<std::size_t> cell_starts(const Actions& own) {
    std::vector<std::size_t> starts;
    for (std::size_t at = 0; at < own.size(); at += cell_at(own, at).size()) starts.push_back(at);
    return starts;
}

// For each cell, the first `count` different stages from it on; all stages of a cell, so that there may be
// one more.
std::vector<std::vector<int>> next_stages(const Actions& own, const std::vector<std::size_t>& starts,
                                          std::size_t count) {
    struct Use {
        int stage;
        std::size_t at;  // its next cell
    };
    std::vector<Use> uses;  // the nearest first
    std::vector<std::vector<int>> all(starts.size());
    for (std::size_t i = starts.size(); i-- > 0;) {
        const std::span<const Action> cell = cell_at(own, starts[i]);
        for (std::size_t part = cell.size(); part-- > 0;) {
            const int stage = cell[part].stage;
            std::erase_if(uses, [&](const Use& use) { return use.stage == stage; });
            uses.insert(uses.begin(), {stage, i});
        }
        for (std::size_t k = 0; k < uses.size(); ++k) {
            if (k >= count && uses[k].at != uses[count - 1].at) break;
            all[i].push_back(uses[k].stage);
        }
    }
    return all;
}

void add_unsharding(Actions& own, int unsharded_stages) {
    const std::vector<std::size_t> starts = cell_starts(own);
    const auto next = next_stages(own, starts, static_cast<std::size_t>(unsharded_stages));
    Actions out;
    std::vector<int> unsharded;  // in the order of their gathers
    const auto has = [](const std::vector<int>& stages, int stage) {
        return std::find(stages.begin(), stages.end(), stage) != stages.end();
    };
    for (std::size_t i = 0; i < starts.size(); ++i) {
        std::erase_if(unsharded, [&](int stage) {
            if (has(next[i], stage)) return false;
            out.push_back({stage, Kind::reshard});
            return true;
        });
        for (const int stage : next[i]) {
            if (has(unsharded, stage)) continue;
            unsharded.push_back(stage);
            out.push_back({stage, Kind::unshard});
        }
        const std::span<const Action> cell = cell_at(own, starts[i]);
        out.insert(out.end(), cell.begin(), cell.end());
    }
    for (const int stage : unsharded) out.push_back({stage, Kind::reshard});
    own = std::move(out);
}

void add_reductions(Actions& own, int micro_batches) {
    Actions out;
    std::map<int, int> done;  // backwards of each stage
    for (const std::size_t at : cell_starts(own)) {
        const std::span<const Action> cell = cell_at(own, at);
        out.insert(out.end(), cell.begin(), cell.end());
        for (const Action& a : cell) {
            if (!ends_backward(a.kind) || ++done[a.stage] < micro_batches) continue;
            out.push_back({a.stage, Kind::reduce_grad});
            out.push_back({a.stage, Kind::wait_reduce_grad});
        }
    }
    own = std::move(out);
}

void add_transfers(Schedule& schedule) {
    std::vector<Actions> out(schedule.actions.size());
    const auto rank_of = [&](int stage) {
        return static_cast<std::size_t>(schedule.rank_of_stage[static_cast<std::size_t>(stage)]);
    };
    walk(schedule, [&](int rank, std::span<const Action> cell) {
        Actions& own = out[static_cast<std::size_t>(rank)];
        own.insert(own.end(), cell.begin(), cell.end());
        for (const Action& a : cell) {
            const bool forward = a.kind == Kind::forward;
            const int to = a.stage + (forward ? 1 : -1);
            if (!(forward || gives_input_gradient(a.kind)) || to < 0 || to >= schedule.stages() ||
                rank_of(to) == rank_of(a.stage))
                continue;
            own.push_back({a.stage, forward ? Kind::send_forward : Kind::send_backward, a.micro_batch});
            out[rank_of(to)].push_back(
                {to, forward ? Kind::recv_forward : Kind::recv_backward, a.micro_batch});
        }
    });
    schedule.actions = std::move(out);
}

void add_waits(Actions& own) {
    Actions out, pending;
    const auto wait_for = [](const Action& send) {
        return Action{send.stage,
                      send.kind == Kind::send_forward ? Kind::wait_send_forward : Kind::wait_send_backward,
                      send.micro_batch};
    };
    for (const std::size_t at : cell_starts(own)) {
        const std::span<const Action> cell = cell_at(own, at);
        out.insert(out.end(), cell.begin(), cell.end());
        for (const Action& a : cell) {
            if (a.kind == Kind::send_forward || a.kind == Kind::send_backward) pending.push_back(a);
            if (!gives_input_gradient(a.kind)) continue;
            const auto send =
                std::find(pending.begin(), pending.end(), Action{a.stage, Kind::send_forward, a.micro_batch});
            if (send == pending.end()) continue;
            out.push_back(wait_for(*send));
            pending.erase(send);
        }
    }
    for (const Action& send : pending) out.push_back(wait_for(send));
    own = std::move(out);
}

}  // namespace

Schedule lower(const Schedule& computes, const LowerOptions& options) {
    Schedule lowered = computes;
    for (Actions& own : lowered.actions) {
        add_unsharding(own, options.unsharded_stages);
        add_reductions(own, lowered.micro_batches);
    }
    add_transfers(lowered);
    for (Actions& own : lowered.actions) {
        // Without FSDP PyTorch's runtime passes over them, but they decide where its RECVs are.
        if (!options.fsdp) std::erase_if(own, [](const Action& a) { return is_sharding(a.kind); });
        add_waits(own);
    }
    return lowered;
}

Schedule computes_of(const Schedule& schedule) {
    Schedule computes = schedule;
    for (Actions& own : computes.actions)
        std::erase_if(own, [](const Action& a) { return !is_compute(a.kind); });
    return computes;
}

}  // namespace shardscope::trainer::pipeline
