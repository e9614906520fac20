// shardscope-train on ranks that are processes, one of which leaves out a collective: as if its program were
// another one than the others'.
//
//   skipping_program RANK NUMBER JOB.toml --section.key=value ...
//
// The rank does not take part in collective NUMBER of communicator 0, and what comes later takes its number.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/cli/join.h"
#include "trainer/cli/launch.h"
#include "trainer/cli/train.h"
#include "trainer/executor/devices.h"

namespace shardscope::trainer {
namespace {

// A device that is another one but for one collective.
class SkippingDevice final : public Device {
  public:
    SkippingDevice(std::unique_ptr<Device> device, std::int64_t number)
        : device_(std::move(device)), number_(number) {}

    StreamEvent enqueue(StreamIndex stream, const Waits& waits, const CollectiveLaunch& collective) override {
        if (collective.communicator != 0 || collective.sequence < number_)
            return device_->enqueue(stream, waits, collective);
        if (collective.sequence == number_) return device_->mark(stream, waits);
        CollectiveLaunch earlier = collective;
        --earlier.sequence;
        return device_->enqueue(stream, waits, earlier);
    }

    StreamIndex add_stream(int rank, Stream use) override { return device_->add_stream(rank, use); }
    StreamEvent enqueue(StreamIndex stream, const Waits& waits, const Launch& launch) override {
        return device_->enqueue(stream, waits, launch);
    }
    StreamEvent mark(StreamIndex stream, const Waits& waits) override { return device_->mark(stream, waits); }
    StreamEvent poison(StreamIndex stream, const Waits& waits, std::byte* data, std::int64_t bytes) override {
        return device_->poison(stream, waits, data, bytes);
    }
    void hold(StreamEvent event) override { device_->hold(event); }
    bool happened(StreamEvent event) override { return device_->happened(event); }
    void wait(StreamEvent event) override { device_->wait(event); }
    std::byte* take(int rank, MemorySpace space, std::int64_t bytes, bool poisoned) override {
        return device_->take(rank, space, bytes, poisoned);
    }
    void give_back(int rank, MemorySpace space, std::byte* data) noexcept override {
        device_->give_back(rank, space, data);
    }
    bool host_reads(MemorySpace space) const override { return device_->host_reads(space); }
    void copy(int rank, std::byte* to, const std::byte* from, std::int64_t bytes) override {
        device_->copy(rank, to, from, bytes);
    }
    void use_product_workspaces(int rank, std::byte* both, std::int64_t bytes) override {
        device_->use_product_workspaces(rank, both, bytes);
    }
    void describe(traces::RankRow& row) const override { device_->describe(row); }
    const char* engine() const override { return device_->engine(); }
    bool records_collectives() const override { return device_->records_collectives(); }
    bool announces_collectives() const override { return device_->announces_collectives(); }
    std::int64_t bytes_in_use(int rank) override { return device_->bytes_in_use(rank); }
    std::string out_of_memory_place(int rank, MemorySpace space) override {
        return device_->out_of_memory_place(rank, space);
    }
    std::string waiting() override { return device_->waiting(); }
    void fail(std::exception_ptr error) override { device_->fail(std::move(error)); }
    void stop() override { device_->stop(); }

  private:
    std::unique_ptr<Device> device_;
    std::int64_t number_;
};

int run(const std::vector<std::string>& words) {
    const int rank = std::atoi(words.at(0).c_str());
    const std::int64_t number = std::atoll(words.at(1).c_str());
    std::vector<std::string> settings(words.begin() + 3, words.end());
    const std::optional<Place> place =
        place_from_environment([](const char* name) { return std::getenv(name); });
    Launched launched;
    if (place) launched = {place->ranks, place->local_ranks, name(place->launcher)};
    const Job job = load_job(words.at(2), take_overrides(settings), launched);
    if (!place) return launch(words, job);
    Joined joined(*place, &job);
    TrainOptions options;
    options.joined = &joined;
    if (place->rank == rank) {
        options.make_device = [number](const DeviceRequest& request) {
            return std::make_unique<SkippingDevice>(make_device(request), number);
        };
    }
    return train(job, options);
}

}  // namespace
}  // namespace shardscope::trainer

int main(int count, char** words) {
    try {
        return shardscope::trainer::run({words + 1, words + count});
    } catch (const shardscope::trainer::FailureTold&) {
        return 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "skipping_program: %s\n", error.what());
        return 1;
    }
}
