// How many collectives each rank of a job has begun, by communicator, so that a watchdog can name the missing
// rank. The ranks of this process record each collective; other processes are asked only when a collective is
// stuck, and nothing is sent before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/device/bootstrap.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::cuda {

class Progress : public std::enable_shared_from_this<Progress> {
  public:
    // `members`: the ranks of each communicator, by its number; `here`: the ranks of this process. From now
    // on it answers the other processes, as long as the bootstrap lives.
    static std::shared_ptr<Progress> open(const std::vector<std::vector<int>>& members,
                                          const std::vector<int>& here,
                                          std::shared_ptr<device::Bootstrap> bootstrap);

    // Everything below may be called on any thread.
    // Records that a rank of this process begins collective `sequence` (from 0) of the communicator.
    void begins(plan::CommunicatorId communicator, int rank, std::int64_t sequence);
    // Asks all other processes; forgets their earlier answers.
    void ask();
    // How many collectives the rank has begun; for a rank of another process, at its last answer. Empty if it
    // has not answered.
    std::optional<std::int64_t> begun(plan::CommunicatorId communicator, int rank) const;

  private:
    struct Entry {
        bool here = false, known = false;
        std::int64_t begun = 0;
    };

    explicit Progress(std::shared_ptr<device::Bootstrap> bootstrap) : bootstrap_(std::move(bootstrap)) {}
    void listen();
    std::string answer() const;
    void hear(std::string_view answer);

    const std::shared_ptr<device::Bootstrap> bootstrap_;
    mutable std::mutex mutex_;
    std::map<std::pair<plan::CommunicatorId, int>, Entry> entries_;  // by communicator and rank
};

}  // namespace shardscope::trainer::cuda
