// The hosts of a job: which ranks run on which, the traffic within and between hosts, and which host the
// others wait for. Definition: docs/definitions.md, "Hosts". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/matching.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct HostPlace {
    std::string name;  // "" unknown
    struct Member {
        int rank = 0, local_rank = -1;  // the rank's number, and its number within the host; -1 unknown
        std::string cpus;               // on which its process may run; empty: unknown
    };
    std::vector<Member> ranks;
    // For collectives between hosts whose ranks are known: how often this host's last rank arrived after
    // those of all other hosts, and the median delay of its last rank after the first host's last rank.
    std::int64_t collectives = 0, last = 0, median_late_ns = 0;
};

// A communicator: the ranks that have its collectives.
struct RankGroup {
    std::int64_t group = 0;
    int size = 0;            // as recorded with the collectives; 0 unknown
    std::vector<int> ranks;  // rank numbers, sorted; fewer than `size` if some ranks are not in the trace
    int hosts = 0;           // hosts of its ranks; 0: some ranks or hosts are unknown
    std::int64_t collectives = 0, bytes = 0;  // each collective counted once
};

// Collectives of one operation whose groups lie within one host, or span several. Each counts once, with the
// bytes of its full buffer; no algorithm is assumed.
struct HostTraffic {
    enum class Where : std::uint8_t { within, between, unknown } where = Where::unknown;
    schema::Operation operation = schema::Operation::other;
    std::int64_t count = 0, bytes = 0;
    std::int64_t transfer_ns = 0, waiting_ns = 0;  // as in Traffic
    double algbw_gbps = 0, busbw_gbps = 0;
};
const char* name(HostTraffic::Where where);
Fields<HostTraffic> host_traffic_fields();

// How well the clocks of a merged trace agree, as recorded by the merge; ns.
struct ClockAgreement {
    std::int64_t collectives = 0, residual_ns = 0, worst_ns = 0;
    std::optional<std::int64_t> uncertainty_ns;  // of the measured clocks; none: not measured
};

struct HostsReport {
    bool known = true;                 // false: nothing is recorded on a device, and counts are unknown
    std::vector<HostPlace> hosts;      // in the order of their first rank
    std::vector<RankGroup> groups;     // by id
    std::vector<HostTraffic> traffic;  // within, between, unknown; by operation
    // For collectives between hosts: the time from the arrival of the first host's last rank to that of the
    // last host's.
    std::int64_t skewed = 0;  // collectives
    std::int64_t median_skew_ns = 0, worst_skew_ns = 0;
    std::optional<ClockAgreement> clocks;  // of a merged trace
};

// The hosts with their ranks, in the order of their first rank; the other fields are not set.
std::vector<HostPlace> hosts_of(const store::Trace& trace);

// Built by adding the collectives of an analysis one by one.
class HostsAnalysis {
  public:
    explicit HostsAnalysis(const store::Trace& trace);

    // Number of hosts of a group's ranks; 0 if a host is unknown or some ranks are not in the trace.
    int nodes_of(std::int64_t group) const;
    void add(std::span<const Communication> parts, const CollectiveMatch& match);
    HostsReport take();

  private:
    struct Sums {
        HostTraffic traffic;
        Bandwidths rates;
    };
    void find_groups();
    void add_skew(std::span<const Communication> parts);

    const store::Trace& trace_;
    std::vector<std::size_t> host_of_;  // by rank index: index into report_.hosts
    std::vector<Sums> sums_;            // by place and operation
    std::vector<std::int64_t> skews_;
    std::vector<std::vector<std::int64_t>> late_;  // by host
    std::vector<std::int64_t> complete_;           // scratch space of add_skew
    HostsReport report_;
};

}  // namespace shardscope::traces::analysis
