#include "trainer/cuda/groups.h"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/core.h>

#include "trainer/cuda/local_group.h"
#include "trainer/cuda/nccl_group.h"
#include "trainer/cuda/roll_call.h"

namespace shardscope::trainer::cuda {

namespace {

// Two ranks that share a GPU, as a clause; empty if each has its own.
std::string shared_gpu(const std::vector<int>& ordinals) {
    for (std::size_t rank = 0; rank < ordinals.size(); ++rank) {
        const auto first = std::find(ordinals.begin(), ordinals.end(), ordinals[rank]);
        const auto other = static_cast<std::size_t>(first - ordinals.begin());
        if (other < rank) return fmt::format("ranks {} and {} share GPU {}", other, rank, ordinals[rank]);
    }
    return {};
}

// Lets ranks on different GPUs access each other's buffers.
void reach_peers(const std::vector<int>& ordinals) {
    const std::set<int> gpus(ordinals.begin(), ordinals.end());
    for (const int from : gpus) {
        check(cudaSetDevice(from), "cudaSetDevice");
        for (const int to : gpus) {
            if (from == to) continue;
            int can = 0;
            check(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer");
            if (!can) {
                throw CudaError(
                    fmt::format("GPU {} cannot read the memory of GPU {}, which the local process "
                                "group needs; use run.comm = \"nccl\", or fewer GPUs "
                                "(CUDA_VISIBLE_DEVICES)",
                                from, to));
            }
            const cudaError_t result = cudaDeviceEnablePeerAccess(to, 0);
            if (result == cudaErrorPeerAccessAlreadyEnabled) {
                (void)cudaGetLastError();
            } else {
                check(result, "cudaDeviceEnablePeerAccess");
            }
        }
    }
}

std::vector<std::unique_ptr<Group>> make_local_groups(const device::DeviceSettings& settings,
                                                      const std::vector<std::vector<int>>& members,
                                                      const std::vector<int>& ordinals) {
    // Its collectives hold up the host thread until all members are there, and so would a message.
    if (settings.mesh.channel_count() > 0) {
        throw CudaError(
            "on CUDA only NCCL sends messages (of pipeline stages and of parallel.context_exchange = "
            "\"ring\"): use run.comm = \"nccl\" with a GPU for each rank, or run.device = \"cpu\"");
    }
    reach_peers(ordinals);
    std::vector<std::unique_ptr<Group>> groups;
    groups.reserve(members.size());
    for (const std::vector<int>& ranks : members) {
        groups.push_back(std::make_unique<LocalGroup>(ranks, settings.timeout_s));
    }
    return groups;
}

// For a job whose ranks are all in this process.
std::vector<std::unique_ptr<Group>> make_groups_of_one(const device::DeviceSettings& settings,
                                                       const std::vector<std::vector<int>>& members,
                                                       const std::vector<int>& ordinals,
                                                       const NcclLibrary* nccl) {
    const std::string shared = shared_gpu(ordinals);
    if (settings.group == device::GroupKind::nccl && !shared.empty()) {
        throw CudaError(
            fmt::format("run.comm = \"nccl\": {}, which NCCL refuses; use run.comm = \"local\", whose "
                        "ranks may share one, or no more ranks than GPUs",
                        shared));
    }
    const bool alone = settings.mesh.ranks == 1 && settings.group == device::GroupKind::automatic;
    if (settings.group != device::GroupKind::local && shared.empty() && !alone) {
        std::string why;
        if (!nccl) nccl = NcclLibrary::open(why);
        if (nccl)
            return make_nccl_groups(*nccl, members, ordinals, settings.timeout_s, nullptr,
                                    settings.mesh.channel_count());
        if (settings.group == device::GroupKind::nccl) throw CudaError("run.comm = \"nccl\": " + why);
    }
    return make_local_groups(settings, members, ordinals);
}

// What this process sends to the others. A process without NCCL takes part too, so that all learn why.
Introduction introduce(const std::vector<std::vector<int>>& members, const std::vector<const Gpu*>& gpus,
                       const NcclLibrary* nccl, const std::string& why) {
    Introduction mine;
    const auto here = [&](int rank) { return gpus[static_cast<std::size_t>(rank)] != nullptr; };
    for (int rank = 0; rank < static_cast<int>(gpus.size()); ++rank) {
        if (here(rank)) mine.on[rank] = place_of(*gpus[static_cast<std::size_t>(rank)]);
    }
    mine.missing = why;
    if (!nccl) return mine;
    nccl->check(nccl->GetVersion(&mine.nccl_version), "ncclGetVersion");
    for (std::size_t id = 0; id < members.size(); ++id) {
        if (members[id].empty() || !here(members[id].front())) continue;
        nccl->check(nccl->GetUniqueId(&mine.ids[static_cast<int>(id)]), "ncclGetUniqueId");
    }
    return mine;
}

// For a job with ranks in other processes.
std::vector<std::unique_ptr<Group>> make_groups_of_several(const device::DeviceSettings& settings,
                                                           const std::vector<std::vector<int>>& members,
                                                           const std::vector<const Gpu*>& gpus,
                                                           const std::vector<int>& ordinals,
                                                           const NcclLibrary* nccl) {
    if (settings.group == device::GroupKind::local) {
        throw CudaError(
            "run.comm = \"local\" is for ranks of one process, and this job has several; use "
            "run.comm = \"nccl\", or start one process");
    }
    std::string why;
    if (!nccl) nccl = NcclLibrary::open(why);
    NcclPeers peers;
    peers.bootstrap = settings.bootstrap;
    peers.ids = call_roll(*settings.bootstrap, introduce(members, gpus, nccl, why), settings.mesh.ranks,
                          members.size());
    peers.progress = Progress::open(members, settings.ranks, settings.bootstrap);
    return make_nccl_groups(*nccl, members, ordinals, settings.timeout_s, &peers,
                            settings.mesh.channel_count());
}

}  // namespace

std::vector<std::unique_ptr<Group>> make_groups(const device::DeviceSettings& settings,
                                                const std::vector<const Gpu*>& gpus,
                                                const NcclLibrary* nccl) {
    const auto members = settings.mesh.communicators();
    std::vector<int> ordinals;
    ordinals.reserve(gpus.size());
    for (const Gpu* gpu : gpus) ordinals.push_back(gpu ? gpu->ordinal : -1);
    if (settings.bootstrap) return make_groups_of_several(settings, members, gpus, ordinals, nccl);
    return make_groups_of_one(settings, members, ordinals, nccl);
}

}  // namespace shardscope::trainer::cuda
