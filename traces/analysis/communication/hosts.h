// The hosts of a job: which ranks are on which, what goes within a host and between hosts, and which host the
// others wait for. Definition: docs/definitions.md, "Hosts". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/communication/matching.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

struct HostPlace {
    std::string name;  // "" unknown
    struct Member {
        int rank = 0, local_rank = -1;  // the rank's number, and that among the host's; -1 unknown
        std::string cpus;               // that its process may run on; empty: unknown
    };
    std::vector<Member> ranks;
    // Of collectives between hosts whose ranks are known: how often its last rank came after those of all
    // other hosts, and how long after the first host its own was complete, as a median.
    std::int64_t collectives = 0, last = 0, median_late_ns = 0;
};

// A communicator: the ranks that have collectives of it.
struct RankGroup {
    std::int64_t group = 0;
    int size = 0;            // as the rows say; 0 unknown
    std::vector<int> ranks;  // numbers, sorted; fewer than `size` where not all ranks are in the trace
    int hosts = 0;           // of its ranks; 0: not all ranks or hosts are known
    std::int64_t collectives = 0, bytes = 0;  // each collective once
};

// Collectives of one operation whose group lies on one host, or spans several. Each counts once, with the
// bytes of its full buffer, whatever way these go: no algorithm is assumed.
struct HostTraffic {
    enum class Where : std::uint8_t { within, between, unknown } where = Where::unknown;
    Operation operation = Operation::other;
    std::int64_t count = 0, bytes = 0;
    std::int64_t transfer_ns = 0, waiting_ns = 0;  // as Traffic's
    double algbw_gbps = 0, busbw_gbps = 0;
};
const char* name(HostTraffic::Where where);
Fields<HostTraffic> host_traffic_fields();

// How the clocks of a merged trace agree, as the merge wrote it; ns.
struct ClockAgreement {
    std::int64_t collectives = 0, residual_ns = 0, worst_ns = 0;
    std::optional<std::int64_t> uncertainty_ns;  // of the measured clocks; none: not measured
};

struct HostsReport {
    bool known = true;                 // false: nothing is recorded on a device, and counts are not known
    std::vector<HostPlace> hosts;      // in the order of their first rank
    std::vector<RankGroup> groups;     // by id
    std::vector<HostTraffic> traffic;  // within, between, unknown; by operation
    // Of collectives between hosts: when the last host was complete after the first one was.
    std::int64_t skewed = 0;  // collectives
    std::int64_t median_skew_ns = 0, worst_skew_ns = 0;
    std::optional<ClockAgreement> clocks;  // of a merged trace
};

// The hosts with their ranks, in the order of their first rank; nothing else of them is filled.
std::vector<HostPlace> hosts_of(const Trace& trace);

// Built from the collectives that an analysis looks at, one after the other.
class HostsAnalysis {
  public:
    explicit HostsAnalysis(const Trace& trace);

    // On how many hosts the ranks of a group are; 0 where a host is not known or not all ranks are here.
    int nodes_of(std::int64_t group) const;
    void add(std::span<const Communication> parts, const CollectiveMatch& match);
    HostsReport take();

  private:
    struct Sums {
        HostTraffic traffic;
        std::int64_t timed_ns = 0;
        double timed_bytes = 0, timed_bus_bytes = 0;
    };
    void find_groups();
    void add_skew(std::span<const Communication> parts);

    const Trace& trace_;
    std::vector<std::size_t> host_of_;  // by rank index, in report_.hosts
    std::vector<Sums> sums_;            // by place and operation
    std::vector<std::int64_t> skews_;
    std::vector<std::vector<std::int64_t>> late_;  // by host
    std::vector<std::int64_t> complete_;           // of add_skew
    HostsReport report_;
};

}  // namespace shardscope::traces
