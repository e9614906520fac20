// A checkpoint that one layout has saved is loaded by another.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint_testing.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;

std::vector<std::pair<std::string, RunLayout>> all_layouts(const Shapes& shapes) {
    std::vector<std::pair<std::string, RunLayout>> layouts;
    for (const int ranks : {1, 2, 3, 4, 8}) {
        const std::string of = " of " + std::to_string(ranks);
        layouts.emplace_back("flat" + of, flat_layout(shapes, ranks, ranks));
        layouts.emplace_back("rows" + of, row_layout(shapes, ranks, ranks));
        layouts.emplace_back("replicated" + of, replicated_layout(shapes, ranks));
    }
    layouts.emplace_back("hybrid 2 x 2", flat_layout(shapes, 4, 2));
    return layouts;
}

bool loads(const std::string& path, const job::Job& job, const RunLayout& layout) {
    const StoredCheckpoint stored(path);
    const CheckpointLoader loader(stored, job, layout, LoadUse::training);
    Memory memory(layout);
    for (int rank = 0; rank < layout.mesh.ranks; ++rank) loader.fill(rank, memory.of(rank));
    return memory.has_values();
}

class Resharding : public ::testing::TestWithParam<job::CheckpointFormat> {};

TEST_P(Resharding, EveryLayoutLoadsWhatEveryOtherSaved) {
    const auto layouts = all_layouts(small_model());
    for (const auto& [saved_as, saved] : layouts) {
        const TemporaryFolder folder;
        save_values(job_with(folder.string(), saved.mesh.ranks, GetParam()), saved, 20);
        for (const auto& [loaded_as, loaded] : layouts) {
            EXPECT_TRUE(loads(folder.string(), job_with("", loaded.mesh.ranks), loaded))
                << saved_as << " -> " << loaded_as;
        }
    }
}

TEST_P(Resharding, AnyCutIntoPiecesLoadsIntoAnyOther) {
    std::mt19937 random(20);
    const auto up_to = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
    for (int round = 0; round < 60; ++round) {
        Shapes shapes;
        for (int id = up_to(5); id > 0; --id)
            shapes.push_back({"p" + std::to_string(id), up_to(9), up_to(40)});
        const int saved_shard = up_to(6), loaded_shard = up_to(6);
        const RunLayout saved = random_layout(shapes, 2 * saved_shard, saved_shard, random);
        const RunLayout loaded = random_layout(shapes, loaded_shard, loaded_shard, random);
        const TemporaryFolder folder;
        save_values(job_with(folder.string(), 2 * saved_shard, GetParam()), saved, round);
        EXPECT_TRUE(loads(folder.string(), job_with("", loaded_shard), loaded)) << "round " << round;
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, Resharding, ::testing::ValuesIn(kFormats),
                         [](const auto& format) { return name_of(format.param); });

TEST(OwnedPieces, NameEveryElementOnceAndTheLowestPlaceThatHoldsIt) {
    LayoutMaker maker({{"w", 10, 1}}, 3, 3);
    maker.add(2, 0, "", 0, 10);  // all elements
    maker.add(0, 0, "", 2, 4);   // 2 … 5
    maker.add(1, 0, "", 0, 4);   // 0 … 3
    std::vector<std::tuple<int, std::int64_t, std::int64_t>> owned;
    for (const OwnedPiece& each : owned_pieces(maker.take(), 100)) {
        owned.emplace_back(each.place, each.piece.first, each.piece.elements);
    }
    // Place 1 comes first; place 2 owns the elements that place 1 lacks.
    EXPECT_THAT(owned, ::testing::ElementsAre(std::tuple(1, 0, 4), std::tuple(2, 4, 6)));
}

TEST(OwnedPieces, AreCutIfTheyAreTooLarge) {
    const RunLayout layout = replicated_layout({{"w", 10, 1}}, 1, {""});
    std::vector<std::pair<std::int64_t, std::int64_t>> cut;  // first element, offset in memory
    for (const OwnedPiece& each : owned_pieces(layout, 4))
        cut.emplace_back(each.piece.first, each.piece.where.offset);
    EXPECT_THAT(cut, ::testing::ElementsAre(std::pair(0, 0), std::pair(4, 16), std::pair(8, 32)));
}

TEST(OwnedPieces, AGapIsAnErrorOfTheProgram) {
    LayoutMaker maker({{"w", 10, 1}}, 1, 1);
    maker.add(0, 0, "", 0, 4);
    maker.add(0, 0, "", 5, 5);
    EXPECT_THROW(owned_pieces(maker.take(), 100), std::logic_error);
}

// 4 ranks in 2 replicas: ranks 2 and 3 hold what 0 and 1 hold.
TEST(SavedFiles, AreWrittenByTheFirstReplicaOnly) {
    const TemporaryFolder folder;
    save_values(job_with(folder.string(), 4), flat_layout(small_model(), 4, 2), 5);
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "step-5")) {
        names.push_back(entry.path().filename().string());
    }
    EXPECT_THAT(names, ::testing::UnorderedElementsAre("rank-00000.bin", "rank-00001.bin", kManifestName));
}

