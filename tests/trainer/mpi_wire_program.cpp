// The program of a rank under mpirun in test_mpi_wire.cpp: mpi_wire_program CHECK [CHUNK_BYTES [TAGS]]. Rank
// 0 prints "done" if all is correct; errors are printed on standard error, with exit status 1.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

#include <unistd.h>

#include "tests/trainer/wire_checks.h"
#include "trainer/comm/mpi_module.h"

using namespace shardscope::trainer;
using namespace shardscope::trainer::comm;
using namespace shardscope::trainer::testing;

namespace {

double cpu_seconds() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void require(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(what);
}

void check_wake(Wire& wire) {
    const auto begin = std::chrono::steady_clock::now();
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        wire.wake();
    });
    const bool moved = wire.progress(60'000'000);
    other.join();
    const auto waited = std::chrono::steady_clock::now() - begin;
    require(!moved && waited < std::chrono::seconds(20), "the wait did not end when it was told to");
    wire.wake();
    require(!wire.progress(60'000'000), "something moved");
    require(std::chrono::steady_clock::now() - begin < std::chrono::seconds(40),
            "the second wait did not end");
    meet(wire);
}

// A rank that waits leaves the core to other threads, whether a message is expected or not.
void check_gentle(Wire& wire) {
    for (const bool awaits : {false, true}) {
        Traffic traffic(wire);
        const int other = wire.rank() ^ 1;
        if (awaits && other < wire.ranks()) traffic.receive(other, 3, 0, 100);
        const double begin = cpu_seconds();
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
        while (std::chrono::steady_clock::now() < until) wire.progress(400'000);
        const double share = (cpu_seconds() - begin) / 0.4;
        require(share < 0.2, fmt::format("a wait uses {:.0f} % of a core", 100 * share));
        if (awaits && other < wire.ranks()) traffic.send(other, 3, 0, 100);
        traffic.finish();
        meet(wire);
    }
}

void check_all(Wire& wire) {
    require(std::string(wire.name()) == "mpi", "the name is another");
    check_order(wire, true);
    check_order(wire, false);
    check_tags(wire);
    check_overtaking(wire);
    check_soak(wire, 11, 6);
    check_wake(wire);
}

int run(const std::string& check, const MpiWireOptions& options) {
    const std::unique_ptr<MpiModule> module = MpiModule::open();
    const std::string text = module->broadcast(module->rank() == 0 ? "node a:4711" : "");
    require(text == "node a:4711", "the broadcast brought \"" + text + "\"");
    const std::unique_ptr<Wire> wire = module->wire(options);
    require(wire->rank() == module->rank() && wire->ranks() == module->ranks(), "the ranks are others");
    if (check == "all") check_all(*wire);
    if (check == "order") check_order(*wire, true);
    if (check == "gentle") check_gentle(*wire);
    if (check == "short") check_wrong_size(*wire, 10, 11);
    if (check == "long") check_wrong_size(*wire, 100'000, 10);
    if (check == "tag") {
        try {
            wire->send(wire->rank() ^ 1, 0xffffffffU, {});
            throw std::runtime_error("the tag was taken");
        } catch (const WireError& error) {
            if (wire->rank() == 0) std::printf("%s\n", error.what());
        }
    }
    if (check == "abandon") {  // a failed job, in which rank 1 is not finalized
        module->abandon();
        if (module->rank() == 1) std::_Exit(3);
        for (;;) wire->progress(100'000);  // until the launcher ends it
    }
    if (module->rank() == 0) std::printf("%s, %d ranks: done\n", module->library().c_str(), module->ranks());
    std::fflush(stdout);
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return 2;
    MpiWireOptions options;
    if (count > 2) options.chunk_bytes = std::strtoull(arguments[2], nullptr, 10);
    if (count > 3) options.tags = std::strtoull(arguments[3], nullptr, 10);
    try {
        return run(arguments[1], options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        std::fflush(nullptr);
        std::_Exit(1);  // without MPI_Finalize: the launcher then ends the others, too
    }
}
