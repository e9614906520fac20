// Errors in several processes before a run begins, reported once: equal errors as one, different ones with
// their ranks.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/cli/exit_status.h"

namespace shardscope::trainer::cli {

// The exit status for an error, and its sentence.
int status_of(const std::exception& error);
std::string sentence_of(const std::exception& error);

// One rank's error; an empty sentence means no error.
struct RankError {
    std::string sentence;
    int status = 0;

    std::string text() const;  // to send to rank 0
    static RankError from_text(const std::string& text);
};

// `errors` and `hosts` are indexed by rank. Returns the sentences to print: "... (on all 4 ranks)", "rank 2
// on b: ...", "ranks 0, 1 and 3: ...". Empty: no rank has an error.
std::vector<std::string> rank_error_sentences(const std::vector<RankError>& errors,
                                              const std::vector<std::string>& hosts);

// All processes know that some of them cannot continue, and rank 0 has printed why.
class ReportedTogether : public std::runtime_error {
  public:
    explicit ReportedTogether(int status);
    int status() const { return status_; }

  private:
    int status_;
};

}  // namespace shardscope::trainer::cli
