// Sends and receives messages through MPI without blocking. MPI has no way to sleep until something arrives,
// and the ranks' workers need the cores: a progress() that waits polls a few times and then sleeps between
// polls, longer each time.
//
// A message of more than `chunk_bytes` is sent as several. MPI does not promise to carry tags of 32 bits, so
// their upper part selects a communicator.
#pragma once

#include <atomic>
#include <vector>

#include <mpi.h>

#include "trainer/comm/mpi_module.h"
#include "trainer/comm/socket.h"
#include "trainer/comm/wire.h"

namespace shardscope::trainer::comm::mpi {

class MpiWire final : public Wire {
  public:
    MpiWire(const MpiWireOptions& options, std::string library);  // collective; throws WireError

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
    // The part of a message that one MPI request transfers.
    struct Part {
        std::size_t message;
        int peer;
        int bytes;  // expected by a receive; -1 for a send
    };

    Channel channel(std::uint32_t tag) const;
    std::size_t open_message();
    template <class Byte, class Start>
    Ticket start(int peer, std::uint32_t tag, std::span<Byte> data, bool receives, const Start& start_part);
    bool over(MPI_Request& sent, int peer) const;
    // Poll MPI; whether a request has ended.
    bool test();
    bool test_one();
    bool test_some();
    void finish(const Part& part, int code, const MPI_Status& status);
    [[noreturn]] void fail(const char* call, int code, int peer) const;

    MpiWireOptions options_;
    std::string library_;
    int rank_ = 0, ranks_ = 1;
    std::uint64_t tags_ = 0;  // number of tags per communicator
    // MPI_Finalize frees them: freeing is collective, and after a failure no rank answers.
    std::vector<MPI_Comm> communicators_;

    std::vector<int> parts_left_;        // by message
    std::vector<std::size_t> free_;      // messages that are not in use
    std::vector<MPI_Request> requests_;  // under way
    std::vector<Part> parts_;            // by request
    std::vector<int> finished_;          // indices from MPI_Testsome
    std::vector<MPI_Status> statuses_;
    Socket waker_;  // an eventfd
    std::atomic<bool> woken_{false};
};

}  // namespace shardscope::trainer::comm::mpi
