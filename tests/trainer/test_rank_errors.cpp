// Errors of several processes, reported once.
#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/cli/rank_errors.h"
#include "trainer/data/dataset.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kHosts = {"a", "a", "b", "b"};

TEST(RankErrors, EqualOnesAreJoined) {
    const RankError error{"no GPU", kFailed};
    EXPECT_THAT(rank_error_sentences({error, error, error, error}, kHosts),
                ElementsAre("no GPU (on all 4 ranks)"));
    EXPECT_THAT(rank_error_sentences({error}, {"a"}), ElementsAre("no GPU"));
    EXPECT_THAT(rank_error_sentences({{}, error, {}, error}, kHosts), ElementsAre("ranks 1 and 3: no GPU"));
}

TEST(RankErrors, DifferentOnesNameTheirRanks) {
    const RankError gpu{"no GPU", kFailed}, disk{"no disk", kFailed};
    EXPECT_THAT(rank_error_sentences({gpu, disk, gpu, gpu}, kHosts),
                ElementsAre("ranks 0, 2 and 3: no GPU", "rank 1 on a: no disk"));
    EXPECT_THAT(rank_error_sentences({{}, {}, disk, {}}, kHosts), ElementsAre("rank 2 on b: no disk"));
    EXPECT_THAT(rank_error_sentences({{}, {}, {}, {}}, kHosts), IsEmpty());
}

TEST(RankErrors, StayShortForManyRanks) {
    std::vector<RankError> errors;
    for (int rank = 0; rank < 100; ++rank) errors.push_back({"port " + std::to_string(rank), kFailed});
    const std::vector<std::string> hosts(100, "a");
    const auto different = rank_error_sentences(errors, hosts);
    ASSERT_EQ(different.size(), 9u);
    EXPECT_EQ(different.back(), "92 more errors on other ranks");
    for (int rank = 1; rank < 100; ++rank) errors[static_cast<std::size_t>(rank)].sentence = "no disk";
    EXPECT_THAT(rank_error_sentences(errors, hosts),
                ElementsAre("rank 0 on a: port 0", "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 91 more: no disk"));
}

TEST(RankErrors, KeepTheirStatusInMessages) {
    const RankError error = RankError::from_text(RankError{"job.toml:2: no", kWrongUse}.text());
    EXPECT_EQ(error.sentence, "job.toml:2: no");
    EXPECT_EQ(error.status, kWrongUse);
    EXPECT_EQ(RankError().text(), "");
    EXPECT_EQ(RankError::from_text("").status, 0);
}

TEST(RankErrors, HaveTheStatusOfTheirKind) {
    EXPECT_EQ(status_of(job::JobError("x")), kWrongUse);
    EXPECT_EQ(status_of(data::DataError("x")), kWrongUse);
    EXPECT_EQ(status_of(std::runtime_error("x")), kFailed);
    EXPECT_EQ(status_of(std::bad_alloc()), kFailed);
    EXPECT_THAT(sentence_of(std::bad_alloc()), ::testing::HasSubstr("not enough memory"));
    EXPECT_EQ(ReportedTogether(kWrongUse).status(), kWrongUse);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cli
