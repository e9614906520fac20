// From what a job says about its data to datasets: the text is found and mapped, its vocabulary trained if
// one is asked for, its tokens divided into what is trained on and what is held out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/data/dataset.h"
#include "trainer/data/text.h"
#include "trainer/data/tokenizer.h"

namespace shardscope::trainer {

struct Job;

struct TextSettings {
    std::string path;       // data.path: a file, or a folder of files
    std::int64_t seed = 1;  // run.seed
    int context = 128;      // model.context: tokens of a sample
    int vocabulary = 0;     // model.vocabulary: 0 bytes, else the entries of a vocabulary to train (> 256)
    double validation = 0;  // data.validation: the share of the tokens held out at the end, 0 … 0.5
    // Instead of training one: that of a checkpoint. `vocabulary` is not looked at then.
    std::shared_ptr<const Tokenizer> tokenizer;
};

struct TextSource {
    std::shared_ptr<const Tokenizer> tokenizer;
    std::unique_ptr<TextDataset> train;       // shuffled, without end
    std::unique_ptr<TextDataset> validation;  // in order; null if nothing is held out
};

// The last round(validation * tokens) tokens are held out. The vocabulary is trained on the whole text.
// Throws DataError naming the key: no text, not readable, too short for a window of context + 1 tokens in
// either part, a vocabulary larger than the text gives, memory that does not suffice for the tokens.
TextSource open_text(const TextSettings& settings);

struct DataSource {
    std::shared_ptr<const Tokenizer> tokenizer;  // null for synthetic data
    std::unique_ptr<Dataset> train;
    std::unique_ptr<Dataset> validation;  // null if nothing is held out
};

// What the job names. `tokenizer` as in TextSettings. DataError as above, with file and line of the key in
// front.
DataSource open_data(const Job& job, std::shared_ptr<const Tokenizer> tokenizer = nullptr);

}  // namespace shardscope::trainer
