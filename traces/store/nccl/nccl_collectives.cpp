// Matches kernels by their launches to the calls of nccl_calls.h, then makes rows.
#include "traces/store/nccl/nccl_collectives.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "traces/store/columns/names.h"
#include "traces/store/nccl/nccl_calls.h"
#include "traces/store/nccl/nccl_kernels.h"

namespace shardscope::traces::store {
namespace {

// A kernel and the calls whose work it does.
struct Tie {
    std::size_t kernel = 0;
    std::vector<std::size_t> calls;
};

struct Row {
    std::size_t kernel = 0;
    int rank = 0;
    std::int64_t correlation = 0, issued = 0;
    schema::Operation operation = schema::Operation::other;
    std::int64_t bytes = 0;
    std::uint64_t communicator = 0;
    int ranks = 0;
    std::int64_t own_number = kUnknownNumber;  // NCCL's, counted for each kind of operation
    std::int64_t sequence = kUnknownNumber;
};

// The number of kernels without a row, by reason.
struct Missing {
    std::int64_t no_call = 0, no_payload = 0, unclear = 0, no_group_size = 0, no_rank = 0;
    std::set<std::uint64_t> disagreeing;  // communicators whose ranks made different calls
};

// NCCL's own number of each call (SHARD_NCCL_OPERATIONS), from the operation that began within it.
std::vector<std::int64_t> read_numbers(Database& database, const std::vector<NcclCall>& calls) {
    std::vector<std::int64_t> numbers(calls.size(), kUnknownNumber);
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
            if (numbers[c] != kUnknownNumber || calls[c].end < rows.integer(1)) continue;
            if (calls[c].communicator != static_cast<std::uint64_t>(rows.integer(2))) continue;
            if (static_cast<int>(calls[c].operation) != rows.integer(3)) continue;
            numbers[c] = rows.integer(4);
            break;
        }
    }
    return numbers;
}

// --- tying -------------------------------------------------------------------------------------------------

// Assigns the calls of a site to its kernels; empty if that is ambiguous. Kernels are in the order of launch,
// calls in the order of issue.
std::vector<Tie> tie_site(const std::vector<NcclKernel>& kernels, const std::vector<std::size_t>& launched,
                          const std::vector<NcclCall>& calls, const std::vector<std::size_t>& issued) {
    std::array<std::vector<std::size_t>, schema::kOperations> kernels_of, calls_of;
    for (const std::size_t k : launched)
        kernels_of[static_cast<std::size_t>(kernels[k].operation)].push_back(k);
    std::vector<std::size_t> rest;  // calls without a kernel of their own kind
    for (const std::size_t c : issued) {
        const auto kind = static_cast<std::size_t>(calls[c].operation);
        (kernels_of[kind].empty() ? rest : calls_of[kind]).push_back(c);
    }
    // A single kernel for calls of several kinds has the name of one of them, or of none.
    if (launched.size() == 1 && !issued.empty()) return {{launched.front(), issued}};

    std::vector<std::size_t>& any = kernels_of[static_cast<std::size_t>(schema::Operation::other)];
    calls_of[static_cast<std::size_t>(schema::Operation::other)] = std::move(rest);
    std::vector<Tie> ties;
    for (std::size_t kind = 0; kind < schema::kOperations; ++kind) {
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
        : database_(database), kernels_(read_nccl_kernels(database)), nccl_(database), ranks_(database) {}

    bool nothing_to_do() const { return kernels_.empty(); }

    void run() {
        std::map<std::ptrdiff_t, std::vector<std::size_t>> by_site;
        for (std::size_t k = 0; k < kernels_.size(); ++k) {
            const NcclKernel& kernel = kernels_[k];
            const auto site =
                kernel.launch_tid != kUnknownNumber ? nccl_.site_at(kernel.launch_tid, kernel.launched) : -1;
            if (site < 0)
                ++missing_.no_call;
            else
                by_site[site].push_back(k);
        }
        const std::vector<std::int64_t> numbers = read_numbers(database_, nccl_.calls());
        for (auto& [site, launched] : by_site) {
            schema::sort_rows(launched, [&](std::size_t a, std::size_t b) {
                return kernels_[a].launched < kernels_[b].launched;
            });
            const auto& issued = nccl_.sites()[static_cast<std::size_t>(site)].calls;
            const std::vector<Tie> ties = tie_site(kernels_, launched, nccl_.calls(), issued);
            if (ties.empty()) missing_.unclear += static_cast<std::int64_t>(launched.size());
            for (const Tie& tie : ties) make_row(tie, numbers);
        }
        number_rows();
    }

    // The rows, and notes on missing ones at the time of the first kernel.
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
            results.notes.push_back({.time = kernels_.front().start,
                                     .severity = schema::Severity::warning,
                                     .text = std::move(text)});
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
        const NcclKernel& kernel = kernels_[tie.kernel];
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
            if (call.operation != row.operation) row.operation = schema::Operation::other;
        }
        row.rank = ranks_.of(kernel.device, kernel.global_pid);
        if (row.rank < 0) return void(++missing_.no_rank);
        rows_.push_back(row);
    }

    // Assigns numbers that are equal on all ranks, or none.
    void number_rows() {
        schema::sort_rows(rows_, [](const Row& a, const Row& b) {
            return std::tie(a.communicator, a.rank, a.issued) < std::tie(b.communicator, b.rank, b.issued);
        });
        for (std::size_t begin = 0; begin < rows_.size();) {
            std::size_t end = begin;
            bool all_numbered = true;
            std::map<int, std::vector<Row*>> by_rank;
            for (; end < rows_.size() && rows_[end].communicator == rows_[begin].communicator; ++end) {
                Row& row = rows_[end];
                if (is_point_to_point(row.operation) || row.operation == schema::Operation::other) continue;
                by_rank[row.rank].push_back(&row);
                all_numbered = all_numbered && row.own_number != kUnknownNumber;
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

    // The reasons for kernels without a row.
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
        tell_of(missing_.unclear, "belong to a group whose calls cannot be matched to its kernels");
        tell_of(missing_.no_group_size, "belong to communicators whose creation was not recorded");
        tell_of(missing_.no_rank, "ran on devices that belong to no rank");
        for (const std::uint64_t communicator : missing_.disagreeing) {
            texts.push_back(fmt::format(
                "The ranks of NCCL's communicator {:#x} recorded different collectives, so these have no "
                "sequence numbers",
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
    std::vector<NcclKernel> kernels_;
    NcclCalls nccl_;
    DeviceRanks ranks_;
    std::vector<Row> rows_;
    Missing missing_;
};

}  // namespace

NcclCollectives find_nccl_collectives(Database& database) {
    // The join needs all of these (NVTX_EVENTS.textId was added with registered strings).
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
    // A trace imported from a format without NCCL's ranges has nothing to join, which is not a fault of the
    // trace.
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

}  // namespace shardscope::traces::store
