#include "trainer/executor/ranks.h"

#include <chrono>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "trainer/executor/cpu_executor.h"
#include "trainer/executor/processor.h"
#include "trainer/kernels/blas.h"

namespace shardscope::trainer {

namespace {

void describe_rank(profiler::Recorder& recorder, const Mesh& mesh, int rank, std::int64_t global_tid) {
    traces::RankRow row;
    row.rank = rank;
    row.device = rank;
    row.global_pid = traces::global_pid(getpid());
    row.global_tid = global_tid;
    row.host = host_name();
    row.device_name = processor_name();
    row.device_memory = physical_memory();
    row.data = mesh.replica(rank);
    row.shard = mesh.shard_index(rank);
    recorder.describe(row);
}

Shared make_shared_state(Scheduler& scheduler, LocalGroups& groups, Delays& delays, const Program& program,
                         const TestSettings& test, Instruments* instruments) {
    Shared shared{scheduler, groups, delays, program.mesh(), program.job(), test.poison, {}, instruments, {}};
    for (const UnitInfo& unit : program.units()) shared.unit_names.push_back(unit.name);
    return shared;
}

}  // namespace

Ranks::Ranks(const Program& program, profiler::Recorder* recorder, const TestSettings& test,
             const std::function<HostCalls(int rank)>& calls_of)
    : recorder_(recorder),
      worker_logs_(static_cast<std::size_t>(worker_count(program.job())), nullptr),
      workers_ready_(worker_count(program.job())),
      scheduler_(worker_count(program.job()),
                 [this](int worker) {
                     if (recorder_) {
                         worker_logs_[static_cast<std::size_t>(worker)] =
                             recorder_->attach_thread(fmt::format("worker {}", worker), -1);
                     }
                     workers_ready_.count_down();
                 }),
      delays_(test.delay_seed),
      groups_(program.mesh(), std::chrono::microseconds(test.transfer_delay_us), &delays_),
      shared_(make_shared_state(scheduler_, groups_, delays_, program, test, nullptr)),
      barrier_(program.mesh().ranks) {
    kernels::Blas::get().set_threads(program.job().run.blas_threads);
    if (recorder_) shared_.instruments = &instruments_.emplace(*recorder_, program);
    workers_ready_.wait();
    shared_.worker_logs = worker_logs_;
    for (int rank = 0; rank < program.mesh().ranks; ++rank) {
        runners_.push_back(std::make_unique<RankRunner>(rank, shared_, calls_of(rank)));
    }
}

Ranks::~Ranks() {
    scheduler_.stop();  // nothing uses the ranks' memory after this
}

void Ranks::give_up(std::exception_ptr error) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::move(error);
    scheduler_.fail(error_);
    barrier_.fail();
}

profiler::ThreadLog* Ranks::attach_host(int rank) {
    if (!recorder_) return nullptr;
    describe_rank(*recorder_, shared_.mesh, rank, traces::global_tid(getpid(), gettid()));
    return recorder_->attach_thread(fmt::format("rank {} host", rank), rank);
}

void Ranks::run(const std::function<void(int, RankRunner&, profiler::ThreadLog*)>& host) {
    std::vector<std::thread> hosts;
    try {
        for (int rank = 0; rank < shared_.mesh.ranks; ++rank) {
            hosts.emplace_back([this, rank, &host] {
                try {
                    host(rank, runner(rank), attach_host(rank));
                } catch (...) {
                    give_up(std::current_exception());
                }
            });
        }
    } catch (...) {  // no more threads to be had
        give_up(std::current_exception());
    }
    for (std::thread& thread : hosts) thread.join();
    scheduler_.stop();
    if (!error_) return;
    try {
        std::rethrow_exception(error_);
    } catch (const std::bad_alloc&) {
        throw OutOfMemory(
            "not enough memory for this job; make the model, the batch (data.batch) or run.ranks smaller");
    }
}

}  // namespace shardscope::trainer
