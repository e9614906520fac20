// The NCCL calls that a trace contains as NVTX ranges of the domain "NCCL", with their payloads: the
// communicator and the bytes. Internal to the store.
//
// Source of the names and payloads: NVIDIA/nccl, src/include/nvtx_payload_schemas.h; tests check them against
// ranges of the real library.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "traces/schema/enums.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

struct NcclCall {
    schema::Operation operation = schema::Operation::other;
    std::int64_t global_tid = 0, start = 0, end = 0;
    std::optional<std::uint64_t> communicator;  // without a payload: unknown
    std::int64_t bytes = -1;                    // as NCCL counts them, see full_bytes(); -1: unknown
};

// A range in which NCCL launches kernels: a call outside groups, or the end of the outermost group.
struct NcclSite {
    std::int64_t global_tid = 0, start = 0, end = 0;
    std::vector<std::size_t> calls;  // calls whose work it launches, in order; empty: not recorded
    std::ptrdiff_t around = -1;      // the enclosing site
};

class NcclCalls {
  public:
    explicit NcclCalls(Database& database);

    const std::vector<NcclCall>& calls() const { return calls_; }
    const std::vector<NcclSite>& sites() const { return sites_; }
    // The innermost site around this time on the thread, or -1.
    std::ptrdiff_t site_at(std::int64_t global_tid, std::int64_t time) const;
    // The number of ranks of a communicator, 0: unknown.
    int ranks_of(std::uint64_t communicator) const;

  private:
    void read_ranges(Database& database);
    void link_sites();
    void read_communicators(Database& database);

    std::vector<NcclCall> calls_;
    std::vector<NcclSite> sites_;  // by thread and start
    std::unordered_map<std::uint64_t, int> ranks_;
};

// The size of the full buffer (nccl-tests' S) from NCCL's message size. NCCL reports one rank's part where
// the parts of all ranks make up the buffer: the contribution to an all_gather, the result of a
// reduce_scatter.
std::int64_t full_bytes(schema::Operation operation, std::int64_t message_bytes, int ranks);

}  // namespace shardscope::traces::store
