// Epochs of a run's data. One shows every sample once; a step may hold the end of an epoch and the beginning
// of the next (sampler.h), so that an epoch ends with the first step by whose end all its samples were used.
#pragma once

#include <cstdint>

#include "trainer/data/dataset.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::data {

// How far a run has come.
struct Position {
    std::int64_t steps = 0, samples = 0;
};

// The job with run.steps for train.epochs, if it counts epochs: the step in which the last sample of the last
// epoch is used. `start`: where the run begins, after a resume not at 0. Throws DataError with the place of
// the key: the data is made without end, the epochs are over, or there are more steps than a job may have.
job::Job with_steps(job::Job job, const Dataset& train, const Position& start);

// Whether it is time after a step: `before` and `after` it, of data with epochs of so many samples (0: it has
// none).
bool is_time(const job::Every& every, const Position& before, const Position& after, std::int64_t samples);

}  // namespace shardscope::trainer::data
