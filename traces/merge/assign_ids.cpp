#include "traces/merge/assign_ids.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "traces/merge/part.h"
#include "traces/merge/row_ids.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::merge {

namespace {

// Takes one part after another; its members hold what the merged file has so far.
class Assigner {
  public:
    Assigner(std::vector<std::unique_ptr<Part>>& parts, store::StringTable& strings, Assignment& result)
        : parts_(parts), strings_(strings), result_(result) {}

    void run() {
        for (const auto& part : parts_) {
            result_.ids.push_back(std::make_unique<RowIds>(part->database, &strings_));
            RowIds& ids = *result_.ids.back();
            assign_machines(*part, ids);
            assign_ranks(*part, ids);
            assign_correlations(*part, ids);
            assign_ranges(*part, ids);
            assign_domains(*part, ids);
            payloads_.assign(*part, ids);
            assign_model(*part, ids);
        }
        // All ranks are known now, so that other devices can avoid their numbers.
        for (std::size_t p = 0; p < parts_.size(); ++p) assign_devices(*parts_[p], *result_.ids[p]);
    }

  private:
    // --- machines and processes

    // Whether the part has a thread with the ids of an earlier part's that works for another rank, or a
    // process with the ids of an earlier part's that has another name.
    bool clashes(const Part& part, std::int64_t from, std::int64_t to) const {
        const auto there = [&](std::int64_t id) { return to << 48 | (id & 0xFFFFFFFFFFFF); };
        for (const auto& [thread, rank] : part.rank_of_thread) {
            if (machine_of(thread) != from) continue;
            const auto it = threads_.find(there(thread));
            if (it != threads_.end() && it->second != rank) return true;
        }
        for (const auto& [process, name] : part.processes) {
            if (machine_of(process) != from) continue;
            const auto it = processes_.find(there(process));
            if (it != processes_.end() && !name.empty() && !it->second.empty() && it->second != name)
                return true;
        }
        return false;
    }

    void assign_machines(const Part& part, RowIds& ids) {
        std::set<std::int64_t> machines;
        for (const auto& [process, name] : part.processes) machines.insert(machine_of(process));
        for (const auto& [machine, host] : part.hosts) machines.insert(machine);
        if (machines.empty()) machines.insert(1);
        for (const std::int64_t machine : machines) {
            const auto named = part.hosts.find(machine);
            // A machine without a name matches an earlier one only if that has no name either.
            const std::string host = named != part.hosts.end() ? named->second : "";
            std::int64_t number = 0;
            for (const auto& [known, its_host] : machines_) {
                if (its_host == host && !clashes(part, machine, known)) number = number == 0 ? known : number;
            }
            if (number == 0) {
                number = machines_.contains(machine) || machine == 0 ? next_machine() : machine;
                machines_.emplace(number, host);
            }
            ids.machines[machine] = number;
        }
        for (const auto& [thread, rank] : part.rank_of_thread) threads_.emplace(ids.process(thread), rank);
        for (const auto& [process, name] : part.processes) processes_.emplace(ids.process(process), name);
    }

    std::int64_t next_machine() const {
        std::int64_t number = 1;
        while (machines_.contains(number)) ++number;
        return number;
    }

    // --- ranks

    struct KnownRank {
        std::size_t part = 0;
        std::int64_t thread = 0;  // its number in the merged file
    };

    static std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> collectives(Part& part,
                                                                                      std::int64_t rank) {
        std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> keys;
        if (!part.has_table("SHARD_COLLECTIVES")) return keys;
        store::Statement row(part.database,
                             "SELECT groupId, operation, sequence FROM SHARD_COLLECTIVES "
                             "WHERE rank = ?1 AND groupSize > 1 LIMIT 1000");
        row.bind(1, rank);
        while (row.step()) keys.emplace(row.integer(0), row.integer(1), row.integer(2));
        return keys;
    }

    bool share_collectives(Part& a, std::int64_t rank_of_a, Part& b, std::int64_t rank_of_b) const {
        const auto ours = collectives(a, rank_of_a), theirs = collectives(b, rank_of_b);
        return std::any_of(ours.begin(), ours.end(), [&](const auto& key) { return theirs.contains(key); });
    }

    void assign_ranks(Part& part, RowIds& ids) {
        const std::size_t index = result_.ids.size() - 1;
        std::set<std::int64_t> own;
        for (const PartRank& rank : part.ranks) own.insert(rank.rank);
        bool renumbered = false;
        for (const PartRank& rank : part.ranks) {
            const KnownRank known{index, ids.process(rank.global_tid)};
            const auto it = ranks_.find(rank.rank);
            if (it == ranks_.end()) {
                ranks_.emplace(rank.rank, known);
                continue;
            }
            Part& other = *parts_[it->second.part];
            if (part.ours && rank.global_tid != 0 && it->second.thread == known.thread) {
                throw store::StoreError(
                    fmt::format("{} and {} both contain rank {} of one process; give each part once",
                                other.path, part.path, rank.rank));
            }
            if (share_collectives(other, rank.rank, part, rank.rank)) {
                throw store::StoreError(fmt::format(
                    "{} and {} both claim rank {} of one job; give one part for each rank, or use "
                    "compare for two runs",
                    other.path, part.path, rank.rank));
            }
            std::int64_t number = std::max(ranks_.rbegin()->first, own.empty() ? 0 : *own.rbegin()) + 1;
            while (ranks_.contains(number)) ++number;
            ranks_.emplace(number, known);
            ids.ranks[rank.rank] = number;
            renumbered = true;
            result_.notes.push_back(
                fmt::format("rank {} of {} is rank {} of the merged trace, because {} has a "
                            "rank {}, too",
                            rank.rank, part.path, number, other.path, rank.rank));
        }
        assign_groups(part, ids, renumbered);
    }

