// The links of a World: on rank 0 to all others, on the others to rank 0 only. Used on the World's thread
// only.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/world/link.h"

namespace shardscope::trainer::world {

class Links {
  public:
    using ByRank = std::map<int, std::shared_ptr<Link>>;  // the rank at the other end

    void add(int rank, std::shared_ptr<Link> link) { by_rank_[rank] = std::move(link); }
    const ByRank& by_rank() const { return by_rank_; }
    bool empty() const { return by_rank_.empty(); }
    std::size_t size() const { return by_rank_.size(); }
    bool has(int rank) const { return by_rank_.contains(rank); }
    Link& to(int rank) const { return *by_rank_.at(rank); }
    Link& to_first() const { return to(0); }

    void send_to_all(FrameKind kind, std::string text = {}) const {
        const auto shared = std::make_shared<const std::string>(std::move(text));
        for (const auto& [rank, link] : by_rank_) link->send(kind, shared);
    }
    bool all_written() const {
        return std::all_of(by_rank_.begin(), by_rank_.end(),
                           [](const auto& each) { return each.second->ended() || each.second->idle(); });
    }
    bool all_ended() const {
        return std::all_of(by_rank_.begin(), by_rank_.end(),
                           [](const auto& each) { return each.second->ended(); });
    }
    void finish_sending() const {
        for (const auto& [rank, link] : by_rank_) link->finish_sending();
    }
    void close() const {
        for (const auto& [rank, link] : by_rank_) link->close();
    }

  private:
    ByRank by_rank_;
};

}  // namespace shardscope::trainer::world
