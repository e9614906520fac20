#include "tests/trainer/played_cuda/nccl.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/profiler/nccl_dumps.h"
#include "tests/trainer/played_cuda/runtime_api.h"

namespace shardscope::trainer::cuda {

struct NcclComm {
    struct World {
        std::mutex mutex;
        std::condition_variable changed;
        int joined = 0;
        bool broken = false;  // a member has aborted its communicator
        struct Round {
            std::vector<const float*> in;
            int come = 0, done = 0;
        };
        std::map<long, Round> rounds;
        std::map<std::tuple<int, int, long>, const float*> sent;  // messages, by sender, receiver and number
    };
    std::shared_ptr<World> world;
    int rank = 0, ranks = 1;
    long round = 0;
    std::map<std::pair<bool, int>, long> messages;                  // by direction and peer
    std::shared_ptr<bool> aborted = std::make_shared<bool>(false);  // guarded by the world's mutex
    // The number of calls that currently use it.
    std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
};

}  // namespace shardscope::trainer::cuda

namespace played_nccl {
namespace {

using shardscope::trainer::cuda::NcclComm;
using shardscope::trainer::cuda::NcclId;
using shardscope::trainer::cuda::NcclLibrary;

std::mutex worlds_mutex;
std::map<int, std::shared_ptr<NcclComm::World>> worlds;
std::atomic<int> ids{0}, async_error{0}, comms_made{0}, comms_gone{0}, held{0}, in_calls{0};
std::atomic<bool> holds{false};

int get_unique_id(NcclId* id) {
    const int number = ++ids;
    std::memcpy(id->internal, &number, sizeof number);
    return 0;
}

// As in NCCL, a member's start returns when all have arrived; in a group, at the group's end.
thread_local bool grouped = false;
thread_local std::vector<NcclComm*> starting;
std::atomic<bool> let_go{false};

std::atomic<int> waiting{0};

int wait_for_members() {
    struct Counted {
        Counted() { ++waiting; }
        ~Counted() { --waiting; }
    };
    const Counted counted;
    for (NcclComm* comm : std::exchange(starting, {})) {
        NcclComm::World& world = *comm->world;
        std::unique_lock lock(world.mutex);
        while (world.joined < comm->ranks) {
            if (let_go) return 6;  // ncclRemoteError
            world.changed.wait_for(lock, std::chrono::milliseconds(5));
        }
    }
    return 0;
}

int init_rank(NcclComm** comm, int ranks, NcclId id, int rank) {
    shardscope::profiler::testing::write_nccl_dumps(rank);
    int number = 0;
    std::memcpy(&number, id.internal, sizeof number);
    {
        const std::lock_guard lock(worlds_mutex);
        auto& world = worlds[number];
        if (!world) world = std::make_shared<NcclComm::World>();
        *comm = new NcclComm{world, rank, ranks};
        ++comms_made;
    }
    {
        const std::lock_guard lock((*comm)->world->mutex);
        ++(*comm)->world->joined;
        (*comm)->world->changed.notify_all();
    }
    starting.push_back(*comm);
    return grouped ? 0 : wait_for_members();
}

int destroy(NcclComm* comm) {
    delete comm;
    ++comms_gone;
    return 0;
}

int abort(NcclComm* comm) {
    if (*comm->calls > 0) ++in_calls;
    {
        const std::lock_guard lock(comm->world->mutex);
        *comm->aborted = true;
        comm->world->broken = true;
        comm->world->changed.notify_all();
    }
    return destroy(comm);
}

// A member's communicator fails if another's is gone.
int get_async_error(NcclComm* comm, int* error) {
    *error = async_error;
    if (*error == 0) {
        const std::lock_guard lock(comm->world->mutex);
        if (comm->world->broken) *error = 6;
    }
    return 0;
}

using Inputs = std::vector<const float*>;  // of all members
using Values = std::vector<float>;

// All members arrive with their input, and each computes its output from all inputs. When all are done, each
// writes its own output, which may overlap an input; then all continue.
int meet(NcclComm* comm, const void* in, void* out, cudaStream_t stream,
         const std::function<Values(const Inputs&)>& compute) {
    if (!comm) return 4;  // ncclInvalidArgument
    const std::shared_ptr<std::atomic<int>> calls = comm->calls;
    ++*calls;
    const long number = comm->round++;
    played_cuda::enqueue(
        stream, [world = comm->world, aborted = comm->aborted, rank = static_cast<std::size_t>(comm->rank),
                 ranks = comm->ranks, number, in, out, compute] {
            std::unique_lock lock(world->mutex);
            auto& round = world->rounds[number];
            round.in.resize(static_cast<std::size_t>(ranks));
            round.in[rank] = static_cast<const float*>(in);
            ++round.come;
            world->changed.notify_all();
            world->changed.wait(lock, [&] { return *aborted || round.come == ranks; });
            if (*aborted) return;
            const Values values = compute(round.in);
            ++round.done;
            world->changed.notify_all();
            world->changed.wait(lock, [&] { return *aborted || round.done == ranks; });
            if (*aborted || values.empty()) return;
            std::memcpy(out, values.data(), values.size() * sizeof(float));
        });
    ++held;
    while (holds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --held;
    --*calls;
    return 0;
}

int all_gather(const void* in, void* out, std::size_t each, int, NcclComm* comm, cudaStream_t stream) {
    return meet(comm, in, out, stream, [=](const Inputs& all) {
        Values gathered;
        for (const float* part : all) gathered.insert(gathered.end(), part, part + each);
        return gathered;
    });
}

Values sum(const Inputs& all, std::size_t first, std::size_t count, int reduction) {
    Values sums(count, 0);
    for (const float* in : all) {
        for (std::size_t i = 0; i < count; ++i) sums[i] += in[first + i];
    }
    if (reduction == 4) {  // ncclAvg
        for (float& each : sums) each *= 1.0F / static_cast<float>(all.size());
    }
    return sums;
}

int reduce_scatter(const void* in, void* out, std::size_t each, int, int reduction, NcclComm* comm,
                   cudaStream_t stream) {
    const auto rank = static_cast<std::size_t>(comm ? comm->rank : 0);
    return meet(comm, in, out, stream,
                [=](const Inputs& all) { return sum(all, rank * each, each, reduction); });
}

int all_reduce(const void* in, void* out, std::size_t count, int, int reduction, NcclComm* comm,
               cudaStream_t stream) {
    return meet(comm, in, out, stream, [=](const Inputs& all) { return sum(all, 0, count, reduction); });
}

int broadcast(const void* in, void* out, std::size_t count, int, int root, NcclComm* comm,
              cudaStream_t stream) {
    return meet(comm, in, out, stream, [=](const Inputs& all) {
        const float* from = all[static_cast<std::size_t>(root)];
        return Values(from, from + count);
    });
}

// The messages of a group, or a single one: all are sent before the first is received, and the streams go on
// when all have been received.
struct Message {
    NcclComm* comm;
    bool sends;
    float* memory;
    std::size_t count;
    int peer;
    cudaStream_t stream;
    long number;  // among those of the pair
    int gpu;      // of the communicator: the group may end on another
};
thread_local std::vector<Message> messages;

void carry_out(const std::vector<Message>& all, NcclComm::World& world, const bool& aborted, int rank) {
    std::unique_lock lock(world.mutex);
    const auto wait_for = [&](const auto& condition) {
        world.changed.wait(lock, [&] { return aborted || condition(); });
    };
    for (const Message& own : all) {
        if (own.sends) world.sent[{rank, own.peer, own.number}] = own.memory;
    }
    world.changed.notify_all();
    for (const Message& own : all) {
        if (own.sends) continue;
        const std::tuple key(own.peer, rank, own.number);
        wait_for([&] { return world.sent.contains(key); });
        if (aborted) return;
        std::memcpy(own.memory, world.sent[key], own.count * sizeof(float));
        world.sent.erase(key);
        world.changed.notify_all();
    }
    for (const Message& own : all) {
        if (own.sends) wait_for([&] { return !world.sent.contains({rank, own.peer, own.number}); });
    }
}

// One item for each stream and communicator.
void enqueue_messages() {
    std::map<std::pair<cudaStream_t, NcclComm*>, std::vector<Message>> items;
    for (const Message& own : std::exchange(messages, {})) items[{own.stream, own.comm}].push_back(own);
    int current = 0;
    cudaGetDevice(&current);
    for (const auto& [where, all] : items) {
        const NcclComm& comm = *where.second;
        cudaSetDevice(all.front().gpu);
        played_cuda::enqueue(where.first, [all = all, world = comm.world, aborted = comm.aborted,
                                           rank = comm.rank] { carry_out(all, *world, *aborted, rank); });
    }
    cudaSetDevice(current);
}

int message(bool sends, void* memory, std::size_t count, int peer, NcclComm* comm, cudaStream_t stream) {
    if (!comm) return 4;  // ncclInvalidArgument
    int gpu = 0;
    cudaGetDevice(&gpu);
    messages.push_back({comm, sends, static_cast<float*>(memory), count, peer, stream,
                        comm->messages[{sends, peer}]++, gpu});
    if (!grouped) enqueue_messages();
    return 0;
}

int send(const void* in, std::size_t count, int, int peer, NcclComm* comm, cudaStream_t stream) {
    return message(true, const_cast<void*>(in), count, peer, comm, stream);
}

int recv(void* out, std::size_t count, int, int peer, NcclComm* comm, cudaStream_t stream) {
    return message(false, out, count, peer, comm, stream);
}

NcclLibrary make_library() {
    NcclLibrary nccl;
    nccl.GetVersion = [](int* version) { return *version = 22809, 0; };
    nccl.GetUniqueId = get_unique_id;
    nccl.CommInitRank = init_rank;
    nccl.CommDestroy = destroy;
    nccl.CommAbort = abort;
    nccl.CommGetAsyncError = get_async_error;
    nccl.GroupStart = [] { return grouped = true, 0; };
    nccl.GroupEnd = [] { return grouped = false, enqueue_messages(), wait_for_members(); };
    nccl.AllGather = all_gather;
    nccl.ReduceScatter = reduce_scatter;
    nccl.AllReduce = all_reduce;
    nccl.Broadcast = broadcast;
    nccl.Send = send;
    nccl.Recv = recv;
    nccl.GetErrorString = [](int result) { return result == 6 ? "remote process exited" : "invalid usage"; };
    return nccl;
}

}  // namespace

const NcclLibrary& library() {
    static const NcclLibrary nccl = make_library();
    return nccl;
}

void set_async_error(int result) {
    async_error = result;
}
void let_go_of_starts(bool now) {
    let_go = now;
}
int starts_waiting() {
    return waiting;
}
void hold_calls(bool now) {
    holds = now;
}
int calls_held() {
    return held;
}
int aborted_in_calls() {
    return in_calls;
}
int made() {
    return comms_made;
}
int gone() {
    return comms_gone;
}

}  // namespace played_nccl
