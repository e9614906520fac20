// The cost of collectives between processes, compared with MPI's own and with the best that can be composed
// from MPI's messages. Not a test; run mpirun -np 2 bin/bench_collectives [ROUNDS [LARGEST_MIB]]. All ways
// take turns in every round, and the best time of each counts.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <mpi.h>

#include "trainer/comm/collective_group.h"
#include "trainer/comm/gloo_wire.h"
#include "trainer/comm/mpi_module.h"
#include "trainer/comm/tcp_wire.h"
#include "trainer/executor/host_memory.h"
#include "trainer/kernels/elementwise.h"

namespace shardscope::trainer::comm {
namespace {

// Memory as the trainer's device allocates it, the same for all ways.
template <class T>
struct HostMemory {
    using value_type = T;
    T* allocate(std::size_t n) {
        std::byte* data = executor::take_host_memory(n * sizeof(T));
        return data ? reinterpret_cast<T*>(data) : throw std::bad_alloc();
    }
    void deallocate(T* data, std::size_t) {
        executor::give_back_host_memory(reinterpret_cast<std::byte*>(data));
    }
    bool operator==(const HostMemory&) const = default;
};
using Floats = std::vector<float, HostMemory<float>>;

int g_rank = 0, g_ranks = 1;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// --- by hand ---------------------------------------------------------------------------------------------

// The piece of the rank `back` places before this one.
int before(int back) {
    return ((g_rank - back) % g_ranks + g_ranks) % g_ranks;
}
void exchange(const float* out, float* in, std::size_t count) {
    const int next = (g_rank + 1) % g_ranks, previous = before(1), n = static_cast<int>(count);
    MPI_Sendrecv(out, n, MPI_FLOAT, next, 1, in, n, MPI_FLOAT, previous, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}
void ring_reduce_scatter(const Floats& in, float* out, std::size_t piece) {
    static Floats received, sum;
    received.resize(piece);
    sum.resize(piece);
    const float* leaving = in.data() + static_cast<std::size_t>(before(1)) * piece;
    for (int round = 0; round < g_ranks - 1; ++round) {
        exchange(leaving, received.data(), piece);
        float* to = round == g_ranks - 2 ? out : sum.data();
        kernels::add(received.data(), in.data() + static_cast<std::size_t>(before(round + 2)) * piece, to,
                     piece);
        leaving = to;
    }
}
void ring_all_gather(Floats& out, std::size_t piece) {  // the rank's own piece is already in place
    for (int round = 0; round < g_ranks - 1; ++round) {
        exchange(out.data() + static_cast<std::size_t>(before(round)) * piece,
                 out.data() + static_cast<std::size_t>(before(round + 1)) * piece, piece);
    }
}

// --- the ways
// ------------------------------------------------------------------------------------------------

struct Buffers {
    Floats in, out;
    std::size_t full = 0, piece = 0;
};
using Carry = std::function<void(plan::Operation, Buffers&)>;

void by_mpi(plan::Operation operation, Buffers& b) {
    const int piece = static_cast<int>(b.piece), full = static_cast<int>(b.full);
    if (operation == plan::Operation::all_gather) {
        MPI_Allgather(b.in.data(), piece, MPI_FLOAT, b.out.data(), piece, MPI_FLOAT, MPI_COMM_WORLD);
    } else if (operation == plan::Operation::reduce_scatter) {
        MPI_Reduce_scatter_block(b.in.data(), b.out.data(), piece, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Allreduce(b.in.data(), b.out.data(), full, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
}

void by_hand(plan::Operation operation, Buffers& b) {
    float* own = b.out.data() + static_cast<std::size_t>(g_rank) * b.piece;
    if (operation == plan::Operation::all_gather) {
        std::copy_n(b.in.data(), b.piece, own);
        ring_all_gather(b.out, b.piece);
    } else if (operation == plan::Operation::reduce_scatter) {
        ring_reduce_scatter(b.in, b.out.data(), b.piece);
    } else {
        ring_reduce_scatter(b.in, own, b.piece);
        ring_all_gather(b.out, b.piece);
    }
}

// A process group, used as a rank's stream does: one collective after the other, and no other work meanwhile.
class Ours {
  public:
    Ours(std::unique_ptr<Wire> wire, Sums sums) {
        CollectiveGroupOptions options;
        options.mesh = {g_ranks, g_ranks};
        options.sums = sums;
        group_ = make_collective_group(std::move(wire), options);
        group_->look_while([this] { return waiting_.load(std::memory_order_relaxed); });
    }
    void operator()(plan::Operation operation, Buffers& b) {
        device::CollectiveLaunch launch;
        launch.place = g_rank;
        launch.members = g_ranks;
        launch.sequence = sequence_++;
        launch.call = {
            operation, plan::DType::fp32, b.out.data(), b.in.data(), static_cast<std::int64_t>(b.full), 1};
        std::atomic<int> done{0};
        waiting_.store(true);
        group_->begin(launch, [&](const std::exception_ptr& error) {
            if (error) std::rethrow_exception(error);  // ends the program
            waiting_.store(false);
            done.store(1);
            done.notify_one();
        });
        done.wait(0);
    }

  private:
    std::atomic<bool> waiting_{false};
    std::unique_ptr<ProcessGroup> group_;
    std::int64_t sequence_ = 0;
};

// Like World::gather.
std::vector<std::string> gather_over_mpi(const std::string& mine) {
    int size = static_cast<int>(mine.size()), most = 0;
    MPI_Allreduce(&size, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    std::vector<int> sizes(static_cast<std::size_t>(g_ranks));
    MPI_Allgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::string own = mine;
    own.resize(static_cast<std::size_t>(most));
    std::string all(static_cast<std::size_t>(g_ranks) * own.size(), '\0');
    MPI_Allgather(own.data(), most, MPI_CHAR, all.data(), most, MPI_CHAR, MPI_COMM_WORLD);
    std::vector<std::string> texts;
    for (std::size_t r = 0; r < sizes.size(); ++r)
        texts.push_back(all.substr(r * own.size(), static_cast<std::size_t>(sizes[r])));
    return texts;
}

WirePeers peers_over_mpi() {
    WirePeers peers;
    peers.rank = g_rank;
    peers.ranks = g_ranks;
    constexpr int kMost = 4096;
    peers.gather = gather_over_mpi;
    peers.broadcast = [](const std::string& from_rank_0) {
        std::array<char, kMost> text{};
        std::copy_n(from_rank_0.begin(), std::min<std::size_t>(from_rank_0.size(), kMost - 1), text.begin());
        MPI_Bcast(text.data(), kMost, MPI_CHAR, 0, MPI_COMM_WORLD);
        return std::string(text.data());
    };
    return peers;
}

// --- measuring
// -----------------------------------------------------------------------------------------------

constexpr std::array<plan::Operation, 3> kOperations = {
    plan::Operation::all_gather, plan::Operation::reduce_scatter, plan::Operation::all_reduce};

using Key = std::tuple<int, std::size_t, std::string>;  // operation, bytes, way
using Times = std::map<Key, double>;                    // seconds, the best

void measure(const std::string& way, const Carry& carry, const std::vector<std::size_t>& sizes, Times& best) {
    for (const plan::Operation operation : kOperations) {
        for (const std::size_t bytes : sizes) {
            Buffers b;
            b.piece = bytes / sizeof(float) / static_cast<std::size_t>(g_ranks);
            b.full = b.piece * static_cast<std::size_t>(g_ranks);
            b.in.assign(b.full, static_cast<float>(g_rank + 1));
            b.out.assign(b.full, 0);
            // Other work may disturb the machine, so the best of many short runs counts.
            const std::size_t calls = std::max<std::size_t>(1, (std::size_t{1} << 20) / bytes);
            const std::size_t runs =
                std::clamp<std::size_t>((std::size_t{128} << 20) / (calls * bytes), 4, 40);
            double& known = best.try_emplace({static_cast<int>(operation), bytes, way}, 1e9).first->second;
            for (std::size_t run = 0; run < runs; ++run) {
                const double begin = now();
                for (std::size_t i = 0; i < calls; ++i) carry(operation, b);
                known = std::min(known, (now() - begin) / static_cast<double>(calls));
            }
            const float expected = operation == plan::Operation::all_gather
                                       ? 1.0F
                                       : static_cast<float>(g_ranks * (g_ranks + 1)) / 2.0F;
            if (b.out[0] != expected) {
                fmt::print(stderr, "{}: {} gives {} where {} is right\n", way,
                           traces::schema::name(operation), b.out[0], expected);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
}

void print(const Times& best, const std::vector<std::string>& ways, const std::vector<std::size_t>& sizes) {
    fmt::print("{:<15} {:>9}", "us", "KiB");
    for (const std::string& way : ways) fmt::print(" {:>13}", way);
    fmt::print("   MPI's best / ours\n");
    for (const plan::Operation operation : kOperations) {
        for (const std::size_t bytes : sizes) {
            const auto of = [&](const std::string& way) {
                return best.at({static_cast<int>(operation), bytes, way}) * 1e6;
            };
            fmt::print("{:<15} {:>9}", traces::schema::name(operation), bytes >> 10);
            for (const std::string& way : ways) fmt::print(" {:>13.1f}", of(way));
            const double theirs = std::min(of("MPI"), of("MPI by hand"));
            fmt::print("   {:>5.2f} mpi {:>5.2f} tcp {:>5.2f} gloo\n", theirs / of("mpi ordered"),
                       theirs / of("tcp ordered"), theirs / of("gloo ordered"));
        }
    }
}

int run(int rounds, std::size_t largest) {
    const auto module = MpiModule::open();
    g_rank = module->rank();
    g_ranks = module->ranks();
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 64 << 10; bytes <= largest; bytes *= 4) sizes.push_back(bytes);
    Times best;
    for (int round = 0; round < rounds; ++round) {
        // As long as a group exists, only its thread uses MPI.
        for (const Sums sums : {Sums::ordered, Sums::ring}) {
            const std::string name = sums == Sums::ordered ? "ordered" : "ring";
            {
                Ours ours(module->wire(), sums);
                measure("mpi " + name, std::ref(ours), sizes, best);
            }
            if (sums == Sums::ring) continue;
            {
                Ours ours(make_tcp_wire(peers_over_mpi()), sums);
                measure("tcp " + name, std::ref(ours), sizes, best);
            }
            Ours ours(make_gloo_wire(peers_over_mpi()), sums);
            measure("gloo " + name, std::ref(ours), sizes, best);
        }
        measure("MPI", by_mpi, sizes, best);
        measure("MPI by hand", by_hand, sizes, best);
    }
    if (g_rank == 0) {
        fmt::print("{}, {} processes, best of {} rounds\n", module->library(), g_ranks, rounds);
        print(best, {"mpi ordered", "mpi ring", "tcp ordered", "gloo ordered", "MPI", "MPI by hand"}, sizes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}

}  // namespace
}  // namespace shardscope::trainer::comm

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
    const int largest = argc > 2 ? std::max(1, std::atoi(argv[2])) : 64;
    try {
        return shardscope::trainer::comm::run(rounds, static_cast<std::size_t>(largest) << 20);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