    void assign_groups(Part& part, RowIds& ids, bool another_job) {
        std::set<std::int64_t> groups;
        for (const auto& [table, column] :
             {std::pair("SHARD_COLLECTIVES", "groupId"), std::pair("SHARD_GROUPS", "groupId"),
              std::pair("SHARD_NCCL_COMMUNICATORS", "communicator"),
              std::pair("SHARD_NCCL_OPERATIONS", "communicator")}) {
            if (!part.has_table(table)) continue;
            store::Statement row(part.database, fmt::format("SELECT DISTINCT {} FROM {}", column, table));
            while (row.step()) groups.insert(row.integer(0));
        }
        for (const std::int64_t group : groups) {
            std::int64_t number = group;
            if (another_job && groups_.contains(group)) {
                number = 0;
                while (groups_.contains(number) || groups.contains(number)) ++number;
                ids.groups[group] = number;
            }
            groups_.insert(number);
        }
    }

    // --- devices

    void assign_devices(const Part& part, RowIds& ids) {
        for (const auto& [rank, known] : ranks_) result_.devices.insert(rank);
        ids.new_devices = &result_.devices;
        for (const PartRank& rank : part.ranks) {
            const std::int64_t number = ids.map(schema::ColumnRole::rank, rank.rank, -1);
            ids.devices.try_emplace({rank.device, pid_number(rank.global_pid)}, number);
            ids.devices.try_emplace({rank.device, -1}, number);
            ids.rank_devices.insert(rank.device);
            ids.rank_processes.insert(pid_number(rank.global_pid));
        }
    }

    // --- numbers that must not overlap

    NumberSpan span_of(Part& part, schema::ColumnRole role) const {
        NumberSpan span;
        for (const auto tables : {schema::nsight_tables(), schema::shard_tables()}) {
            for (const schema::SchemaTable& table : tables) {
                if (table_role(table) != schema::TableRole::events || !part.has_table(table.name)) continue;
                for (const schema::SchemaColumn& column : table.columns) {
                    if (column_role(table.name, column) != role ||
                        !part.database.has_column(table.name, column.name))
                        continue;
                    store::Statement row(part.database,
                                         fmt::format("SELECT min(\"{0}\"), max(\"{0}\") FROM \"{1}\" "
                                                     "WHERE \"{0}\" <> 0",
                                                     column.name, table.name));
                    if (!row.step() || row.is_null(0)) continue;
                    span.add(row.integer(0));
                    span.add(row.integer(1));
                }
            }
        }
        return span;
    }

    // Returns 0 if the numbers do not overlap those of earlier parts; otherwise they follow the highest.
    std::int64_t offset_of(const Part& part, const NumberSpan& span, std::vector<NumberSpan>& taken) const {
        if (span.empty()) return 0;
        std::int64_t offset = 0;
        if (std::any_of(taken.begin(), taken.end(), [&](const NumberSpan& other) {
                return span.first <= other.last && other.first <= span.last;
            })) {
            constexpr std::int64_t kTooLarge = std::int64_t{1} << 61;
            std::int64_t highest = 0;
            for (const NumberSpan& other : taken) highest = std::max(highest, other.last);
            if (span.first < -kTooLarge || span.last > kTooLarge || highest > kTooLarge) {
                throw store::StoreError(
                    fmt::format("{}: its correlation or range ids are too large to be those of a "
                                "recorder; run shardscope-trace check on it",
                                part.path));
            }
            offset = highest + 1 - span.first;
        }
        taken.push_back({span.first + offset, span.last + offset});
        return offset;
    }

    void assign_correlations(Part& part, RowIds& ids) {
        ids.correlation_offset =
            offset_of(part, span_of(part, schema::ColumnRole::correlation), correlations_);
    }

    void assign_ranges(Part& part, RowIds& ids) {
        ids.range_offset = offset_of(part, span_of(part, schema::ColumnRole::range), ranges_);
    }

    // --- domains

