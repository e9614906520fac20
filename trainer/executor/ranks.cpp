#include "trainer/executor/ranks.h"

#include <exception>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "trainer/executor/processor.h"

namespace shardscope::trainer {

namespace {

void describe_rank(profiler::Recorder& recorder, const Device& device, const Mesh& mesh, int rank,
                   std::int64_t global_tid) {
    traces::RankRow row;
    row.rank = rank;
    row.device = rank;
    row.global_pid = traces::global_pid(getpid());
    row.global_tid = global_tid;
    row.host = host_name();
    row.data = mesh.replica(rank);
    row.shard = mesh.shard_index(rank);
    device.describe(row);
    recorder.describe(row);
}

Shared make_shared_state(Device& device, Delays& delays, const Program& program, const TestSettings& test) {
    Shared shared{device, delays,  program.mesh(), program.job(), test.poison, program.product_workspaces(),
                  {},     nullptr, nullptr};
    for (const UnitInfo& unit : program.units()) shared.unit_names.push_back(unit.name);
    return shared;
}

}  // namespace

Ranks::Ranks(const Program& program, profiler::Recorder* recorder, const TestSettings& test,
             const std::function<HostCalls(int rank)>& calls_of, const MakeDevice& make)
    : recorder_(recorder),
      delays_(test.delay_seed),
      device_trace_(recorder),
      device_((make ? make : MakeDevice(make_device))({program, recorder, test, delays_, device_trace_})),
      nvtx_(Nvtx::open(program)),
      shared_(make_shared_state(*device_, delays_, program, test)),
      barrier_(program.mesh().ranks) {
    if (recorder_) shared_.instruments = &instruments_.emplace(*recorder_, program);
    if (!trace_problem().empty()) {
        recorder_->describe(
            traces::DiagnosticRow{recorder_->now_ns(), traces::Severity::warning, trace_problem()});
    }
    shared_.nvtx = nvtx_.get();
    for (int rank = 0; rank < program.mesh().ranks; ++rank) {
        runners_.push_back(std::make_unique<RankRunner>(rank, shared_, calls_of(rank)));
    }
}

Ranks::~Ranks() {
    device_->stop();  // nothing uses the ranks' memory after this
    device_trace_.finish();
}

void Ranks::give_up(std::exception_ptr error) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::move(error);
    device_->fail(error_);
    barrier_.fail();
}

profiler::ThreadLog* Ranks::attach_host(int rank) {
    const std::string name = fmt::format("rank {} host", rank);
    if (nvtx_) nvtx_->name_thread(name);
    if (!recorder_) return nullptr;
    describe_rank(*recorder_, *device_, shared_.mesh, rank, traces::global_tid(getpid(), gettid()));
    return recorder_->attach_thread(name, rank);
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
    device_->stop();
    device_trace_.finish();
    if (!error_) return;
    try {
        std::rethrow_exception(error_);
    } catch (const std::bad_alloc&) {
        throw OutOfMemory(
            "not enough memory for this job; make the model, the batch (data.batch) or run.ranks smaller");
    }
}

}  // namespace shardscope::trainer
