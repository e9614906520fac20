// Trains the jobs of the parity grid on ranks that are processes, all in one session: starting processes
// takes longer than these jobs do. Rank 0 writes the losses, with every bit, one job per line.
//
//   parity_program gloo|tcp|mpi PROCESSES CHOICE LOSSES             starts its processes itself
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/tools/train/process_grid.h"
#include "tests/trainer/jobs.h"
#include "trainer/cli/join.h"
#include "trainer/cli/launch.h"

namespace shardscope::trainer {
namespace {

struct Request {
    job::CommKind comm;
    int processes;
    std::string choice, losses;
};

constexpr double kTimeoutSeconds = 100;  // machines are shared

job::Job job_of(const Request& request, const testing::Point& point, const testing::SampleText& text) {
    job::Job job = testing::job_called(request.choice, point, text);
    job.run.processes = request.processes;
    job.run.comm = request.comm;
    job.run.timeout = kTimeoutSeconds;
    if (request.choice == "ring") job.run.sums = job::SumOrder::ring;
    return job;
}

void write(std::FILE* file, const std::vector<double>& losses) {
    for (const double loss : losses) std::fprintf(file, "%a ", loss);
    std::fprintf(file, "\n");
}

int run(const Request& request, const world::Place& place) {
    const testing::SampleText text;
    const std::vector<testing::Point> points = testing::points_called(request.choice, request.processes);
    const job::Job first = job_of(request, points.at(0), text);
    cli::Joined joined(place, &first);
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> file;
    if (place.rank == 0) file.reset(std::fopen(request.losses.c_str(), "w"));
    for (const testing::Point& point : points) {
        executor::RunOptions options;
        options.processes = &joined.processes();
        const std::vector<double> losses = testing::run(job_of(request, point, text), options).losses;
        if (file) write(file.get(), losses);
        joined.world().barrier();  // no rank starts the next job before all have left this one
    }
    return 0;
}

int run(const std::vector<std::string>& words) {
    const std::string& comm = words.at(0);
    const Request request{comm == "mpi"    ? job::CommKind::mpi
                          : comm == "gloo" ? job::CommKind::gloo
                                           : job::CommKind::tcp,
                          std::atoi(words.at(1).c_str()), words.at(2), words.at(3)};
    const std::optional<world::Place> place =
        world::place_from_environment([](const char* name) { return std::getenv(name); });
    if (place) return run(request, *place);
    job::Job job;
    job.run.processes = request.processes;
    job.run.comm = request.comm;
    return cli::launch(words, job);
}

}  // namespace
}  // namespace shardscope::trainer

int main(int count, char** words) {
    try {
        return shardscope::trainer::run({words + 1, words + count});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
