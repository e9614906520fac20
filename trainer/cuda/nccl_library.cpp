#include "trainer/cuda/nccl_library.h"

#include <cstdlib>
#include <mutex>
#include <type_traits>

#include <dlfcn.h>
#include <fmt/core.h>

namespace shardscope::trainer::cuda {

namespace {

struct Opened {
    NcclLibrary library;
    std::string why;  // why it cannot be used; empty if it can
};

Opened open_library() {
    Opened opened;
    const char* wanted = std::getenv("SHARDSCOPE_NCCL");
    const char* name = wanted && *wanted ? wanted : "libnccl.so.2";
    void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char* reason = ::dlerror();
        opened.why = fmt::format(
            "{} cannot be opened ({}); install NCCL, set LD_LIBRARY_PATH or SHARDSCOPE_NCCL, "
            "or use run.comm = \"local\"",
            name, reason ? reason : "no reason given");
        return opened;
    }
    const auto find = [&](auto& function, const char* symbol) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, symbol));
        if (function || !opened.why.empty()) return;
        opened.why = fmt::format("{} has no {}; install NCCL 2.10 or later", name, symbol);
    };
    NcclLibrary& nccl = opened.library;
    find(nccl.GetVersion, "ncclGetVersion");
    find(nccl.GetUniqueId, "ncclGetUniqueId");
    find(nccl.CommInitRank, "ncclCommInitRank");
    find(nccl.CommDestroy, "ncclCommDestroy");
    find(nccl.CommAbort, "ncclCommAbort");
    find(nccl.CommGetAsyncError, "ncclCommGetAsyncError");
    find(nccl.GroupStart, "ncclGroupStart");
    find(nccl.GroupEnd, "ncclGroupEnd");
    find(nccl.AllGather, "ncclAllGather");
    find(nccl.ReduceScatter, "ncclReduceScatter");
    find(nccl.AllReduce, "ncclAllReduce");
    find(nccl.Broadcast, "ncclBroadcast");
    find(nccl.Send, "ncclSend");
    find(nccl.Recv, "ncclRecv");
    find(nccl.GetErrorString, "ncclGetErrorString");
    // Exists since 2.13; without it messages are shorter.
    nccl.GetLastError = reinterpret_cast<const char* (*)(NcclComm*)>(::dlsym(handle, "ncclGetLastError"));
    return opened;
}

}  // namespace

const NcclLibrary* NcclLibrary::open(std::string& why) {
    static const Opened opened = open_library();
    why = opened.why;
    return opened.why.empty() ? &opened.library : nullptr;
}

std::string nccl_version_text(int version) {
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void NcclLibrary::check(int result, const std::string& what, NcclComm* comm) const {
    if (result == kNcclSuccess || result == kNcclInProgress) return;
    std::string sentence = what + " failed: " + GetErrorString(result);
    if (GetLastError && comm) {
        const char* more = GetLastError(comm);
        if (more && *more) sentence += std::string(" (") + more + ")";
    }
    throw CudaError(sentence + "; NCCL_DEBUG=WARN says more");
}

}  // namespace shardscope::trainer::cuda
