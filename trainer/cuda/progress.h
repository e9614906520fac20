// How many collectives each rank of a job has begun, by communicator: what a watchdog needs to name the
// missing rank. The ranks of this process record it as they go on; other processes are asked only when
// something is stuck, and only then is anything sent.
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

namespace shardscope::trainer::cuda {

class Progress : public std::enable_shared_from_this<Progress> {
  public:
    // `members`: the ranks of each communicator, by Mesh::id; `here`: those of this process. It answers the
    // other processes from now on, as long as the bootstrap lives.
    static std::shared_ptr<Progress> open(const std::vector<std::vector<int>>& members,
                                          const std::vector<int>& here, std::shared_ptr<Bootstrap> bootstrap);

    // Everything below may be called on any thread.
    // Records that a rank of this process begins that collective of the communicator, 0 the first.
    void begins(int communicator, int rank, std::int64_t sequence);
    // Asks all other processes. What was known of their ranks before is forgotten.
    void ask();
    // How many the rank has begun; for a rank of another process, at its last answer. Empty if it has not
    // answered.
    std::optional<std::int64_t> begun(int communicator, int rank) const;

  private:
    struct Entry {
        bool here = false, known = false;
        std::int64_t begun = 0;
    };

    explicit Progress(std::shared_ptr<Bootstrap> bootstrap) : bootstrap_(std::move(bootstrap)) {}
    void listen();
    std::string answer() const;
    void hear(std::string_view answer);

    const std::shared_ptr<Bootstrap> bootstrap_;
    mutable std::mutex mutex_;
    std::map<std::pair<int, int>, Entry> entries_;  // by communicator and rank
};

}  // namespace shardscope::trainer::cuda
