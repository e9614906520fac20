#include "trainer/cuda/nccl_start.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/core.h>

namespace shardscope::trainer::cuda {

namespace {

using Clock = std::chrono::steady_clock;
using Communicators = std::vector<std::vector<NcclComm*>>;

void abort_all(const NcclLibrary& nccl, const std::vector<NcclStart>& starts, const Communicators& made) {
    for (std::size_t s = 0; s < made.size(); ++s) {
        for (std::size_t m = 0; m < made[s].size(); ++m) {
            if (!made[s][m]) continue;
            cudaSetDevice(starts[s].here[m].gpu);
            nccl.CommAbort(made[s][m]);
        }
    }
}

std::vector<NcclComm*> start_one(const NcclLibrary& nccl, const NcclStart& start) {
    std::vector<NcclComm*> comms(start.here.size(), nullptr);
    nccl.check(nccl.GroupStart(), "ncclGroupStart");
    try {
        for (std::size_t m = 0; m < comms.size(); ++m) {
            const NcclStart::Member& member = start.here[m];
            check(cudaSetDevice(member.gpu), "cudaSetDevice");
            nccl.check(nccl.CommInitRank(&comms[m], start.members, start.id, member.place),
                       fmt::format("ncclCommInitRank of rank {}", member.rank));
        }
    } catch (...) {
        (void)nccl.GroupEnd();
        throw;
    }
    nccl.check(nccl.GroupEnd(), fmt::format("starting NCCL among {} ranks", start.members));
    return comms;
}

// What the first message of a channel is sent from, or received into, and its stream: were two channels on
// one, ranks that send to each other would wait for ever.
class FirstMessage {
  public:
    explicit FirstMessage(int gpu) : gpu_(gpu) {
        check(cudaSetDevice(gpu), "cudaSetDevice");
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        check(cudaMalloc(&data_, sizeof(float)), "cudaMalloc for a channel's first message");
    }
    ~FirstMessage() {
        cudaSetDevice(gpu_);
        cudaFree(data_);
        cudaStreamDestroy(stream_);
    }
    FirstMessage(const FirstMessage&) = delete;
    FirstMessage& operator=(const FirstMessage&) = delete;

    void enqueue(const NcclLibrary& nccl, const NcclStart::Member& member, NcclComm* comm) const {
        check(cudaSetDevice(gpu_), "cudaSetDevice");
        if (member.place == 0) {
            nccl.check(nccl.Send(data_, 1, kNcclFloat32, 1, comm, stream_), "ncclSend", comm);
        } else {
            nccl.check(nccl.Recv(data_, 1, kNcclFloat32, 0, comm, stream_), "ncclRecv", comm);
        }
    }
    void wait() const {
        check(cudaSetDevice(gpu_), "cudaSetDevice");
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }

  private:
    int gpu_;
    void* data_ = nullptr;
    cudaStream_t stream_ = nullptr;
};

// `messages` outlive the communicators of a start that fails, which may still use their memory.
void connect_channels(const NcclLibrary& nccl, const std::vector<NcclStart>& starts,
                      const Communicators& made, std::deque<FirstMessage>& messages) {
    for (const NcclStart& start : starts) {
        if (!start.channel) continue;
        for (const NcclStart::Member& member : start.here) messages.emplace_back(member.gpu);
    }
    if (messages.empty()) return;
    nccl.check(nccl.GroupStart(), "ncclGroupStart");
    try {
        auto next = messages.begin();
        for (std::size_t s = 0; s < starts.size(); ++s) {
            if (!starts[s].channel) continue;
            for (std::size_t m = 0; m < starts[s].here.size(); ++m)
                next++->enqueue(nccl, starts[s].here[m], made[s][m]);
        }
    } catch (...) {
        (void)nccl.GroupEnd();
        throw;
    }
    nccl.check(nccl.GroupEnd(), "connecting the ranks that send messages");
    for (const FirstMessage& message : messages) message.wait();
}

Communicators start_all(const NcclLibrary& nccl, const std::vector<NcclStart>& starts) {
    Communicators made;
    std::deque<FirstMessage> messages;
    try {
        for (const NcclStart& start : starts) made.push_back(start_one(nccl, start));
        connect_channels(nccl, starts, made, messages);
    } catch (...) {
        abort_all(nccl, starts, made);
        throw;
    }
    return made;
}

// State shared by the starting thread and the one that waits for it; it outlives both.
struct Attempt {
    Attempt(const NcclLibrary& library, const std::vector<NcclStart>& wanted)
        : nccl(library), starts(wanted) {}

    const NcclLibrary& nccl;
    const std::vector<NcclStart> starts;
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false, left_behind = false;
    Communicators made;
    std::exception_ptr error;

    void carry_out() {
        Communicators comms;
        std::exception_ptr thrown;
        try {
            comms = start_all(nccl, starts);
        } catch (...) {
            thrown = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        if (left_behind) return abort_all(nccl, starts, comms);
        made = std::move(comms);
        error = thrown;
        over = true;
        changed.notify_all();
    }
};

// Checks again and again: the job may fail, or other processes stop responding, at any time.
Communicators wait_for(Attempt& attempt, double timeout_s, device::Bootstrap& bootstrap) {
    const Clock::time_point begin = Clock::now();
    std::unique_lock lock(attempt.mutex);
    try {
        while (!attempt.over) {
            attempt.changed.wait_for(lock, std::chrono::milliseconds(50));
            if (attempt.over) break;
            bootstrap.check();
            if (timeout_s <= 0 || Clock::now() - begin < std::chrono::duration<double>(timeout_s)) continue;
            throw CudaError(
                fmt::format("starting NCCL among the processes did not end within the {} s of run.timeout; "
                            "NCCL_DEBUG=INFO says what it waits for (NCCL_SOCKET_IFNAME chooses the network "
                            "interface)",
                            timeout_s));
        }
    } catch (...) {
        attempt.left_behind = true;
        throw;
    }
    if (attempt.error) std::rethrow_exception(attempt.error);
    return std::move(attempt.made);
}

}  // namespace

Communicators start_communicators(const NcclLibrary& nccl, const std::vector<NcclStart>& starts,
                                  double timeout_s, device::Bootstrap* bootstrap) {
    if (!bootstrap) return start_all(nccl, starts);
    const auto attempt = std::make_shared<Attempt>(nccl, starts);
    std::thread([attempt] { attempt->carry_out(); }).detach();
    return wait_for(*attempt, timeout_s, *bootstrap);
}

}  // namespace shardscope::trainer::cuda
