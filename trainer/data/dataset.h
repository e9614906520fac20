// What a model is trained on: samples that are functions of (seed, sample number), so that any rank makes its
// own and the numbers do not depend on how many ranks there are. Any number of threads may call fill() at the
// same time.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace shardscope::trainer::data {

// Data that cannot be used; the message is one sentence that says what is wrong, where, and what to do.
class DataError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;

    // Reads "KEY: SENTENCE"; `key` is the key of the job ("section.key") that the user has to change.
    DataError(const std::string& key, const std::string& sentence)
        : std::runtime_error(key + ": " + sentence), key_(key) {}

    const std::string& key() const { return key_; }  // empty if no key of the job is at fault

  private:
    std::string key_;
};

class Dataset {
  public:
    virtual ~Dataset() = default;

    // Bytes of one sample's input and of its target.
    virtual std::int64_t input_bytes() const = 0;
    virtual std::int64_t target_bytes() const = 0;

    // The number of different samples, which is one epoch. 0: they are generated as needed and never repeat.
    virtual std::int64_t samples() const = 0;

    // Writes samples first_sample … first_sample + count - 1, one after the other, in the dataset's element
    // type. first_sample >= 0.
    virtual void fill(std::int64_t first_sample, int count, void* input, void* target) const = 0;
};

// The first sample of a rank's batch: in micro-step s, rank r of n takes rows s*n*b + r*b … of the stream of
// samples.
constexpr std::int64_t first_sample_of(std::int64_t step, int ranks, int rank, int batch) {
    return step * ranks * batch + static_cast<std::int64_t>(rank) * batch;
}

// How many batches of all ranks a dataset of known size gives without repeating a sample; the rest is not
// used. Throws DataError (data.batch) if there is not even one; the message says what to change.
std::int64_t whole_batches(const Dataset& validation, int ranks, int batch);

}  // namespace shardscope::trainer::data
