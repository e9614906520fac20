#include "traces/import/join/join_ids.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "traces/import/join/join.h"
#include "traces/store/error.h"

namespace shardscope::traces::importer {

namespace {

// Exports of Nsight Systems do not record ranks: the loader numbers the processes.
bool ranks_are_made_up(const store::Trace& trace) {
    return trace.schema_version == 0 &&
           std::none_of(trace.config.begin(), trace.config.end(),
                        [](const auto& fact) { return fact.first == "import.format"; });
}

}  // namespace

void check_joined_size(std::size_t size, const char* what) {
    if (size < store::kNoRank) return;
    throw store::StoreError(fmt::format(
        "the files have {} {} together, more than the {} that a trace can hold; open fewer of them at a time",
        size, what, store::kNoRank - 1));
}

JoinIds::JoinIds(const Parts& parts, store::Trace& out) : parts_(parts), out_(out) {
    align();
    join_strings();
    join_ranks();
    join_model();
}

void JoinIds::align() {
    alignment_ = align_clocks(clocks_of(parts_));
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (std::size_t p = 0; p < parts_.size(); ++p) first = std::min(first, alignment_.parts[p].clock(0));
    for (merge::AlignedPart& aligned : alignment_.parts) aligned.clock.shift -= first;
    out_.start_utc_ns = part(0).start_utc_ns == 0 ? 0 : part(0).start_utc_ns + first;
    out_.start_system_ns = part(0).start_system_ns == 0 ? 0 : part(0).start_system_ns + first;
}

void JoinIds::join_strings() {
    for (const auto& p : parts_) {
        auto& ids = strings_.emplace_back();
        ids.reserve(p->strings.size());
        for (std::size_t i = 0; i < p->strings.size(); ++i)
            ids.push_back(out_.strings.intern(p->strings[static_cast<schema::StringId>(i)]));
    }
}

// Sets each rank's number in the joined trace. A number that occurs twice is an error, unless it was made up.
void JoinIds::join_ranks() {
    std::map<int, std::pair<std::size_t, std::size_t>> by_number;  // (part, index)
    for (std::size_t p = 0; p < parts_.size(); ++p) {
        const bool made_up = ranks_are_made_up(part(p));
        for (std::size_t r = 0; r < part(p).ranks.size(); ++r) {
            int number = part(p).ranks[r].number;
            if (const auto other = by_number.find(number); other != by_number.end()) {
                const store::Trace& owner = part(other->second.first);
                if (!made_up && !ranks_are_made_up(owner)) {
                    throw store::StoreError(
                        fmt::format("{} and {} both contain rank {}; give one file for each rank of a job, "
                                    "or use compare for several runs",
                                    owner.path, part(p).path, number));
                }
                number = by_number.rbegin()->first + 1;
                renumbered_.push_back(fmt::format(
                    "rank {} of {} is rank {} here, because {} has a rank {}, too", part(p).ranks[r].number,
                    part(p).path, number, owner.path, part(p).ranks[r].number));
            }
            by_number.emplace(number, std::pair(p, r));
        }
        ranks_.emplace_back(part(p).ranks.size());
    }
    check_joined_size(by_number.size(), "ranks");
    for (const auto& [number, from] : by_number) {
        ranks_[from.first][from.second] = store::RankIndex(out_.ranks.size());
        out_.ranks.push_back(part(from.first).ranks[from.second]);
        out_.ranks.back().number = number;
    }
}

int JoinIds::rank_number(std::size_t p, int number) const {
    const store::RankIndex r = part(p).rank_of_number(number);
    return r.known() ? out_.ranks[rank(p, r).at()].number : number;
}

// Parts of one run describe the same modules under the same ids; those of another run get ids of their own.
void JoinIds::join_model() {
    std::map<int, const schema::ModuleRow*> modules;
    std::map<int, const schema::UnitRow*> units;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
        const store::Trace& trace = part(p);
        const bool same = std::all_of(trace.modules.begin(), trace.modules.end(),
                                      [&](const schema::ModuleRow& m) {
                                          const auto it = modules.find(m.id);
                                          return it == modules.end() || (it->second->name == m.name &&
                                                                         it->second->parent == m.parent);
                                      }) &&
                          std::all_of(trace.units.begin(), trace.units.end(), [&](const schema::UnitRow& u) {
                              const auto it = units.find(u.id);
                              return it == units.end() || it->second->name == u.name;
                          });
        model_.push_back({});
        if (!same) {
            model_.back() = {modules.empty() ? 0 : modules.rbegin()->first + 1,
                             units.empty() ? 0 : units.rbegin()->first + 1};
        }
        for (const schema::ModuleRow& m : trace.modules) modules.try_emplace(module(p, m.id), &m);
        for (const schema::UnitRow& u : trace.units) units.try_emplace(unit(p, u.id), &u);
        for (const schema::ModuleRow& m : trace.modules) {
            if (modules.at(module(p, m.id)) != &m) continue;
            schema::ModuleRow& row = out_.modules.emplace_back(m);
            row.id = module(p, m.id);
            row.parent = module(p, m.parent);
            row.unit = unit(p, m.unit);
        }
        for (const schema::UnitRow& u : trace.units) {
            if (units.at(unit(p, u.id)) != &u) continue;
            schema::UnitRow& row = out_.units.emplace_back(u);
            row.id = unit(p, u.id);
            row.module = module(p, u.module);
        }
    }
    const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
    std::sort(out_.modules.begin(), out_.modules.end(), by_id);
    std::sort(out_.units.begin(), out_.units.end(), by_id);
}

}  // namespace shardscope::traces::importer
