// How long a message between two processes of this machine takes: over each wire and over MPI itself, in one
// run in which they take turns. Not a test.
//
//   mpirun -np 2 --bind-to none build/bin/bench_wires [ROUNDS [WAY]]
//
// latency: half of a round trip. bandwidth: rank 0 sends a window of messages, rank 1 answers when all have
// arrived. Best and median of the rounds, with the processor time that both processes used per wall time
// (2.00: both poll all the time).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <mpi.h>

#include "trainer/comm/mpi_module.h"
#include "trainer/comm/tcp_wire.h"

using namespace shardscope::trainer;
using namespace shardscope::trainer::comm;

namespace {

using Bytes = std::vector<std::byte>;

double seconds_of(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// One way to carry messages between the two processes.
class Way {
  public:
    virtual ~Way() = default;
    virtual std::string name() const = 0;
    // Sends `count` messages of `bytes` each to the other; all are complete when it returns.
    virtual void send(const Bytes& data, std::size_t bytes, int count) = 0;
    virtual void receive(Bytes& data, std::size_t bytes, int count) = 0;
};

class WireWay : public Way {
  public:
    WireWay(std::string name, std::unique_ptr<Wire> wire) : name_(std::move(name)), wire_(std::move(wire)) {}
    std::string name() const override { return name_; }
    void send(const Bytes& data, std::size_t bytes, int count) override {
        const int other = 1 - wire_->rank();
        for (int i = 0; i < count; i++) tickets_.push_back(wire_->send(other, 1, {data.data(), bytes}));
        wait();
    }
    void receive(Bytes& data, std::size_t bytes, int count) override {
        const int other = 1 - wire_->rank();
        for (int i = 0; i < count; i++) tickets_.push_back(wire_->receive(other, 1, {data.data(), bytes}));
        wait();
    }

  private:
    void wait() {
        for (;;) {
            std::erase_if(tickets_, [&](Wire::Ticket ticket) { return wire_->done(ticket); });
            if (tickets_.empty()) return;
            wire_->progress(1'000'000);
        }
    }
    std::string name_;
    std::unique_ptr<Wire> wire_;
    std::vector<Wire::Ticket> tickets_;
};

class RawWay : public Way {
  public:
    explicit RawWay(int rank) : other_(1 - rank) {}
    std::string name() const override { return "MPI_Send/Recv"; }
    void send(const Bytes& data, std::size_t bytes, int count) override {
        for (int i = 0; i < count; i++) {
            MPI_Send(data.data(), static_cast<int>(bytes), MPI_BYTE, other_, 1, MPI_COMM_WORLD);
        }
    }
    void receive(Bytes& data, std::size_t bytes, int count) override {
        for (int i = 0; i < count; i++) {
            MPI_Recv(data.data(), static_cast<int>(bytes), MPI_BYTE, other_, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
    }

  private:
    int other_;
};

struct Figure {
    std::vector<double> seconds, cores;
    static double middle(std::vector<double> values) {
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
    }
    double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

WirePeers peers_of(MpiModule& module) {
    WirePeers peers;
    peers.rank = module.rank();
    peers.ranks = module.ranks();
    peers.broadcast = [&](const std::string& mine) { return module.broadcast(mine); };
    peers.gather = [rank = module.rank()](const std::string& mine) {
        std::vector<std::string> all(2, std::string(1024, ' '));
        std::string padded = mine;
        padded.resize(1024, ' ');
        all[static_cast<std::size_t>(rank)] = padded;
        for (int from = 0; from < 2; from++) {
            MPI_Bcast(all[static_cast<std::size_t>(from)].data(), 1024, MPI_CHAR, from, MPI_COMM_WORLD);
        }
        return all;
    };
    return peers;
}

TcpWireOptions options(bool local_sockets, bool direct_reads) {
    TcpWireOptions options;
    options.local_sockets = local_sockets;
    options.direct_reads = direct_reads;
    return options;
}

// Seconds for one message each way (`windows` of them, of `window` messages, answered by an empty one).
void measure(Way& way, int rank, std::size_t bytes, int window, int windows, bool answer_whole,
             Figure& figure) {
    Bytes out(bytes), in(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double wall = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    const std::size_t answer = answer_whole ? bytes : 1;
    for (int i = 0; i < windows; i++) {
        if (rank == 0) {
            way.send(out, bytes, window);
            way.receive(in, answer, 1);
        } else {
            way.receive(in, bytes, window);
            way.send(out, answer, 1);
        }
    }
    const double took = seconds_of(CLOCK_MONOTONIC) - wall;
    double used = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu, both = 0;
    MPI_Allreduce(&used, &both, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    figure.seconds.push_back(took / windows);
    figure.cores.push_back(both / took);
}

}  // namespace

int main(int count, char** arguments) try {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 7;
    const std::unique_ptr<MpiModule> module = MpiModule::open();
    if (module->ranks() != 2) {
        std::fprintf(stderr, "bench_wires needs two processes: mpirun -np 2 bench_wires\n");
        return 2;
    }
    const int rank = module->rank();
    std::vector<std::unique_ptr<Way>> ways;
    ways.push_back(std::make_unique<RawWay>(rank));
    ways.push_back(std::make_unique<WireWay>("mpi", module->wire()));
    const WirePeers peers = peers_of(*module);
    ways.push_back(std::make_unique<WireWay>("tcp", make_tcp_wire(peers)));
    ways.push_back(std::make_unique<WireWay>("tcp, copies", make_tcp_wire(peers, options(true, false))));
    ways.push_back(std::make_unique<WireWay>("tcp, network", make_tcp_wire(peers, options(false, false))));

    if (count > 2) {
        std::erase_if(ways, [&](const auto& way) { return way->name() != arguments[2]; });
    }

    if (rank == 0) std::printf("%s; latency in us (best, median; cores used)\n", module->library().c_str());
    const auto table = [&](const std::vector<std::size_t>& sizes, bool bandwidth) {
        for (const std::size_t bytes : sizes) {
            std::vector<Figure> figures(ways.size());
            const int window = bandwidth ? 4 : 1;
            const auto per_round = std::size_t{bandwidth ? 64U << 20 : 8U << 20};
            const int windows = static_cast<int>(
                std::clamp<std::size_t>(per_round / bytes / static_cast<std::size_t>(window), 2, 2000));
            for (int round = 0; round < rounds; round++) {
                for (std::size_t w = 0; w < ways.size(); w++) {
                    measure(*ways[w], rank, bytes, window, windows, !bandwidth, figures[w]);
                }
            }
            if (rank != 0) continue;
            std::printf("%10zu", bytes);
            for (std::size_t w = 0; w < ways.size(); w++) {
                const Figure& figure = figures[w];
                const double cores = Figure::middle(figure.cores), median = Figure::middle(figure.seconds);
                if (bandwidth) {
                    const double all = static_cast<double>(bytes) * window * 1e-9;
                    std::printf("  %s %.2f, %.2f (%.1f)", ways[w]->name().c_str(), all / figure.best(),
                                all / median, cores);
                } else {
                    std::printf("  %s %.1f, %.1f (%.1f)", ways[w]->name().c_str(), 0.5e6 * figure.best(),
                                0.5e6 * median, cores);
                }
            }
            std::printf("\n");
            std::fflush(stdout);
        }
    };
    table({8, 1024, 32 << 10, 64 << 10, 256 << 10, 1 << 20}, false);
    if (rank == 0) std::printf("bandwidth in GB/s (best, median; cores used), windows of 4 messages\n");
    table({64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}, true);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
