// Processes ranges thread by thread: calls between ncclGroupStart and ncclGroupEnd are launched by the
// latter.
#include "traces/store/nccl/nccl_calls.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/enums.h"
#include "traces/schema/joined.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::store {
namespace {

constexpr std::uint64_t kPayloadHead = 32;  // rows.h: binary_payload()
constexpr int kTypeInt = 5;                 // NVTX's number of the type; the other fields have 8 bytes

struct PayloadField {
    std::uint64_t offset = 0, size = 0;  // size 0: the schema has no such field
};
struct Layout {
    PayloadField communicator, message, ranks;
};

// The offsets of the fields needed here in the payloads of each schema.
class Layouts {
  public:
    Layouts(Database& database, const std::string& domains) {
        if (!database.has_table("NVTX_PAYLOAD_SCHEMA_ENTRIES")) return;
        Statement entries(database, fmt::format("SELECT schemaId, name, type, offset FROM "
                                                "NVTX_PAYLOAD_SCHEMA_ENTRIES WHERE domainId IN ({})",
                                                domains));
        while (entries.step()) {
            const std::string_view name = entries.text(1);
            const PayloadField field = {static_cast<std::uint64_t>(entries.integer_or(3, 0)),
                                        entries.integer(2) == kTypeInt ? 4u : 8u};
            Layout& layout = by_schema_[static_cast<std::uint64_t>(entries.integer(0))];
            if (name == "NCCL communicator ID") layout.communicator = field;
            if (name == "Message size [bytes]") layout.message = field;
            if (name == "No. of ranks") layout.ranks = field;
        }
    }

    const Layout* find(std::string_view blob) const {
        std::uint64_t head[4];
        if (blob.size() < sizeof head) return nullptr;
        std::memcpy(head, blob.data(), sizeof head);
        const auto it = by_schema_.find(head[1]);
        return it != by_schema_.end() ? &it->second : nullptr;
    }

  private:
    std::unordered_map<std::uint64_t, Layout> by_schema_;
};

std::optional<std::uint64_t> value(std::string_view blob, const PayloadField& field) {
    if (field.size == 0 || field.offset > blob.size() ||
        blob.size() - field.offset < kPayloadHead + field.size) {
        return std::nullopt;
    }
    std::uint64_t number = 0;
    std::memcpy(&number, blob.data() + kPayloadHead + field.offset, field.size);
    return number;
}

// The group state of one thread while its ranges are processed.
struct Groups {
    int depth = 0;
    std::vector<std::size_t> calls;  // of the outermost group so far
};

}  // namespace

NcclCalls::NcclCalls(Database& database) {
    read_ranges(database);
    link_sites();
    read_communicators(database);
}

