#include "trainer/comm/mpi_module.h"

#include <cstdlib>
#include <optional>

#include <dlfcn.h>
#include <fmt/core.h>
#include <shardscope/version.h>

#include "profiler/base/beside_tool.h"
#include "trainer/comm/mpi_entry.h"
#include "trainer/world/place.h"

namespace shardscope::trainer::comm {

namespace {

constexpr const char* kModule = "libshardscope_mpi.so";

// The library is never closed: MPI's own threads and handlers outlive the job.
void* open_library() {
    const std::string path = profiler::find_beside_tool(kModule);
    if (path.empty()) {
        throw world::WorldError(fmt::format(
            "run.comm = \"mpi\": {} is missing next to shardscope-train; build it where an MPI is "
            "installed, or use run.comm = \"tcp\"",
            kModule));
    }
    // RTLD_GLOBAL, because the plugins that an MPI opens look for its symbols there.
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library) return library;
    const char* reason = ::dlerror();
    throw world::WorldError(
        fmt::format("run.comm = \"mpi\": {} cannot be opened ({}); install the MPI that it was built with, "
                    "or use run.comm = \"tcp\"",
                    path, reason ? reason : "no reason given"));
}

// If the launcher belongs to another MPI, this one makes every process a job of its own.
void check_launcher(const MpiModule& module) {
    const std::optional<world::Place> place =
        world::place_from_environment([](const char* name) { return std::getenv(name); });
    if (!place || place->ranks == module.ranks()) return;
    throw world::WorldError(
        fmt::format("run.comm = \"mpi\": {} has started {} processes, but {} sees {}; start them with this "
                    "MPI's mpirun (or srun --mpi=pmix), or use run.comm = \"tcp\"",
                    name(place->launcher), place->ranks, module.library(),
                    module.ranks() == 1 ? std::string("this one only") : std::to_string(module.ranks())));
}

}  // namespace

std::unique_ptr<MpiModule> MpiModule::open() {
    const auto open = reinterpret_cast<mpi::Open>(::dlsym(open_library(), mpi::kOpenSymbol));
    if (!open) {
        throw world::WorldError(fmt::format(
            "run.comm = \"mpi\": {} lacks {}; reinstall it and shardscope-train from the same build", kModule,
            mpi::kOpenSymbol));
    }
    std::string why;
    std::unique_ptr<MpiModule> module(open(kVersion, why));
    if (!module) throw world::WorldError("run.comm = \"mpi\": " + why);
    check_launcher(*module);
    return module;
}

}  // namespace shardscope::trainer::comm
