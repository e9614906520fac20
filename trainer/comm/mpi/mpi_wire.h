// Messages as MPI's own, sent and received without waiting. MPI has no way to sleep until something arrives,
// and the ranks' workers need the cores: a progress() that waits looks a few times and then sleeps between
// looks, longer and longer.
//
// A message of more than `chunk_bytes` goes as several. A tag of 32 bits is more than MPI promises to carry:
// its upper part is a choice between communicators.
#pragma once

#include <atomic>
#include <vector>

#include <mpi.h>

#include "trainer/comm/mpi_module.h"
#include "trainer/comm/wire.h"

namespace shardscope::trainer::mpi {

class MpiWire final : public Wire {
  public:
    MpiWire(const MpiWireOptions& options, std::string library);  // collective; throws WireError
    ~MpiWire() override;

    int rank() const override { return rank_; }
    int ranks() const override { return ranks_; }
    const char* name() const override { return "mpi"; }

    Ticket send(int to, std::uint32_t tag, std::span<const std::byte> data) override;
    Ticket receive(int from, std::uint32_t tag, std::span<std::byte> data) override;
    bool progress(int wait_us) override;
    bool done(Ticket ticket) override;
    void wake() override;

  private:
    struct Channel {
        MPI_Comm communicator;
        int tag;
    };
    // What one of MPI's requests belongs to.
    struct Part {
        std::size_t message;
        int peer;
        int bytes;  // of a receive: what must arrive; -1 for a send
    };

    Channel channel(std::uint32_t tag) const;
    std::size_t open_message();
    template <class Byte, class Start>
    Ticket start(int peer, std::uint32_t tag, std::span<Byte> data, bool receives, const Start& start_part);
    bool test();                // whether a request is over
    bool sleep(long sleep_ns);  // whether woken
    void drain_pokes();
    [[noreturn]] void fail(const char* call, int code, int peer) const;

    MpiWireOptions options_;
    std::string library_;
    int rank_ = 0, ranks_ = 1;
    std::uint64_t tags_ = 0;  // of one communicator
    std::vector<MPI_Comm> communicators_;

    std::vector<int> parts_left_;        // by message
    std::vector<std::size_t> free_;      // messages that are nobody's
    std::vector<MPI_Request> requests_;  // under way
    std::vector<Part> parts_;            // of the requests
    std::vector<int> finished_;          // MPI_Testsome's
    std::vector<MPI_Status> statuses_;
    int waker_ = -1;  // an eventfd
    std::atomic<bool> woken_{false};
};

}  // namespace shardscope::trainer::mpi
