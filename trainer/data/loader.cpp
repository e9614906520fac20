// The workers and their slots, shared with the rank's thread; see loader.h.
#include "trainer/data/loader.h"

#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/core.h>

namespace shardscope::trainer::data {

// One worker. A slot belongs to the worker until it is counted as filled, then to next() until it is counted
// as taken; only the owner touches its bytes, outside of the lock.
struct DataLoader::Lane {
    struct Slot {
        std::vector<std::byte> input, target;
    };
    std::array<Slot, kBatchesPerWorker> slots;

    std::mutex mutex;
    std::condition_variable changed;  // one side waits when full, the other when empty, never both
    std::int64_t filled = 0;          // batches since the start
    std::int64_t taken = 0;
    bool stopping = false;
    std::exception_ptr error;  // the error that ended the worker after `filled` batches

    std::thread thread;

    Slot& slot(std::int64_t batch) { return slots[static_cast<std::size_t>(batch % kBatchesPerWorker)]; }

    bool is_stopping() {
        const std::lock_guard lock(mutex);
        return stopping;
    }
};

DataLoader::DataLoader(const Dataset& dataset, LoaderOptions options)
    : dataset_(dataset),
      options_(std::move(options)),
      input_bytes_(static_cast<std::size_t>(dataset.input_bytes() * options_.batch)),
      target_bytes_(static_cast<std::size_t>(dataset.target_bytes() * options_.batch)),
      micro_step_(options_.first_micro_step) {
    try {
        for (int worker = 0; worker < options_.workers; ++worker) {
            lanes_.push_back(std::make_unique<Lane>());
            for (Lane::Slot& slot : lanes_.back()->slots) {
                slot.input.resize(input_bytes_);
                slot.target.resize(target_bytes_);
            }
        }
        for (int worker = 0; worker < options_.workers; ++worker) {
            lanes_[static_cast<std::size_t>(worker)]->thread = std::thread([this, worker] { work(worker); });
        }
    } catch (const std::bad_alloc&) {
        stop();
        throw DataError("data.workers", fmt::format("{} workers with {} batches each do not fit into memory; "
                                                    "lower data.workers or data.batch",
                                                    options_.workers, kBatchesPerWorker));
    } catch (const std::system_error& error) {
        stop();
        throw DataError("data.workers", fmt::format("{} threads cannot be started: {}; lower data.workers",
                                                    options_.workers, error.code().message()));
    }
}

DataLoader::~DataLoader() {
    stop();
}

void DataLoader::stop() {
    for (const auto& lane : lanes_) {
        const std::lock_guard lock(lane->mutex);
        lane->stopping = true;
        lane->changed.notify_one();
    }
    for (const auto& lane : lanes_) {
        if (lane->thread.joinable()) lane->thread.join();
    }
}

void DataLoader::work(int worker) {
    Lane& lane = *lanes_[static_cast<std::size_t>(worker)];
    try {
        if (options_.on_worker_start) options_.on_worker_start(worker);
        std::int64_t step = options_.first_micro_step + worker;
        for (std::int64_t batch = 0; step < options_.end_micro_step; ++batch, step += options_.workers) {
            {
                std::unique_lock lock(lane.mutex);
                lane.changed.wait(lock,
                                  [&] { return lane.stopping || batch - lane.taken < kBatchesPerWorker; });
                if (lane.stopping) return;
            }
            // Filled sample by sample, so that a stop need not wait for a large batch.
            Lane::Slot& slot = lane.slot(batch);
            const std::int64_t first = first_sample_of(step, options_.ranks, options_.rank, options_.batch);
            for (int i = 0; i < options_.batch; ++i) {
                if (lane.is_stopping()) return;
                dataset_.fill(first + i, 1, slot.input.data() + i * dataset_.input_bytes(),
                              slot.target.data() + i * dataset_.target_bytes());
            }
            const std::lock_guard lock(lane.mutex);
            lane.filled = batch + 1;
            lane.changed.notify_one();
        }
    } catch (...) {
        const std::lock_guard lock(lane.mutex);
        lane.error = std::current_exception();
        lane.changed.notify_one();
    }
}

void DataLoader::next(void* input, void* target) {
    if (micro_step_ >= options_.end_micro_step) {
        throw std::out_of_range(fmt::format("the loader ends before micro-step {}", micro_step_));
    }
    if (lanes_.empty()) {
        fill_directly(input, target);
    } else {
        const std::int64_t since_start = micro_step_ - options_.first_micro_step;
        Lane& lane = *lanes_[static_cast<std::size_t>(since_start % options_.workers)];
        const std::int64_t batch = since_start / options_.workers;
        {
            std::unique_lock lock(lane.mutex);
            lane.changed.wait(lock, [&] { return lane.filled > batch || lane.error; });
            if (lane.filled <= batch) std::rethrow_exception(lane.error);
        }
        const Lane::Slot& slot = lane.slot(batch);
        std::memcpy(input, slot.input.data(), input_bytes_);
        std::memcpy(target, slot.target.data(), target_bytes_);
        const std::lock_guard lock(lane.mutex);
        lane.taken = batch + 1;
        lane.changed.notify_one();
    }
    ++micro_step_;
}

void DataLoader::fill_directly(void* input, void* target) {
    dataset_.fill(first_sample_of(micro_step_, options_.ranks, options_.rank, options_.batch), options_.batch,
                  input, target);
}

}  // namespace shardscope::trainer::data
