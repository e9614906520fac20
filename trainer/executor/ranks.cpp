#include "trainer/executor/ranks.h"

#include <chrono>
#include <exception>
#include <new>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "traces/store/machine.h"
#include "trainer/comm/process_group.h"
#include "trainer/executor/program_rows.h"

namespace shardscope::trainer::executor {

namespace {

void describe_rank(profiler::Recorder& recorder, const device::Device& device, const plan::Mesh& mesh,
                   int rank, std::int64_t global_tid, const Processes* processes) {
    traces::schema::RankRow row;
    row.rank = rank;
    row.device = rank;
    row.global_pid = traces::schema::global_pid(getpid());
    row.global_tid = global_tid;
    row.host = traces::store::host_name();
    set_place(mesh, rank, row);
    row.cpus = traces::store::processors_of_process();
    if (processes) row.local_rank = processes->world->place().local_rank;
    device.describe(row);
    recorder.describe(row);
    if (processes || rank == 0)
        recorder.describe(traces::schema::ProcessRow{row.global_pid, getpid(), "shardscope-train"});
}

Shared make_shared_state(device::Device& device, collective::Delays& delays, const sharding::Program& program,
                         const TestSettings& test) {
    Shared shared{device, delays, program.mesh(), program.job(), test.poison, {}, nullptr, nullptr, nullptr};
    for (const sharding::UnitInfo& unit : program.units()) shared.unit_names.push_back(unit.name);
    return shared;
}

std::vector<int> ranks_here(const plan::Mesh& mesh, const Processes* processes) {
    if (processes) return {processes->world->rank()};
    std::vector<int> all(static_cast<std::size_t>(mesh.ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

// Whether the processes of the job report this failure themselves, sooner or later.
bool told_by_the_job(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const collective::CollectiveError&) {
        return true;
    } catch (const world::WorldError&) {
        return true;
    } catch (...) {
        return false;
    }
}

std::string text_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
        return "not enough memory for this job";
    } catch (const std::exception& known) {
        return known.what();
    } catch (...) {
        return "an unknown failure";
    }
}

// The first clause of a reason that another rank reports in full.
std::string first_clause(const std::string& reason) {
    return reason.substr(0, reason.find("; "));
}

}  // namespace

Ranks::Ranks(const sharding::Program& program, RanksOptions options,
             const std::function<HostCalls(int rank)>& calls_of)
    : options_(std::move(options)),
      here_(ranks_here(program.mesh(), options_.processes)),
      recorder_(options_.recorder),
      delays_(options_.test.delay_seed),
      device_trace_(recorder_),
      device_((options_.make_device ? options_.make_device : MakeDevice(make_device))(
          {program, recorder_, options_.test, delays_, device_trace_, options_.processes, options_.live})),
      nvtx_(Nvtx::open(program, options_.more_plans)),
      shared_(make_shared_state(*device_, delays_, program, options_.test)),
      barrier_(static_cast<int>(here_.size())) {
    if (recorder_)
        shared_.instruments =
            &instruments_.emplace(*recorder_, program, device_->engine(), options_.more_plans);
    if (!trace_problem().empty()) {
        recorder_->describe(traces::schema::DiagnosticRow{
            recorder_->now_ns(), traces::schema::Severity::warning, trace_problem()});
    }
    shared_.nvtx = nvtx_.get();
    if (program.job().run.device == job::DeviceKind::cuda) shared_.live = options_.live;
    for (const int rank : here_) {
        runners_.push_back(std::make_unique<RankRunner>(rank, shared_, program.of(rank).product_workspaces(),
                                                        calls_of(rank)));
    }
    if (!options_.processes) return;
    options_.processes->world->on_failure(
        lifeline_.guard([](Ranks& own, const world::Failure& failure) { own.hear(failure); }));
}

Ranks::~Ranks() {
    lifeline_.cut();
    device_->stop();  // nothing uses the ranks' memory after this
    device_trace_.finish();
}

void Ranks::meet() {
    barrier_.arrive_and_wait();
    if (options_.processes) options_.processes->world->barrier();  // one rank per process
}

// Stops the ranks of this process, once. The job is told why before the device closes its connections, which
// is all that the other processes see of it.
void Ranks::fail(const std::exception_ptr& error) {
    {
        const std::lock_guard lock(error_mutex_);
        if (error_) return;
        error_ = error;
    }
    if (options_.processes && !told_by_the_job(error)) {
        world::World& world = *options_.processes->world;
        world.fail({world.rank(), ": " + text_of(error), false});
    }
    device_->fail(error);
    barrier_.fail();
    if (options_.on_failure) options_.on_failure();
}

// The collective in which this process's rank waits for a rank that is gone. If the rank is computing, it
// soon begins that collective.
std::string Ranks::waiting_after(const world::Failure& failure) {
    using Clock = std::chrono::steady_clock;
    const auto goes_on = [&] {
        const std::lock_guard lock(error_mutex_);
        return failure.lost && failure.rank != here_.front() && !error_;
    };
    std::string waiting = device_->waiting();
    for (const auto until = Clock::now() + std::chrono::milliseconds(250);
         waiting.empty() && goes_on() && Clock::now() < until; waiting = device_->waiting()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return waiting;
}

// Called on the World's thread: a process of the job, perhaps this one, has failed.
void Ranks::hear(const world::Failure& failure) {
    const std::string waiting = waiting_after(failure);
    {
        const std::lock_guard lock(error_mutex_);
        const bool own = failure.rank == here_.front();
        job_failure_ =
            failure.rank < 0 ? failure.reason
            : failure.reason.starts_with(":")
                ? fmt::format("rank {}{}", failure.rank, own ? failure.reason : first_clause(failure.reason))
                : fmt::format("rank {} {}", failure.rank, failure.reason);
        if (!waiting.empty() && !own) {
            job_failure_ += fmt::format("; rank {} waited in {}", here_.front(), waiting);
        }
    }
    if (recorder_) {
        recorder_->describe(traces::schema::StopRow{here_.front(), recorder_->now_ns(), failure.rank,
                                                    failure.lost, failure.reason, waiting});
    }
    heard_.notify_all();
    fail(std::make_exception_ptr(world::WorldFailure(failure)));
}

void Ranks::attach_host(int rank) {
    const std::string name = fmt::format("rank {} host", rank);
    if (nvtx_) nvtx_->name_thread(name);
    if (!recorder_) return;
    describe_rank(*recorder_, *device_, shared_.mesh, rank, traces::schema::global_tid(getpid(), gettid()),
                  options_.processes);
    recorder_->attach_thread(name, rank);
}

void Ranks::run(const std::function<void(int, RankRunner&)>& host) {
    std::vector<std::thread> hosts;
    try {
        for (const int rank : here_) {
            hosts.emplace_back([this, rank, &host] {
                try {
                    attach_host(rank);
                    host(rank, runner(rank));
                } catch (...) {
                    fail(std::current_exception());
                }
            });
        }
    } catch (...) {  // no more threads are available
        fail(std::current_exception());
    }
    for (std::thread& thread : hosts) thread.join();
    device_->stop();
    device_trace_.finish();
    std::exception_ptr error;
    {
        const std::lock_guard lock(error_mutex_);  // the World's thread may hear of a failure just now
        error = error_;
    }
    if (error) rethrow(error);
}

void Ranks::rethrow(const std::exception_ptr& error) {
    if (options_.processes && told_by_the_job(error)) {
        std::unique_lock lock(error_mutex_);
        heard_.wait_for(lock, std::chrono::seconds(5), [&] { return !job_failure_.empty(); });
        throw RunError(job_failure_.empty() ? text_of(error) : job_failure_);
    }
    try {
        std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
        throw OutOfMemory(
            "not enough memory for this job; make the model, the batch (data.batch) or run.ranks smaller");
    }
}

}  // namespace shardscope::trainer::executor
