#include "trainer/cli/rank_errors.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include <fmt/core.h>

#include "traces/store/error.h"
#include "trainer/checkpoint/error.h"
#include "trainer/data/dataset.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

namespace {

constexpr std::size_t kMostSentences = 8;
constexpr std::size_t kMostRanksNamed = 8;

// "0, 1 and 3"
std::string listed(const std::vector<std::size_t>& ranks) {
    std::string text;
    const std::size_t shown = std::min(ranks.size(), kMostRanksNamed);
    for (std::size_t i = 0; i < shown; ++i) {
        const bool last = i + 1 == ranks.size();
        text += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", ranks[i]);
    }
    if (shown < ranks.size()) text += fmt::format(" and {} more", ranks.size() - shown);
    return text;
}

}  // namespace

int status_of(const std::exception& error) {
    const bool wrong = dynamic_cast<const job::JobError*>(&error) ||
                       dynamic_cast<const data::DataError*>(&error) ||
                       dynamic_cast<const checkpoint::CheckpointError*>(&error) ||
                       dynamic_cast<const traces::store::StoreError*>(&error);
    return wrong ? kWrongUse : kFailed;
}

std::string sentence_of(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error))
        return "not enough memory for this job; make the model, the batch or run.ranks smaller";
    return error.what();
}

std::string RankError::text() const {
    return sentence.empty() ? "" : fmt::format("{}{}", status, sentence);
}

RankError RankError::from_text(const std::string& text) {
    if (text.empty()) return {};
    return {text.substr(1), text.front() - '0'};
}

std::vector<std::string> rank_error_sentences(const std::vector<RankError>& errors,
                                              const std::vector<std::string>& hosts) {
    std::vector<std::pair<std::string, std::vector<std::size_t>>> equal;  // in the order of their first rank
    for (std::size_t rank = 0; rank < errors.size(); ++rank) {
        const std::string& own = errors[rank].sentence;
        if (own.empty()) continue;
        const auto known =
            std::find_if(equal.begin(), equal.end(), [&](const auto& entry) { return entry.first == own; });
        if (known == equal.end()) {
            equal.push_back({own, {rank}});
        } else {
            known->second.push_back(rank);
        }
    }
    std::vector<std::string> sentences;
    for (const auto& [sentence, ranks] : equal) {
        if (sentences.size() == kMostSentences && equal.size() > kMostSentences) {
            sentences.push_back(fmt::format("{} more errors on other ranks", equal.size() - kMostSentences));
            break;
        }
        if (ranks.size() == errors.size()) {
            sentences.push_back(
                ranks.size() == 1 ? sentence : fmt::format("{} (on all {} ranks)", sentence, ranks.size()));
        } else if (ranks.size() == 1) {
            sentences.push_back(
                fmt::format("rank {} on {}: {}", ranks.front(), hosts[ranks.front()], sentence));
        } else {
            sentences.push_back(fmt::format("ranks {}: {}", listed(ranks), sentence));
        }
    }
    return sentences;
}

ReportedTogether::ReportedTogether(int status)
    : std::runtime_error("a process cannot go on"), status_(status) {}

}  // namespace shardscope::trainer::cli
