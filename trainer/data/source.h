// Makes datasets from a job's [data] settings: finds and maps the text, trains its vocabulary if requested,
// and divides its tokens into a training part and held-out parts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/data/dataset.h"
#include "trainer/data/text.h"
#include "trainer/data/tokenizer.h"

namespace shardscope::trainer::job {
struct Job;
}

namespace shardscope::trainer::data {

struct TextSettings {
    std::string path;       // data.path: a file, or a folder of files
    std::int64_t seed = 1;  // run.seed
    int context = 128;      // model.context: tokens of a sample
    int vocabulary = 0;     // model.vocabulary: 0 bytes, else the entries of a vocabulary to train (> 256)
    double validation = 0;  // data.validation: the share of the tokens held out at the end, 0 … 0.5
    double test = 0;        // data.test: the share after that
    // The tokenizer of a checkpoint, used instead of training one. `vocabulary` is then ignored.
    std::shared_ptr<const Tokenizer> tokenizer;
};

struct TextSource {
    std::shared_ptr<const Tokenizer> tokenizer;
    std::unique_ptr<TextDataset> train;             // shuffled, without end
    std::unique_ptr<TextDataset> validation, test;  // in order; null if nothing is held out
};

// The last round(test * tokens) tokens are held out to test on, the round(validation * tokens) before them to
// validate on. The vocabulary is trained on the whole text.
// Throws DataError with the key at fault: no text, not readable, too short for a window of context + 1 tokens
// in either part, a vocabulary larger than the text allows, or not enough memory for the tokens.
TextSource open_text(const TextSettings& settings);

struct DataSource {
    std::shared_ptr<const Tokenizer> tokenizer;  // null for synthetic data
    std::unique_ptr<Dataset> train;
    std::unique_ptr<Dataset> validation, test;  // null if nothing is held out
};

// Opens the data that the job names. `tokenizer` as in TextSettings. Throws DataError as above, with the file
// and line of the key before the message.
DataSource open_data(const job::Job& job, std::shared_ptr<const Tokenizer> tokenizer = nullptr);

}  // namespace shardscope::trainer::data
