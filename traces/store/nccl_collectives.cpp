// Kernels by their launches to the calls of nccl_calls.h, then rows.
#include "traces/store/nccl_collectives.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "traces/store/names.h"
#include "traces/store/nccl_calls.h"

namespace shardscope::traces {
namespace {

constexpr std::int64_t kPidMask = ~std::int64_t{0xFFFFFF};
constexpr std::int64_t kUnknown = -1;

struct Kernel {
    std::int64_t start = 0, end = 0, device = 0, global_pid = 0, correlation = 0;
    Operation operation = Operation::other;  // as its name says; `other` can carry any
    std::int64_t launch_tid = kUnknown, launched = 0;
};

// A kernel and the calls whose work it does.
struct Tie {
    std::size_t kernel = 0;
    std::vector<std::size_t> calls;
};

struct Row {
    std::size_t kernel = 0;
    int rank = 0;
    std::int64_t correlation = 0, issued = 0;
    Operation operation = Operation::other;
    std::int64_t bytes = 0;
    std::uint64_t communicator = 0;
    int ranks = 0;
    std::int64_t own_number = kUnknown;  // NCCL's, counted for each kind of operation
    std::int64_t sequence = kUnknown;
};

// Why kernels have no row, and how many.
struct Missing {
    std::int64_t no_call = 0, no_payload = 0, unclear = 0, no_group_size = 0, no_rank = 0;
    std::set<std::uint64_t> disagreeing;  // communicators whose ranks made different calls
};

bool point_to_point(Operation operation) {
    return operation == Operation::send || operation == Operation::recv;
}

// --- reading -----------------------------------------------------------------------------------------------

std::vector<Kernel> read_kernels(Database& database) {
    std::unordered_map<std::int64_t, Operation> names;
    Statement strings(database, "SELECT id, value FROM StringIds WHERE value LIKE '%nccl%'");
    while (strings.step()) {
        if (!is_communication_kernel(strings.text(1))) continue;
        names.emplace(strings.integer(0), operation_of_kernel(strings.text(1)));
    }
    std::vector<Kernel> kernels;
    if (names.empty()) return kernels;
    std::vector<std::int64_t> ids;
    ids.reserve(names.size());
    for (const auto& [id, operation] : names) ids.push_back(id);
    Statement rows(database,
                   fmt::format("SELECT start, \"end\", deviceId, globalPid, correlationId, shortName FROM "
                               "CUPTI_ACTIVITY_KIND_KERNEL WHERE shortName IN ({}) ORDER BY start",
                               fmt::join(ids, ", ")));
    while (rows.step()) {
        kernels.push_back({.start = rows.integer(0),
                           .end = rows.integer(1),
                           .device = rows.integer(2),
                           .global_pid = rows.integer(3),
                           .correlation = rows.integer(4),
                           .operation = names.at(rows.integer(5))});
    }
    return kernels;
}

// Correlation ids count within a process in Nsight's exports.
void read_launches(Database& database, std::vector<Kernel>& kernels) {
    if (!database.has_table("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
    struct Hash {
        std::size_t operator()(const std::pair<std::int64_t, std::int64_t>& key) const {
            return std::hash<std::int64_t>()(key.first * 0x9E3779B97F4A7C15 ^ key.second);
        }
    };
    std::unordered_multimap<std::pair<std::int64_t, std::int64_t>, std::size_t, Hash> wanted;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        if (kernels[k].correlation != 0)
            wanted.emplace(std::pair(kernels[k].correlation, kernels[k].global_pid), k);
    }
    Statement calls(database, "SELECT correlationId, globalTid, start FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    while (calls.step()) {
        const auto [first, last] = wanted.equal_range({calls.integer(0), calls.integer(1) & kPidMask});
        for (auto it = first; it != last; ++it) {
            Kernel& kernel = kernels[it->second];
            if (kernel.launch_tid != kUnknown) continue;
            kernel.launch_tid = calls.integer(1);
            kernel.launched = calls.integer(2);
        }
    }
}

// The rank of a device and process: as SHARD_RANKS says, else as the loader numbers them.
class Ranks {
  public:
    explicit Ranks(Database& database) {
        if (database.has_table("SHARD_RANKS")) {
            Statement rows(database, "SELECT deviceId, globalPid, rank FROM SHARD_RANKS");
            while (rows.step()) {
                const int rank = static_cast<int>(rows.integer(2));
                ranks_[{rows.integer(0), rows.integer(1)}] = rank;
                const auto [known, added] = by_device_.emplace(rows.integer(0), rank);
                if (!added) known->second = -1;  // several: the device alone does not tell
            }
        }
        if (!ranks_.empty()) return;
        std::set<std::pair<std::int64_t, std::int64_t>> pairs;
        for (const char* table :
             {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"}) {
            if (!database.has_column(table, "globalPid")) continue;
            Statement distinct(database, fmt::format("SELECT DISTINCT deviceId, globalPid FROM {}", table));
            while (distinct.step()) pairs.emplace(distinct.integer(0), distinct.integer(1));
        }
        for (const auto& pair : pairs) ranks_.emplace(pair, static_cast<int>(ranks_.size()));
    }

    int of(std::int64_t device, std::int64_t global_pid) const {
        if (const auto it = ranks_.find({device, global_pid}); it != ranks_.end()) return it->second;
        const auto it = by_device_.find(device);
        return it != by_device_.end() ? it->second : -1;
    }

  private:
    std::map<std::pair<std::int64_t, std::int64_t>, int> ranks_;
    std::map<std::int64_t, int> by_device_;
};

// NCCL's own number of each call (SHARD_NCCL_OPERATIONS): that of the operation that began within it.
std::vector<std::int64_t> read_numbers(Database& database, const std::vector<NcclCall>& calls) {
    std::vector<std::int64_t> numbers(calls.size(), kUnknown);
    if (!database.has_table("SHARD_NCCL_OPERATIONS")) return numbers;
    Statement rows(database,
                   "SELECT globalTid, start, communicator, operation, sequence FROM SHARD_NCCL_OPERATIONS "
                   "WHERE sequence NOT NULL ORDER BY globalTid, start");
    std::size_t at = 0;  // calls are in the same order
    while (rows.step()) {
        const std::tuple place(rows.integer(0), rows.integer(1));
        while (at < calls.size() && std::tuple(calls[at].global_tid, calls[at].end) < place) ++at;
        for (std::size_t c = at; c < calls.size() && std::tuple(calls[c].global_tid, calls[c].start) <= place;
             ++c) {
            if (numbers[c] != kUnknown || calls[c].end < rows.integer(1)) continue;
            if (calls[c].communicator != static_cast<std::uint64_t>(rows.integer(2))) continue;
            if (static_cast<int>(calls[c].operation) != rows.integer(3)) continue;
            numbers[c] = rows.integer(4);
            break;
        }
    }
    return numbers;
}

// --- tying -------------------------------------------------------------------------------------------------

// Which of the calls of a site each of its kernels carries; nothing where that cannot be told. Kernels and
// calls in the order of launch and of issue.
std::vector<Tie> tie_site(const std::vector<Kernel>& kernels, const std::vector<std::size_t>& launched,
                          const std::vector<NcclCall>& calls, const std::vector<std::size_t>& issued) {
    std::array<std::vector<std::size_t>, kOperations> kernels_of, calls_of;
    for (const std::size_t k : launched)
        kernels_of[static_cast<std::size_t>(kernels[k].operation)].push_back(k);
    std::vector<std::size_t> rest;  // calls without a kernel of their own kind
    for (const std::size_t c : issued) {
        const auto kind = static_cast<std::size_t>(calls[c].operation);
        (kernels_of[kind].empty() ? rest : calls_of[kind]).push_back(c);
    }
    // One kernel for calls of several kinds bears the name of one of them, or of none.
    if (launched.size() == 1 && !issued.empty()) return {{launched.front(), issued}};

    std::vector<std::size_t>& any = kernels_of[static_cast<std::size_t>(Operation::other)];
    calls_of[static_cast<std::size_t>(Operation::other)] = std::move(rest);
    std::vector<Tie> ties;
    for (std::size_t kind = 0; kind < kOperations; ++kind) {
        const auto& k = kernels_of[kind];
        const auto& c = calls_of[kind];
        const bool many_for_any = &k == &any && k.size() > 1;
        if (k.size() == 1 && !c.empty()) {
            ties.push_back({k.front(), c});
        } else if (k.size() == c.size() && !many_for_any) {
            for (std::size_t i = 0; i < k.size(); ++i) ties.push_back({k[i], {c[i]}});
        } else {
            return {};
        }
    }
    return ties;
}

class Join {
  public:
    explicit Join(Database& database)
        : database_(database), kernels_(read_kernels(database)), nccl_(database), ranks_(database) {}

    bool nothing_to_do() const { return kernels_.empty(); }

    void run() {
        read_launches(database_, kernels_);
        std::map<std::ptrdiff_t, std::vector<std::size_t>> by_site;
        for (std::size_t k = 0; k < kernels_.size(); ++k) {
            const Kernel& kernel = kernels_[k];
            const auto site =
                kernel.launch_tid != kUnknown ? nccl_.site_at(kernel.launch_tid, kernel.launched) : -1;
            if (site < 0)
                ++missing_.no_call;
            else
                by_site[site].push_back(k);
        }
        const std::vector<std::int64_t> numbers = read_numbers(database_, nccl_.calls());
        for (auto& [site, launched] : by_site) {
            std::stable_sort(launched.begin(), launched.end(), [&](std::size_t a, std::size_t b) {
                return kernels_[a].launched < kernels_[b].launched;
            });
            const auto& issued = nccl_.sites()[static_cast<std::size_t>(site)].calls;
            const std::vector<Tie> ties = tie_site(kernels_, launched, nccl_.calls(), issued);
            if (ties.empty()) missing_.unclear += static_cast<std::int64_t>(launched.size());
            for (const Tie& tie : ties) make_row(tie, numbers);
        }
        number_rows();
    }

    // Rows and what is missing, with the time of the first kernel.
    NcclCollectives results() const {
        NcclCollectives results;
        for (const Row& row : rows_) {
            results.rows.push_back({.rank = row.rank,
                                    .correlation = row.correlation,
                                    .operation = row.operation,
                                    .bytes = row.bytes,
                                    .group = static_cast<std::int64_t>(row.communicator),
                                    .group_size = row.ranks,
                                    .sequence = row.sequence});
            results.times.emplace_back(kernels_[row.kernel].start, kernels_[row.kernel].end);
        }
        for (std::string& text : notes()) {
            results.notes.push_back(
                {.time = kernels_.front().start, .severity = Severity::warning, .text = std::move(text)});
        }
        return results;
    }

    void write() {
        Statement insert(database_,
                         "INSERT INTO SHARD_COLLECTIVES (rank, correlationId, operation, bytes, padding, "
                         "groupId, groupSize, sequence, phase) VALUES (?, ?, ?, ?, 0, ?, ?, ?, 0)");
        for (const Row& row : rows_) {
            insert.bind(1, std::int64_t{row.rank});
            insert.bind(2, row.correlation);
            insert.bind(3, static_cast<std::int64_t>(row.operation));
            insert.bind(4, row.bytes);
            insert.bind(5, static_cast<std::int64_t>(row.communicator));
            insert.bind(6, std::int64_t{row.ranks});
            insert.bind(7, row.sequence);
            insert.run();
        }
        for (const std::string& text : notes()) tell(text);
    }

  private:
    void make_row(const Tie& tie, const std::vector<std::int64_t>& numbers) {
        const NcclCall& first = nccl_.calls()[tie.calls.front()];
        const Kernel& kernel = kernels_[tie.kernel];
        Row row;
        row.kernel = tie.kernel;
        row.correlation = kernel.correlation;
        row.issued = first.start;
        row.operation = first.operation;
        row.own_number = numbers[tie.calls.front()];
        if (!first.communicator) return void(++missing_.no_payload);
        row.communicator = *first.communicator;
        row.ranks = nccl_.ranks_of(row.communicator);
        for (const std::size_t c : tie.calls) {
            const NcclCall& call = nccl_.calls()[c];
            if (!call.communicator || call.bytes < 0) return void(++missing_.no_payload);
            // A kernel serves one communicator.
            if (*call.communicator != row.communicator) return void(++missing_.unclear);
            if (row.ranks == 0) return void(++missing_.no_group_size);
            if (call.bytes > std::numeric_limits<std::int64_t>::max() / 2 / row.ranks) {
                return void(++missing_.no_payload);  // no size
            }
            row.bytes += full_bytes(call.operation, call.bytes, row.ranks);
            if (call.operation != row.operation) row.operation = Operation::other;
        }
        row.rank = ranks_.of(kernel.device, kernel.global_pid);
        if (row.rank < 0) return void(++missing_.no_rank);
        rows_.push_back(row);
    }

    // Numbers that are equal on all ranks, or none.
    void number_rows() {
        std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
            return std::tie(a.communicator, a.rank, a.issued) < std::tie(b.communicator, b.rank, b.issued);
        });
        for (std::size_t begin = 0; begin < rows_.size();) {
            std::size_t end = begin;
            bool all_numbered = true;
            std::map<int, std::vector<Row*>> by_rank;
            for (; end < rows_.size() && rows_[end].communicator == rows_[begin].communicator; ++end) {
                Row& row = rows_[end];
                if (point_to_point(row.operation) || row.operation == Operation::other) continue;
                by_rank[row.rank].push_back(&row);
                all_numbered = all_numbered && row.own_number != kUnknown;
            }
            if (all_numbered) {
                for (auto& [rank, rows] : by_rank) {
                    for (Row* row : rows) row->sequence = row->own_number;
                }
            } else {
                number_by_order(by_rank, rows_[begin].communicator);
            }
            begin = end;
        }
    }

    void number_by_order(std::map<int, std::vector<Row*>>& by_rank, std::uint64_t communicator) {
        const std::vector<Row*>& model = by_rank.begin()->second;
        for (const auto& [rank, rows] : by_rank) {
            const bool same =
                std::equal(rows.begin(), rows.end(), model.begin(), model.end(),
                           [](const Row* a, const Row* b) { return a->operation == b->operation; });
            if (same) continue;
            missing_.disagreeing.insert(communicator);
            return;
        }
        for (auto& [rank, rows] : by_rank) {
            std::int64_t number = 0;
            for (Row* row : rows) row->sequence = number++;
        }
    }

    // Why kernels have no row.
    std::vector<std::string> notes() const {
        std::vector<std::string> texts;
        const auto tell_of = [&](std::int64_t count, std::string_view what) {
            if (count == 0) return;
            texts.push_back(fmt::format("The bytes of {} of {} kernels of NCCL are unknown: they {}", count,
                                        kernels_.size(), what));
        };
        tell_of(missing_.no_call,
                "were launched outside the recorded calls of NCCL (by a CUDA graph, or NCCL's ranges are "
                "missing)");
        tell_of(missing_.no_payload,
                "belong to calls whose ranges have no payload (an export has it with --include-blobs=true)");
        tell_of(missing_.unclear,
                "share a group in which it cannot be told which kernel did which call's work");
        tell_of(missing_.no_group_size, "belong to communicators whose making was not recorded");
        tell_of(missing_.no_rank, "ran on devices that are no rank's");
        for (const std::uint64_t communicator : missing_.disagreeing) {
            texts.push_back(fmt::format(
                "The ranks of NCCL's communicator {:#x} did not record the same collectives: these have "
                "no sequence numbers",
                communicator));
        }
        return texts;
    }
    void tell(const std::string& text) {
        Statement known(database_, "SELECT 1 FROM DIAGNOSTIC_EVENT WHERE text = ?");
        known.bind(1, std::string_view(text));
        if (known.step()) return;
        Statement insert(database_,
                         "INSERT INTO DIAGNOSTIC_EVENT (timestamp, timestampType, source, severity, text) "
                         "VALUES (?, 1, 1, 2, ?)");
        insert.bind(1, kernels_.front().start);
        insert.bind(2, std::string_view(text));
        insert.run();
    }

    Database& database_;
    std::vector<Kernel> kernels_;
    NcclCalls nccl_;
    Ranks ranks_;
    std::vector<Row> rows_;
    Missing missing_;
};

}  // namespace

NcclCollectives find_nccl_collectives(Database& database) {
    // What lacks any of these cannot tell (NVTX_EVENTS.textId came with registered strings).
    constexpr std::pair<const char*, const char*> kNeeded[] = {
        {"StringIds", "value"},
        {"CUPTI_ACTIVITY_KIND_KERNEL", "start"},
        {"CUPTI_ACTIVITY_KIND_KERNEL", "end"},
        {"CUPTI_ACTIVITY_KIND_KERNEL", "deviceId"},
        {"CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"},
        {"CUPTI_ACTIVITY_KIND_KERNEL", "correlationId"},
        {"CUPTI_ACTIVITY_KIND_KERNEL", "shortName"},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId"},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"},
        {"NVTX_EVENTS", "globalTid"},
        {"NVTX_EVENTS", "domainId"},
        {"NVTX_EVENTS", "text"},
        {"NVTX_EVENTS", "textId"},
    };
    for (const auto& [table, column] : kNeeded) {
        if (!database.has_column(table, column)) return {};
    }
    Join join(database);
    if (join.nothing_to_do()) return {};
    join.run();
    return join.results();
}

void join_nccl_collectives(Database& database) {
    if (!database.has_table("SHARD_COLLECTIVES") || !database.has_table("CUPTI_ACTIVITY_KIND_KERNEL")) return;
    if (database.integer("SELECT EXISTS (SELECT 1 FROM SHARD_COLLECTIVES)") != 0) return;
    // What was imported from a format without NCCL's ranges has nothing to be joined, which is no fault of
    // it.
    if (database.has_table("SHARD_RUN") &&
        database.integer("SELECT EXISTS (SELECT 1 FROM SHARD_RUN WHERE key = 'import.format' AND value <> "
                         "'nsight')") != 0) {
        return;
    }
    Join join(database);
    if (join.nothing_to_do()) return;
    join.run();
    database.execute("SAVEPOINT join_nccl_collectives");
    try {
        join.write();
    } catch (const StoreError&) {
        try {
            database.execute("ROLLBACK TO join_nccl_collectives; RELEASE join_nccl_collectives");
        } catch (const StoreError&) {  // a full disk has ended the transaction already
        }
        throw;
    }
    database.execute("RELEASE join_nccl_collectives");
}

}  // namespace shardscope::traces
