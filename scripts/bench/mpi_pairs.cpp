// A plain loop of MPI_Isend and MPI_Irecv between two processes, as OSU's osu_latency, osu_bw and osu_bibw
// have it, to compare shardscope-train --bench-collectives with. Prints a line for each size:
//
//     BYTES LATENCY_US ONE_WAY_US BOTH_WAYS_US      (of a message; both ways: of a pair of messages)
//
// mpirun -np 2 mpi_pairs [--serialized] [SIZE ...]; --serialized: MPI is asked for MPI_THREAD_SERIALIZED,
// which a program needs whose messages have a thread of their own, and with which Open MPI locks. The memory
// and the number of rounds are as in trainer/comm/message_bench.h, the fastest round counts.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include <mpi.h>
#include <sys/mman.h>

namespace {

constexpr int kWindow = 64, kRounds = 5;
constexpr double kSeconds = 0.02;  // of a round
constexpr std::size_t kHugePage = std::size_t{2} << 20;

int g_rank = 0;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Exchange>
double fastest_us(int messages, const Exchange& exchange) {
    const auto round = [&](std::int64_t exchanges) {
        const double begin = now();
        for (std::int64_t i = 0; i < exchanges; ++i) exchange();
        return now() - begin;
    };
    round(1);
    std::int64_t exchanges = 1;
    while (exchanges < 10'000) {
        const double seconds = round(exchanges);
        std::int64_t next = seconds > kSeconds / 4
                                ? 0
                                : std::clamp(static_cast<std::int64_t>(static_cast<double>(exchanges) *
                                                                       kSeconds / std::max(seconds, 1e-9)),
                                             exchanges + 1, 10 * exchanges);
        MPI_Bcast(&next, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
        if (next == 0) break;
        exchanges = std::min<std::int64_t>(next, 10'000);
    }
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kRounds; ++i) best = std::min(best, round(exchanges));
    return best * 1e6 / static_cast<double>(exchanges * messages);
}

char* memory(std::size_t bytes) {
    const std::size_t page = bytes >= kHugePage ? kHugePage : 4096;
    void* data = nullptr;
    if (posix_memalign(&data, page, bytes) != 0) {
        std::fprintf(stderr, "mpi_pairs: not enough memory\n");
        std::exit(1);
    }
    if (page == kHugePage) madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    std::fill_n(static_cast<char*>(data), bytes, 1);
    return static_cast<char*>(data);
}

void measure(std::int64_t bytes, char* out, char* in) {
    const int n = static_cast<int>(bytes), peer = 1 - g_rank;
    const bool first = g_rank == 0;
    const int window =
        static_cast<int>(std::clamp<std::int64_t>((std::int64_t{256} << 20) / bytes, 1, kWindow));
    std::vector<MPI_Request> requests(static_cast<std::size_t>(2 * window));
    const auto acknowledge = [&] {
        char ack = 0;
        if (first) {
            MPI_Recv(&ack, 1, MPI_CHAR, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(&ack, 1, MPI_CHAR, peer, 2, MPI_COMM_WORLD);
        }
    };
    const double latency = fastest_us(2, [&] {
        if (first) {
            MPI_Send(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(in, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
        }
    });
    const double one_way = fastest_us(window, [&] {
        for (int i = 0; i < window; ++i) {
            if (first) {
                MPI_Isend(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
            } else {
                MPI_Irecv(in, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
            }
        }
        MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
        acknowledge();
    });
    const double both_ways = fastest_us(window, [&] {
        for (int i = 0; i < window; ++i)
            MPI_Irecv(in, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
        for (int i = 0; i < window; ++i)
            MPI_Isend(out, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD,
                      &requests[static_cast<std::size_t>(window + i)]);
        MPI_Waitall(2 * window, requests.data(), MPI_STATUSES_IGNORE);
        acknowledge();
    });
    if (first)
        std::printf("%lld %.4f %.4f %.4f\n", static_cast<long long>(bytes), latency, one_way, both_ways);
}

}  // namespace

int main(int argc, char** argv) {
    const bool serialized = argc > 1 && std::strcmp(argv[1], "--serialized") == 0;
    int provided = 0;
    MPI_Init_thread(&argc, &argv, serialized ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE, &provided);
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<std::int64_t> sizes;
    for (int i = serialized ? 2 : 1; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
    if (sizes.empty()) sizes = {8, 4 << 20};
    const bool usable = ranks == 2 && std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) {
                            return size >= 1 && size <= (std::int64_t{1} << 30);
                        });
    if (usable) {
        const auto largest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
        char *out = memory(largest), *in = memory(largest);
        for (const std::int64_t size : sizes) measure(size, out, in);
    } else if (g_rank == 0) {
        std::fprintf(stderr,
                     "usage: mpirun -np 2 mpi_pairs [--serialized] [SIZE ...], sizes in bytes up to 1 GiB\n");
    }
    MPI_Finalize();
    return usable ? 0 : 2;
}
