// Maps the ids and times of several traces to those of the joined one; see join.h. Internal to the library.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "traces/merge/part_clocks.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::importer {

using Parts = std::vector<std::unique_ptr<store::Trace>>;

// Throws StoreError if `size` rows of a kind are too many for 16-bit indices.
void check_joined_size(std::size_t size, const char* what);

class JoinIds {
  public:
    // Fills the strings, ranks, modules, units and the wall clock of `out`. `parts` and `out` must outlive
    // it. Throws StoreError if two parts have the same rank number.
    JoinIds(const Parts& parts, store::Trace& out);

    // Each maps a value of part `p` to the joined trace. The value for "none" is kept.
    std::int64_t time(std::size_t p, std::int64_t t) const { return alignment_.parts[p].clock(t); }
    schema::StringId text(std::size_t p, schema::StringId id) const {
        return strings_[p][static_cast<std::size_t>(id)];
    }
    store::RankIndex rank(std::size_t p, store::RankIndex r) const {
        return r.known() ? ranks_[p][r.at()] : r;
    }
    // A rank that part `p` does not contain keeps its number.
    int rank_number(std::size_t p, int number) const;
    int module(std::size_t p, int id) const { return id < 0 ? id : id + model_[p].modules; }
    int unit(std::size_t p, int id) const { return id < 0 ? id : id + model_[p].units; }

    const merge::Alignment& alignment() const { return alignment_; }
    // A sentence for each rank whose number differs from that in its part.
    const std::vector<std::string>& renumbered() const { return renumbered_; }

  private:
    struct ModelOffset {
        int modules = 0, units = 0;
    };

    void align();
    void join_strings();
    void join_ranks();
    void join_model();
    const store::Trace& part(std::size_t p) const { return *parts_[p]; }

    const Parts& parts_;
    store::Trace& out_;
    merge::Alignment alignment_;
    std::vector<std::vector<schema::StringId>> strings_;
    std::vector<std::vector<store::RankIndex>> ranks_;
    std::vector<std::string> renumbered_;
    std::vector<ModelOffset> model_;
};

}  // namespace shardscope::traces::importer