void NcclCalls::read_ranges(Database& database) {
    if (!database.has_column("NVTX_EVENTS", "domainId")) return;
    std::set<std::pair<std::int64_t, std::int64_t>> domains;  // process and number in it
    std::set<std::int64_t> numbers;
    Statement named(
        database,
        "SELECT n.globalTid, n.domainId FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
        "WHERE n.eventType = 75 AND COALESCE(s.value, n.text) = 'NCCL'");
    while (named.step()) {
        domains.emplace(named.integer(0) & schema::kPidMask, named.integer(1));
        numbers.insert(named.integer(1));
    }
    if (numbers.empty()) return;
    const std::string numbers_list = schema::joined(numbers, ", ");
    const Layouts layouts(database, numbers_list);
    const char* payload = database.has_column("NVTX_EVENTS", "binaryData") ? "n.binaryData" : "NULL";
    Statement ranges(
        database, fmt::format("SELECT n.globalTid, n.start, n.end, n.domainId, COALESCE(s.value, n.text), {} "
                              "FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId WHERE "
                              "n.eventType = {} AND n.domainId IN ({}) AND n.end NOT NULL "
                              "ORDER BY n.globalTid, n.start, n.end DESC, n.rowid",
                              payload, schema::kNvtxPushPop, numbers_list));
    Groups groups;
    std::int64_t thread = -1;
    while (ranges.step()) {
        NcclCall call;
        call.global_tid = ranges.integer(0);
        call.start = ranges.integer(1);
        call.end = ranges.integer(2);
        if (!domains.contains({call.global_tid & schema::kPidMask, ranges.integer(3)})) continue;
        if (thread != call.global_tid) groups = {};
        thread = call.global_tid;

        const std::string name(ranges.text(4));
        NcclSite site{call.global_tid, call.start, call.end, {}, -1};
        if (name == "ncclGroupStart") {
            if (groups.depth++ == 0) groups.calls.clear();
        } else if (name == "ncclGroupEnd") {
            if (groups.depth > 0 && --groups.depth > 0) continue;
            site.calls = std::exchange(groups.calls, {});
            sites_.push_back(std::move(site));
        } else {
            const std::string_view blob = ranges.text(5);
            const Layout* layout = layouts.find(blob);
            if (layout != nullptr) call.communicator = value(blob, layout->communicator);
            const auto operation = operation_of_call(name);
            if (!operation) {  // possibly the creation of a communicator
                const auto ranks = layout != nullptr ? value(blob, layout->ranks) : std::nullopt;
                if (call.communicator && ranks) ranks_[*call.communicator] = static_cast<int>(*ranks);
                continue;
            }
            call.operation = *operation;
            const auto message = layout != nullptr ? value(blob, layout->message) : std::nullopt;
            if (message && *message < std::uint64_t{1} << 62)
                call.bytes = static_cast<std::int64_t>(*message);
            if (groups.depth > 0) {
                groups.calls.push_back(calls_.size());
            } else {
                site.calls.push_back(calls_.size());
                sites_.push_back(std::move(site));
            }
            calls_.push_back(call);
        }
    }
}

void NcclCalls::link_sites() {
    std::vector<std::ptrdiff_t> open;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
        NcclSite& site = sites_[i];
        while (!open.empty()) {
            const NcclSite& last = sites_[static_cast<std::size_t>(open.back())];
            if (last.global_tid == site.global_tid && last.end >= site.end) break;
            open.pop_back();
        }
        site.around = open.empty() ? -1 : open.back();
        open.push_back(static_cast<std::ptrdiff_t>(i));
    }
}

// Values of the profiler plugin take precedence over those of the ranges of ncclCommInit….
void NcclCalls::read_communicators(Database& database) {
    if (!database.has_table("SHARD_NCCL_COMMUNICATORS")) return;
    Statement rows(database, "SELECT communicator, ranks FROM SHARD_NCCL_COMMUNICATORS WHERE ranks > 0");
    while (rows.step())
        ranks_[static_cast<std::uint64_t>(rows.integer(0))] = static_cast<int>(rows.integer(1));
}

std::ptrdiff_t NcclCalls::site_at(std::int64_t global_tid, std::int64_t time) const {
    const auto after = std::upper_bound(
        sites_.begin(), sites_.end(), std::tuple(global_tid, time),
        [](const auto& key, const NcclSite& site) { return key < std::tuple(site.global_tid, site.start); });
    auto at = after - sites_.begin() - 1;
    for (; at >= 0; at = sites_[static_cast<std::size_t>(at)].around) {
        const NcclSite& site = sites_[static_cast<std::size_t>(at)];
        if (site.global_tid != global_tid) return -1;
        if (time <= site.end) return at;
    }
    return -1;
}

int NcclCalls::ranks_of(std::uint64_t communicator) const {
    const auto it = ranks_.find(communicator);
    return it != ranks_.end() && it->second > 0 ? it->second : 0;
}

std::int64_t full_bytes(schema::Operation operation, std::int64_t message_bytes, int ranks) {
    switch (operation) {
        case schema::Operation::all_gather:
        case schema::Operation::reduce_scatter:
        case schema::Operation::all_to_all:
        case schema::Operation::gather:
        case schema::Operation::scatter:
            return message_bytes * ranks;
        default:
            return message_bytes;
    }
}

}  // namespace shardscope::traces::store
