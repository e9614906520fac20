// The `local` process group: collectives between ranks that are threads of one process. One object per
// communicator. Each member names its buffers and gets the meeting of that collective; when all have arrived,
// each member's part pulls its data straight from the others' buffers. Sums are in rank order, element by
// element, scaled once at the end, so that the bits depend on the number of members alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "trainer/collective/collective_call.h"
#include "trainer/collective/delays.h"
#include "trainer/executor/scheduler.h"
#include "trainer/kernels/streaming.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::executor {

class LocalGroup {
  public:
    // `ranks`: the members' ranks by place, for messages. For tests: `transfer_delay` of every collective
    // (see Meeting); `delays` before each part of one; `cache_bytes`: collectives that write more bytes than
    // this bypass the caches.
    explicit LocalGroup(int members, std::chrono::microseconds transfer_delay = {},
                        collective::Delays* delays = nullptr,
                        std::size_t cache_bytes = kernels::cached_bytes(), std::vector<int> ranks = {})
        : members_(members),
          ranks_(std::move(ranks)),
          transfer_delay_(transfer_delay),
          delays_(delays),
          cache_bytes_(cache_bytes) {}
    int members() const { return members_; }

    // Joins the `sequence`-th collective (from 0) of the member at `place`. Thread safe. Throws
    // std::logic_error if the members disagree on the operation, its type or its size.
    std::shared_ptr<Meeting> join(int place, std::int64_t sequence, const collective::CollectiveCall& call);

  private:
    struct Open {
        std::shared_ptr<Meeting> meeting;
        std::shared_ptr<std::vector<collective::CollectiveCall>> calls;
        collective::CollectiveCall first;  // what the others must agree with
        int joined = 0;
    };
    int members_;
    std::vector<int> ranks_;
    std::chrono::microseconds transfer_delay_;
    collective::Delays* delays_;
    std::size_t cache_bytes_;
    std::mutex mutex_;
    std::map<std::int64_t, Open> open_;  // by sequence; a meeting is removed when all members have joined
};

// Every communicator of a run.
class LocalGroups {
  public:
    explicit LocalGroups(const plan::Mesh& mesh, std::chrono::microseconds transfer_delay = {},
                         collective::Delays* delays = nullptr);
    LocalGroup& of(plan::CommunicatorId id) { return *groups_[static_cast<std::size_t>(id)]; }

  private:
    std::vector<std::unique_ptr<LocalGroup>> groups_;  // by id
};

}  // namespace shardscope::trainer::executor