    void assign_domains(Part& part, RowIds& ids) {
        ids.domains[{0, 0}] = 0;
        if (!part.has_table("NVTX_EVENTS") || !part.database.has_column("NVTX_EVENTS", "domainId")) return;
        const bool registered =
            part.database.has_column("NVTX_EVENTS", "textId") && part.has_table("StringIds");
        store::Statement row(
            part.database,
            fmt::format(
                "SELECT DISTINCT domainId, globalTid, {} FROM NVTX_EVENTS n WHERE eventType = {}",
                registered ? "coalesce(text, (SELECT value FROM StringIds s WHERE s.id = n.textId))" : "text",
                schema::kNvtxDomainCreate));
        while (row.step()) {
            if (row.integer(0) == 0) continue;
            const std::int64_t number = domain_number(std::string(row.text(2)));
            ids.domains[{row.integer(0), row.integer(1) & schema::kPidMask}] = number;
            ids.domains.try_emplace({row.integer(0), 0}, number);
        }
        // Domains without a name; they are not shared with other parts.
        store::Statement used(part.database,
                              "SELECT DISTINCT domainId FROM NVTX_EVENTS WHERE domainId NOT NULL");
        while (used.step()) {
            if (ids.domains.contains({used.integer(0), 0})) continue;
            ids.domains[{used.integer(0), 0}] =
                domain_number(fmt::format("\n{} {}", result_.ids.size(), used.integer(0)));
        }
    }

    std::int64_t domain_number(const std::string& name) {
        if (name == "NCCL") return 1;
        return domains_.try_emplace(name, static_cast<std::int64_t>(domains_.size()) + 2).first->second;
    }

    // --- the model

    struct Model {
        std::map<std::int64_t, std::string> modules, units;  // id -> its row as text
    };

    static void read(Part& part, const char* table, std::map<std::int64_t, std::string>& rows) {
        if (!part.has_table(table)) return;
        store::Statement row(part.database, fmt::format("SELECT * FROM {}", table));
        while (row.step()) {
            std::string& text = rows[row.integer(0)];
            for (int c = 1; c < row.column_count(); ++c)
                fmt::format_to(std::back_inserter(text), "{}\n", row.text(c));
        }
    }

    static bool agree(const std::map<std::int64_t, std::string>& a,
                      const std::map<std::int64_t, std::string>& b) {
        return std::all_of(a.begin(), a.end(), [&](const auto& row) {
            const auto it = b.find(row.first);
            return it == b.end() || it->second == row.second;
        });
    }

    void assign_model(Part& part, RowIds& ids) {
        Model model;
        read(part, "SHARD_MODULES", model.modules);
        read(part, "SHARD_UNITS", model.units);
        for (const auto& [id, row] : model.modules) ids.known_modules.insert(id);
        if (model.modules.empty() && model.units.empty()) return;
        for (std::size_t i = 0; i < models_.size(); ++i) {
            KnownModel& known = models_[i];
            if (!agree(model.modules, known.rows.modules) || !agree(model.units, known.rows.units)) continue;
            // A sliced part has only the rows that it used; merging may add rows, if there are free ids.
            if (i + 1 < models_.size() && (last(model.modules) > last(known.rows.modules) ||
                                           last(model.units) > last(known.rows.units)))
                continue;
            known.rows.modules.merge(model.modules);
            known.rows.units.merge(model.units);
            return place(known, ids);
        }
        if (!models_.empty()) {
            result_.notes.push_back(
                fmt::format("{} has another module tree than the parts before it; both are in "
                            "the merged trace",
                            part.path));
        }
        models_.push_back({std::move(model), next_module_, next_unit_});
        place(models_.back(), ids);
    }

    static std::int64_t last(const std::map<std::int64_t, std::string>& rows) {
        return rows.empty() ? -1 : rows.rbegin()->first;
    }

    struct KnownModel {
        Model rows;
        std::int64_t module_offset = 0, unit_offset = 0;
    };

    void place(const KnownModel& model, RowIds& ids) {
        ids.module_offset = model.module_offset;
        ids.unit_offset = model.unit_offset;
        next_module_ = std::max(next_module_, model.module_offset + last(model.rows.modules) + 1);
        next_unit_ = std::max(next_unit_, model.unit_offset + last(model.rows.units) + 1);
    }

    std::vector<std::unique_ptr<Part>>& parts_;
    store::StringTable& strings_;
    Assignment& result_;
    PayloadIds payloads_;
    std::map<std::int64_t, std::string> machines_;   // number in the file -> host
    std::map<std::int64_t, std::int64_t> threads_;   // thread in the merged file -> rank in its part
    std::map<std::int64_t, std::string> processes_;  // process in the merged file -> name
    std::map<std::int64_t, KnownRank> ranks_;        // by number in the merged file
    std::set<std::int64_t> groups_;
    std::vector<NumberSpan> correlations_, ranges_;
    std::map<std::string, std::int64_t> domains_;
    std::vector<KnownModel> models_;
    std::int64_t next_module_ = 0, next_unit_ = 0;
};

}  // namespace

std::unique_ptr<Assignment> assign_ids(std::vector<std::unique_ptr<Part>>& parts,
                                       store::StringTable& strings) {
    auto assignment = std::make_unique<Assignment>();
    Assigner(parts, strings, *assignment).run();
    return assignment;
}

}  // namespace shardscope::traces::merge
