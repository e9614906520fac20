// Hands a rank its batches in the order of micro-steps, as PyTorch's DataLoader does: with 0 workers next()
// fills them itself; with more, threads prefetch into host memory and next() only copies, or waits. The
// batches do not depend on the number of workers, because a sample depends only on its number.
//
// Threads: made, used and destroyed by one thread at a time (the rank's host thread). Worker w of W fills the
// batches w, w + W, w + 2W … counted from the first; each has two buffers of its own, so that it fills one
// while the other waits to be taken. Nothing spins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "trainer/data/dataset.h"

namespace shardscope::trainer::data {

struct LoaderOptions {
    int ranks = 1;
    int rank = 0;
    int batch = 1;                      // samples per rank and micro-step
    int workers = 0;                    // data.workers
    std::int64_t first_micro_step = 0;  // where a resumed run continues
    // One past the last micro-step; nothing beyond it is prefetched. The default means that the end is
    // unknown.
    std::int64_t end_micro_step = std::numeric_limits<std::int64_t>::max();
    // Called on each worker's own thread before its first batch, concurrently with other workers.
    std::function<void(int worker)> on_worker_start;
};

class DataLoader {
  public:
    static constexpr int kBatchesPerWorker = 2;

    // `dataset` must outlive the loader. Throws DataError (data.workers) if threads or memory do not suffice.
    DataLoader(const Dataset& dataset, LoaderOptions options);

    // Stops the workers and waits for them: at most as long as filling one sample takes.
    ~DataLoader();
    DataLoader(const DataLoader&) = delete;
    DataLoader& operator=(const DataLoader&) = delete;

    // Copies the batch of the next micro-step: batch * input_bytes() and batch * target_bytes() bytes.
    // Rethrows what the dataset (or on_worker_start) threw, at the micro-step where it did, and again if
    // called again; the position then does not change. Throws std::out_of_range after the last.
    void next(void* input, void* target);

    // The micro-step that next() will return.
    std::int64_t micro_step() const { return micro_step_; }

  private:
    struct Lane;

    void stop();
    void work(int worker);
    void fill_directly(void* input, void* target);

    const Dataset& dataset_;
    const LoaderOptions options_;
    const std::size_t input_bytes_;   // of a batch
    const std::size_t target_bytes_;  // of a batch
    std::int64_t micro_step_;
    std::vector<std::unique_ptr<Lane>> lanes_;  // by worker
};

}  // namespace shardscope::trainer::data
