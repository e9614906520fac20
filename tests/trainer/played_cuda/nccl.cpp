#include "tests/trainer/played_cuda/nccl.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "tests/trainer/played_cuda/runtime_api.h"

namespace shardscope::trainer::cuda {

struct NcclComm {
    struct World {
        std::mutex mutex;
        std::condition_variable changed;
        bool aborted = false;
        struct Round {
            std::vector<const float*> in;
            int come = 0, done = 0;
        };
        std::map<long, Round> rounds;
    };
    std::shared_ptr<World> world;
    int rank = 0, ranks = 1;
    long round = 0;
};

}  // namespace shardscope::trainer::cuda

namespace played_nccl {
namespace {

using shardscope::trainer::cuda::NcclComm;
using shardscope::trainer::cuda::NcclId;
using shardscope::trainer::cuda::NcclLibrary;

std::mutex worlds_mutex;
std::map<int, std::shared_ptr<NcclComm::World>> worlds;
std::atomic<int> ids{0}, async_error{0}, comms_made{0}, comms_gone{0};

int get_unique_id(NcclId* id) {
    const int number = ++ids;
    std::memcpy(id->internal, &number, sizeof number);
    return 0;
}

int init_rank(NcclComm** comm, int ranks, NcclId id, int rank) {
    int number = 0;
    std::memcpy(&number, id.internal, sizeof number);
    const std::lock_guard lock(worlds_mutex);
    auto& world = worlds[number];
    if (!world) world = std::make_shared<NcclComm::World>();
    *comm = new NcclComm{world, rank, ranks, 0};
    ++comms_made;
    return 0;
}

int destroy(NcclComm* comm) {
    delete comm;
    ++comms_gone;
    return 0;
}

int abort(NcclComm* comm) {
    {
        const std::lock_guard lock(comm->world->mutex);
        comm->world->aborted = true;
        comm->world->changed.notify_all();
    }
    return destroy(comm);
}

// All members come with their input; then each does `part` with everybody's; then all go on.
int meet(NcclComm* comm, const void* in, cudaStream_t stream,
         const std::function<void(const std::vector<const float*>&)>& part) {
    if (!comm) return 4;  // ncclInvalidArgument
    const long number = comm->round++;
    played_cuda::enqueue(stream, [world = comm->world, rank = static_cast<std::size_t>(comm->rank),
                                  ranks = comm->ranks, number, in, part] {
        std::unique_lock lock(world->mutex);
        auto& round = world->rounds[number];
        round.in.resize(static_cast<std::size_t>(ranks));
        round.in[rank] = static_cast<const float*>(in);
        ++round.come;
        world->changed.notify_all();
        world->changed.wait(lock, [&] { return world->aborted || round.come == ranks; });
        if (world->aborted) return;
        part(round.in);
        ++round.done;
        world->changed.notify_all();
        world->changed.wait(lock, [&] { return world->aborted || round.done == ranks; });
    });
    return 0;
}

int all_gather(const void* in, void* out, std::size_t each, int, NcclComm* comm, cudaStream_t stream) {
    return meet(comm, in, stream, [=](const std::vector<const float*>& all) {
        for (std::size_t r = 0; r < all.size(); ++r) {
            std::memcpy(static_cast<float*>(out) + r * each, all[r], each * sizeof(float));
        }
    });
}

void sum(const std::vector<const float*>& all, std::size_t first, std::size_t count, int reduction,
         float* out) {
    std::vector<float> sums(count, 0);
    for (const float* in : all) {
        for (std::size_t i = 0; i < count; ++i) sums[i] += in[first + i];
    }
    const float share = reduction == 4 ? 1.0F / static_cast<float>(all.size()) : 1.0F;
    for (std::size_t i = 0; i < count; ++i) out[i] = sums[i] * share;
}

int reduce_scatter(const void* in, void* out, std::size_t each, int, int reduction, NcclComm* comm,
                   cudaStream_t stream) {
    const auto rank = static_cast<std::size_t>(comm ? comm->rank : 0);
    return meet(comm, in, stream, [=](const std::vector<const float*>& all) {
        sum(all, rank * each, each, reduction, static_cast<float*>(out));
    });
}

// Not in place: a member that ends early would change what the others still sum.
int all_reduce(const void* in, void* out, std::size_t count, int, int reduction, NcclComm* comm,
               cudaStream_t stream) {
    return meet(comm, in, stream, [=](const std::vector<const float*>& all) {
        sum(all, 0, count, reduction, static_cast<float*>(out));
    });
}

int broadcast(const void* in, void* out, std::size_t count, int, int root, NcclComm* comm,
              cudaStream_t stream) {
    return meet(comm, in, stream, [=](const std::vector<const float*>& all) {
        std::memmove(out, all[static_cast<std::size_t>(root)], count * sizeof(float));
    });
}

NcclLibrary make_library() {
    NcclLibrary nccl;
    nccl.GetVersion = [](int* version) { return *version = 22809, 0; };
    nccl.GetUniqueId = get_unique_id;
    nccl.CommInitRank = init_rank;
    nccl.CommDestroy = destroy;
    nccl.CommAbort = abort;
    nccl.CommGetAsyncError = [](NcclComm*, int* error) { return *error = async_error, 0; };
    nccl.GroupStart = [] { return 0; };
    nccl.GroupEnd = [] { return 0; };
    nccl.AllGather = all_gather;
    nccl.ReduceScatter = reduce_scatter;
    nccl.AllReduce = all_reduce;
    nccl.Broadcast = broadcast;
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
int made() {
    return comms_made;
}
int gone() {
    return comms_gone;
}

}  // namespace played_nccl
