// Writes the list of one rank while a schedule is made: it counts the micro-batches of each chunk, so that a
// schedule says only which chunk is next. Micro-batches beyond the last are omitted.
#pragma once

#include <deque>
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace shardscope::trainer::pipeline {

class RankWriter {
  public:
    RankWriter(const Shape& shape, Placement placement, int rank, std::vector<Action>& into)
        : p(shape.ranks), m(shape.micro_batches), v(shape.chunks), r(rank), into_(into) {
        for (int c = 0; c < v; ++c) stages_.push_back(stage_of(placement, shape, rank, c));
        forwards_.resize(stages_.size());
        backwards_.resize(stages_.size());
    }

    const int p, m, v, r;  // ranks, micro-batches, chunks per rank, this rank

    int forwards(int chunk) const { return forwards_[at(chunk)]; }
    bool has_weight(int chunk) const { return find_weight(chunk) != weights_.end(); }

    // The chunk's next micro-batch.
    void forward(int chunk) { add(chunk, ActionKind::forward, forwards_[at(chunk)]++); }
    void backward(int chunk) { add(chunk, ActionKind::backward, backwards_[at(chunk)]++); }
    void backward(int chunk, int micro_batch) { add(chunk, ActionKind::backward, micro_batch); }
    void input(int chunk) {
        const int micro_batch = backwards_[at(chunk)]++;
        if (micro_batch < m) weights_.push_back({chunk, micro_batch});
        add(chunk, ActionKind::backward_input, micro_batch);
    }
    // The weight gradient that has been pending longest: of all chunks, or of one. Nothing if none is
    // pending.
    void weight() {
        if (!weights_.empty()) take_weight(weights_.begin());
    }
    void weight(int chunk) {
        if (const auto found = find_weight(chunk); found != weights_.end()) take_weight(found);
    }
    void weights() {
        while (!weights_.empty()) weight();
    }
    void forward_with_backward(int of_forward, int of_backward) {
        forward(of_forward);
        into_.back().with_next = true;
        backward(of_backward);
    }

  private:
    struct Pending {
        int chunk, micro_batch;
    };
    static std::size_t at(int chunk) { return static_cast<std::size_t>(chunk); }
    std::deque<Pending>::const_iterator find_weight(int chunk) const {
        auto found = weights_.begin();
        while (found != weights_.end() && found->chunk != chunk) ++found;
        return found;
    }
    void take_weight(const std::deque<Pending>::const_iterator& pending) {
        add(pending->chunk, ActionKind::backward_weight, pending->micro_batch);
        weights_.erase(pending);
    }
    void add(int chunk, ActionKind kind, int micro_batch) {
        if (micro_batch < m) into_.push_back({stages_[at(chunk)], kind, micro_batch});
    }

    std::vector<int> stages_, forwards_, backwards_;
    std::deque<Pending> weights_;
    std::vector<Action>& into_;
};

// Does something n times; not at all if n is below 1.
template <class Something>
void repeat(int n, Something something) {
    for (int i = 0; i < n; ++i) something();
}

}  // namespace shardscope::trainer::pipeline