// 64 elements, 192 values of 4 bytes: each of the 4 x 3 parts begins at a multiple of 64.
TEST(SavedFiles, AFullOneHasEachParameterContiguousAndInOrder) {
    const TemporaryFolder folder;
    save_values(job_with(folder.string(), 4, job::CheckpointFormat::full), flat_layout(small_model(), 4, 4),
                5);
    const std::string bytes = bytes_of(folder / "step-5/full.bin");
    const StoredCheckpoint stored(folder.string());
    int id = 0;
    for (const ManifestParameter& parameter : stored.manifest().parameters) {
        for (const std::string& state : adam_states()) {
            const std::int64_t offset = pieces_within(parameter, state, 0, 1).front().offset;
            EXPECT_EQ(offset % 64, 0);
            for (std::int64_t i = 0; i < parameter.elements(); ++i) {
                float value = 0;
                std::memcpy(&value, bytes.data() + offset + 4 * i, sizeof value);
                ASSERT_EQ(value, value_of(id, state, i)) << parameter.path << " " << state << " " << i;
            }
        }
        ++id;
    }
}

TEST(Loading, WeightsAloneNeedNoOptimizer) {
    const TemporaryFolder folder;
    save_values(job_with(folder.string(), 2), flat_layout(small_model(), 2, 2), 5);
    job::Job job = job_with("", 1);
    job.optimizer.type = job::OptimizerType::sgd;
    const RunLayout layout = replicated_layout(small_model(), 1, {""});
    const StoredCheckpoint stored(folder.string());
    const CheckpointLoader loader(stored, job, layout, LoadUse::weights);
    Memory memory(layout);
    loader.fill(0, memory.of(0));
    EXPECT_TRUE(memory.has_values());
}

// Saved after 10 steps of 4 ranks x 8 samples x 2 micro-batches: 640 samples. 3 ranks x 5 samples: step 10 of
// such a run begins at 150; it must begin at 640, which is 490 later.
TEST(Loading, TheSamplerContinuesWhereItStoppedWithAnyBatch) {
    const TemporaryFolder folder;
    job::Job job = job_with(folder.string(), 4);
    job.train.accumulation = 2;
    save_values(job, flat_layout(small_model(), 4, 4), 10);
    const StoredCheckpoint stored(folder.string());
    EXPECT_EQ(stored.manifest().samples, 640);
    EXPECT_EQ(stored.manifest().seed, 17);
    const RunLayout layout = flat_layout(small_model(), 3, 3);
    job::Job other = job_with(folder / "then", 3);
    other.data.batch = 5;
    const CheckpointLoader loader(stored, other, layout, LoadUse::training);
    EXPECT_EQ(loader.step(), 10);
    EXPECT_EQ(loader.sample_offset(), 490);
    // The checkpoint of that run after step 12: 640 + 2 x 15.
    save_values(other, layout, 12,
                {.goes_on_from = stored.folder(), .sample_offset = loader.sample_offset()});
    EXPECT_EQ(StoredCheckpoint(folder / "then").manifest().samples, 670);
}

TEST(Loading, TheVocabularyIsInTheCheckpoint) {
    const TemporaryFolder folder;
    const std::string vocabulary = "any text\n\xff, with bytes of any kind\n";
    save_values(job_with(folder.string(), 2), flat_layout(small_model(), 2, 2), 1, {.tokenizer = vocabulary});
    EXPECT_EQ(StoredCheckpoint(folder.string()).tokenizer(), vocabulary);
    save_values(job_with(folder / "bytes", 2), flat_layout(small_model(), 2, 2), 1);
    EXPECT_EQ(StoredCheckpoint(folder / "bytes").tokenizer(), "");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
