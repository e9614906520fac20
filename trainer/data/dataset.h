// What a model is trained on: samples that are functions of (seed, sample number), so that any rank makes its
// own and the numbers do not depend on how many ranks there are. Filled from any number of threads at once.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace shardscope::trainer {

// The data cannot be used; one sentence that names what is at fault, where, and what to do.
class DataError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;

    // Reads "KEY: SENTENCE"; `key` is the job's ("section.key") that the person has to change.
    DataError(const std::string& key, const std::string& sentence)
        : std::runtime_error(key + ": " + sentence), key_(key) {}

    const std::string& key() const { return key_; }  // empty where no key of the job is at fault

  private:
    std::string key_;
};

class Dataset {
  public:
    virtual ~Dataset() = default;

    // Bytes of one sample's input and of its target.
    virtual std::int64_t input_bytes() const = 0;
    virtual std::int64_t target_bytes() const = 0;

    // How many different samples there are: what one epoch shows. 0: made up as needed, none comes twice.
    virtual std::int64_t samples() const = 0;

    // Samples first_sample … first_sample + count - 1, one after the other; the element type is the
    // dataset's. first_sample >= 0.
    virtual void fill(std::int64_t first_sample, int count, void* input, void* target) const = 0;
};

// The first sample of a rank's batch: in micro-step s, rank r of n takes rows s*n*b + r*b … of the stream of
// samples.
constexpr std::int64_t first_sample_of(std::int64_t step, int ranks, int rank, int batch) {
    return step * ranks * batch + static_cast<std::int64_t>(rank) * batch;
}

// How many batches of all ranks a dataset of known size gives without a sample twice; what is left over is
// not used. Throws DataError (data.validation) when it does not give one: the message says what would.
std::int64_t whole_batches(const Dataset& validation, int ranks, int batch);

}  // namespace shardscope::trainer
