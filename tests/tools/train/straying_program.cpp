// shardscope-train on ranks that are processes, one of which misbehaves: as if its program differed from the
// others', or hung.
//
//   straying_program HOW RANK NUMBER JOB.toml --section.key=value ...
//
// HOW the rank misbehaves: "skip": it skips collective NUMBER of communicator 0, and its next collective
// takes the number. "sleep": its host sleeps where it should begin its NUMBER-th collective. "stall": the
// thread that runs its collectives stops at the first data to send after NUMBER messages.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/cli/join.h"
#include "trainer/cli/launch.h"
#include "trainer/cli/train.h"
#include "trainer/comm/call_header.h"
#include "trainer/executor/devices.h"
#include "trainer/executor/processes.h"

namespace shardscope::trainer {
namespace {

[[noreturn]] void sleep_for_ever() {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Wraps a device and behaves like it except for one collective.
class StrayingDevice final : public device::Device {
  public:
    StrayingDevice(std::unique_ptr<device::Device> device, bool sleeps, std::int64_t number)
        : device_(std::move(device)), sleeps_(sleeps), number_(number) {}

    device::StreamEvent enqueue(device::StreamIndex stream, const device::Waits& waits,
                                const device::CollectiveLaunch& collective) override {
        if (sleeps_) {
            if (begun_++ == number_) sleep_for_ever();
            return device_->enqueue(stream, waits, collective);
        }
        if (collective.communicator != plan::CommunicatorId::world || collective.sequence < number_)
            return device_->enqueue(stream, waits, collective);
        if (collective.sequence == number_) return device_->mark(stream, waits);
        device::CollectiveLaunch earlier = collective;
        --earlier.sequence;
        return device_->enqueue(stream, waits, earlier);
    }

    device::StreamIndex add_stream(int rank, plan::Stream use) override {
        return device_->add_stream(rank, use);
    }
    device::StreamEvent enqueue(device::StreamIndex stream, const device::Waits& waits,
                                const device::Launch& launch) override {
        return device_->enqueue(stream, waits, launch);
    }
    device::StreamEvent mark(device::StreamIndex stream, const device::Waits& waits) override {
        return device_->mark(stream, waits);
    }
    device::StreamEvent poison(device::StreamIndex stream, const device::Waits& waits, std::byte* data,
                               std::int64_t bytes) override {
        return device_->poison(stream, waits, data, bytes);
    }
    void hold(device::StreamEvent event) override { device_->hold(event); }
    bool happened(device::StreamEvent event) override { return device_->happened(event); }
    void wait(device::StreamEvent event) override { device_->wait(event); }
    std::byte* take(int rank, plan::MemorySpace space, std::int64_t bytes, bool poisoned) override {
        return device_->take(rank, space, bytes, poisoned);
    }
    void give_back(int rank, plan::MemorySpace space, std::byte* data) noexcept override {
        device_->give_back(rank, space, data);
    }
    bool host_reads(plan::MemorySpace space) const override { return device_->host_reads(space); }
    void copy(int rank, std::byte* to, const std::byte* from, std::int64_t bytes) override {
        device_->copy(rank, to, from, bytes);
    }
    void use_product_workspaces(int rank, std::byte* both, std::int64_t bytes) override {
        device_->use_product_workspaces(rank, both, bytes);
    }
    void describe(traces::schema::RankRow& row) const override { device_->describe(row); }
    const char* engine() const override { return device_->engine(); }
    bool records_collectives() const override { return device_->records_collectives(); }
    bool announces_collectives() const override { return device_->announces_collectives(); }
    std::int64_t bytes_in_use(int rank) override { return device_->bytes_in_use(rank); }
    std::string out_of_memory_place(int rank, plan::MemorySpace space) override {
        return device_->out_of_memory_place(rank, space);
    }
    std::string waiting() override { return device_->waiting(); }
    void fail(std::exception_ptr error) override { device_->fail(std::move(error)); }
    void stop() override { device_->stop(); }

  private:
    std::unique_ptr<device::Device> device_;
    bool sleeps_;
    std::int64_t number_, begun_ = 0;
};

// Wraps a wire and behaves like it until it stops.
class StallingWire final : public comm::Wire {
  public:
    StallingWire(std::unique_ptr<comm::Wire> wire, std::int64_t number)
        : wire_(std::move(wire)), number_(number) {}

    int rank() const override { return wire_->rank(); }
    int ranks() const override { return wire_->ranks(); }
    const char* name() const override { return wire_->name(); }
    Ticket send(int to, std::uint32_t tag, std::span<const std::byte> data) override {
        const bool header = data.size() == sizeof(comm::CallHeader);
        if (sent_++ >= number_ && !header) sleep_for_ever();
        return wire_->send(to, tag, data);
    }
    Ticket receive(int from, std::uint32_t tag, std::span<std::byte> data) override {
        return wire_->receive(from, tag, data);
    }
    bool moves_in_progress() const override { return wire_->moves_in_progress(); }
    bool progress(int wait_us) override { return wire_->progress(wait_us); }
    bool done(Ticket ticket) override { return wire_->done(ticket); }
    void wake() override { wire_->wake(); }
    void abandon() override { wire_->abandon(); }

  private:
    std::unique_ptr<comm::Wire> wire_;
    std::int64_t number_, sent_ = 0;
};

// The device of the job for a rank that misbehaves.
std::unique_ptr<device::Device> make_straying(const std::string& how, std::int64_t number,
                                              const executor::DeviceRequest& request) {
    if (how != "stall") return std::make_unique<StrayingDevice>(make_device(request), how == "sleep", number);
    executor::Processes processes = *request.processes;
    processes.open_wire = [&, open_wire = processes.open_wire] {
        return std::make_unique<StallingWire>(open_wire(), number);
    };
    executor::DeviceRequest stalling = request;
    stalling.processes = &processes;
    return make_device(stalling);
}

int run(const std::vector<std::string>& words) {
    const std::string how = words.at(0);
    const int rank = std::atoi(words.at(1).c_str());
    const std::int64_t number = std::atoll(words.at(2).c_str());
    std::vector<std::string> settings(words.begin() + 4, words.end());
    const std::optional<world::Place> place =
        world::place_from_environment([](const char* name) { return std::getenv(name); });
    job::Launched launched;
    if (place) launched = {place->ranks, place->local_ranks, name(place->launcher)};
    const job::Job job = load_job(words.at(3), job::take_overrides(settings), launched);
    if (!place) return cli::launch(words, job);
    cli::Joined joined(*place, &job);
    cli::TrainOptions options;
    options.joined = &joined;
    if (place->rank == rank) {
        options.make_device = [&](const executor::DeviceRequest& request) {
            return make_straying(how, number, request);
        };
    }
    return train(job, options);
}

}  // namespace
}  // namespace shardscope::trainer

int main(int count, char** words) {
    try {
        return shardscope::trainer::run({words + 1, words + count});
    } catch (const shardscope::trainer::cli::FailureReported&) {
        return 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "straying_program: %s\n", error.what());
        return 1;
    }
}
