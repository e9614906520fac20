#include "trainer/comm/mpi/mpi_job.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>

#include <fmt/core.h>
#include <mpi.h>

#include "trainer/comm/mpi/mpi_wire.h"

namespace shardscope::trainer::comm::mpi {

namespace {

void check(int code, const char* call) {
    if (code != MPI_SUCCESS) throw std::runtime_error("MPI failed: " + describe_error(call, code));
}

// "Open MPI v4.1.4": the first words of the library's version text, which continues with its build.
std::string library_name() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "MPI";
    const std::string all(text.data(), static_cast<std::size_t>(std::max(length, 0)));
    return all.substr(0, std::min(all.find_first_of(",\n"), all.size()));
}

}  // namespace

std::string describe_error(const char* call, int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) {
        return fmt::format("{}: error {}", call, code);
    }
    return fmt::format("{}: {}", call, std::string_view(text.data(), static_cast<std::size_t>(length)));
}

MpiJob::MpiJob() {
    int initialized = 0, provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&initialized);
    if (initialized) throw std::runtime_error("MPI is in use already in this process");
    // One thread at a time calls MPI: this one until wire(), then the wire's, then this one again.
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    library_ = library_name();
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    if (provided < MPI_THREAD_SERIALIZED) {
        MPI_Finalize();
        throw std::runtime_error(
            library_ +
            " cannot be used by a thread other than the first (no MPI_THREAD_SERIALIZED); "
            "use an MPI that was built with threads");
    }
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
}

MpiJob::~MpiJob() {
    if (!abandoned_) MPI_Finalize();
}

std::string MpiJob::broadcast(const std::string& from_rank_0) {
    std::uint64_t size = from_rank_0.size();
    if (size > INT_MAX) throw std::logic_error("a text of more than 2 GiB is broadcast");
    check(MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD), "MPI_Bcast");
    std::string text = from_rank_0;
    text.resize(size);
    check(MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
    return text;
}

std::unique_ptr<Wire> MpiJob::wire(const MpiWireOptions& options) {
    return std::make_unique<MpiWire>(options, library_);
}

}  // namespace shardscope::trainer::comm::mpi
