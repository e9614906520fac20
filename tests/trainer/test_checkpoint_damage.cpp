// A checkpoint that is damaged, foreign, of another model or of another optimizer is refused with the file
// and the reason, and no part of it is loaded.
#include <cstdint>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint_testing.h"
#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/error.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;

using ::testing::AllOf;
using ::testing::HasSubstr;

// Loads all ranks; returns the error, or "" if it loaded. Nothing may be written before an error.
std::string refusal(const std::string& path, const job::Job& job, const RunLayout& layout,
                    LoadUse use = LoadUse::training) {
    Memory memory(layout);
    try {
        const StoredCheckpoint stored(path);
        const CheckpointLoader loader(stored, job, layout, use);
        for (int rank = 0; rank < layout.mesh.ranks; ++rank) loader.fill(rank, memory.of(rank));
    } catch (const CheckpointError& error) {
        EXPECT_TRUE(memory.untouched()) << error.what();
        return error.what();
    }
    return "";
}

std::uint32_t checksum(const std::string& text, std::uint32_t before = 0) {
    return crc32c(std::as_bytes(std::span(text)), before);
}

// The known values of RFC 3720, appendix B.4, and of "123456789".
TEST(Crc32c, HasTheValuesOfTheStandard) {
    EXPECT_EQ(checksum("123456789"), 0xE3069283U);
    EXPECT_EQ(checksum(std::string(32, '\0')), 0x8A9136AAU);
    EXPECT_EQ(checksum(std::string(32, '\xff')), 0x62A8AB43U);
    EXPECT_EQ(checksum(""), 0U);
}

TEST(Crc32c, IsThePlainOneWhateverTheLengthAndTheCut) {
    std::string text(100, ' ');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 37);
    for (std::size_t length = 0; length <= text.size(); ++length) {
        const std::string some = text.substr(0, length);
        EXPECT_EQ(checksum(some), crc32c_plain(std::as_bytes(std::span(some))));
        const std::size_t cut = length / 3;
        EXPECT_EQ(checksum(some.substr(cut), checksum(some.substr(0, cut))), checksum(some));
    }
}

class DamagedCheckpoint : public ::testing::Test {
  protected:
    DamagedCheckpoint() { save_values(job_with(folder_.string(), 2), layout_, 20); }

    std::string refused() const { return refusal(folder_.string(), job_, layout_); }
    std::filesystem::path file(const std::string& name) const { return folder_ / "step-20" / name; }

    TemporaryFolder folder_;
    RunLayout layout_ = flat_layout(small_model(), 2, 2);
    job::Job job_ = job_with("", 2);
};

TEST_F(DamagedCheckpoint, LoadsWhileItIsIntact) {
    EXPECT_EQ(refused(), "");
}

// Every length of every file except the full one.
TEST_F(DamagedCheckpoint, IsRefusedAtEveryLengthOfItsFiles) {
    for (const std::string name : {"manifest.json", "rank-00000.bin", "rank-00001.bin"}) {
        const std::string whole = bytes_of(file(name));
        for (std::size_t length = 0; length < whole.size(); ++length) {
            put(file(name), whole.substr(0, length));
            EXPECT_THAT(refused(), HasSubstr(name)) << length;
        }
        put(file(name), whole + " ");
        EXPECT_THAT(refused(), HasSubstr(name));
        put(file(name), whole);
    }
    EXPECT_EQ(refused(), "");
}

// Flips a bit of each byte: for the values, the message names the file; only the padding between pieces may
// change.
TEST_F(DamagedCheckpoint, IsRefusedWhenAnyBitOfAValueIsFlipped) {
    const std::string name = "rank-00001.bin", whole = bytes_of(file(name));
    std::vector<bool> is_value(whole.size(), false);
    {
        const StoredCheckpoint stored(folder_.string());
        for (const ManifestParameter& parameter : stored.manifest().parameters) {
            for (const ManifestPiece& piece : parameter.pieces) {
                if (stored.manifest().files[piece.file].name != name) continue;
                for (std::int64_t i = 0; i < 4 * piece.elements; ++i) {
                    is_value[static_cast<std::size_t>(piece.offset + i)] = true;
                }
            }
        }
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
        put(file(name), changed);
        if (is_value[at]) {
            EXPECT_THAT(refused(), AllOf(HasSubstr(name), HasSubstr("damaged"))) << at;
        } else {
            EXPECT_EQ(refused(), "") << at;
        }
    }
}

TEST_F(DamagedCheckpoint, IsRefusedWhenAnyBitOfItsManifestIsFlipped) {
    const std::string whole = bytes_of(file(kManifestName));
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
        put(file(kManifestName), changed);
        EXPECT_THAT(refused(), HasSubstr(kManifestName)) << at;
    }
}

TEST_F(DamagedCheckpoint, NamesTheParametersOfTheDamagedBytes) {
    std::string changed = bytes_of(file("rank-00000.bin"));
    changed[3] = static_cast<char>(changed[3] ^ 1);
    put(file("rank-00000.bin"), changed);
    EXPECT_EQ(refused(),
              file("rank-00000.bin").string() +
                  ": is damaged: bytes 0 to 128, which hold net.0.weight, do not match their checksum; "
                  "load another checkpoint");
}

TEST_F(DamagedCheckpoint, NamesAFileThatIsMissing) {
    std::filesystem::remove(file("rank-00001.bin"));
    EXPECT_THAT(refused(), AllOf(HasSubstr("rank-00001.bin"), HasSubstr("cannot be read: No such file")));
}

TEST_F(DamagedCheckpoint, DamagedStateDoesNotPreventLoadingTheWeights) {
    const StoredCheckpoint stored(folder_.string());
    const std::vector<ManifestPiece>& pieces = stored.manifest().parameters[0].pieces;
    ASSERT_EQ(pieces.back().state, "exp_avg_sq");
    const std::string name = stored.manifest().files[pieces.back().file].name;
    std::string changed = bytes_of(file(name));
    changed[static_cast<std::size_t>(pieces.back().offset)] ^= 1;
    put(file(name), changed);
    EXPECT_THAT(refused(), HasSubstr("exp_avg_sq of net.0.weight"));
    EXPECT_EQ(refusal(folder_.string(), job_, replicated_layout(small_model(), 1, {""}), LoadUse::weights),
              "");
}

TEST_F(DamagedCheckpoint, ADamagedVocabularyIsNamed) {
    save_values(job_with(folder_ / "other", 2), layout_, 20, {.tokenizer = "a vocabulary"});
    put(folder_ / "other/step-20/tokenizer.txt", "a vocabulari");
    EXPECT_THAT(refusal(folder_ / "other", job_, layout_),
                AllOf(HasSubstr("tokenizer.txt"), HasSubstr("damaged")));
}

TEST_F(DamagedCheckpoint, ForeignJsonIsNotACheckpoint) {
    for (const char* foreign :
         {"{}", "[]", "3", "\"text\"", "{\"format\": 7}", "{\"format\": \"pt\", \"version\": 1}"}) {
        put(file(kManifestName), foreign);
        EXPECT_THAT(refused(), AllOf(HasSubstr(kManifestName), HasSubstr("not a checkpoint's manifest")))
            << foreign;
    }
    put(file(kManifestName), std::string(100'000, '['));
    EXPECT_THAT(refused(), HasSubstr("not JSON"));
}

TEST_F(DamagedCheckpoint, ANewerVersionIsRefused) {
    put(file(kManifestName), "{\"format\": \"shardscope-checkpoint\", \"version\": 3}");
    EXPECT_THAT(refused(), HasSubstr("has version 3, but this tool reads versions 1 and 2; use a newer"));
}

// The checksum matches, but the manifest is inconsistent, as if another program had written it.
TEST(ImpossibleManifest, IsRefused) {
    Manifest good;
    good.optimizer = "sgd";
    good.files = {{"rank-00000.bin", 64}};
    good.parameters = {{"w", 4, 2, {{"", 0, 4, 0, 0, 1}, {"", 4, 4, 0, 16, 2}}}};
    EXPECT_EQ(parse_manifest(to_text(good), "m"), good);
    Manifest scaled = good;
    scaled.step = 10;
    scaled.loss_scale = {{65536.5, 3, 2, 1}};
    EXPECT_EQ(parse_manifest(to_text(scaled), "m"), scaled);

    // Tools that read only version 1 do not know the order, and refuse version 2.
    EXPECT_THAT(to_text(good), HasSubstr("\"version\":1,"));
    Manifest ordered = good;
    ordered.parameters[0].pieces[1].order = {{2, 1}, {2, 2}};
    EXPECT_THAT(to_text(ordered), HasSubstr("\"version\":2,"));
    EXPECT_EQ(parse_manifest(to_text(ordered), "m"), ordered);

    const auto refuses = [&](auto change) -> std::string {
        Manifest bad = good;
        change(bad);
        try {
            parse_manifest(to_text(bad), "folder/manifest.json");
        } catch (const CheckpointError& error) {
            EXPECT_THAT(error.what(), ::testing::StartsWith("folder/manifest.json: "));
            return error.what();
        }
        return "nothing";
    };
    constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
    const auto piece = [](Manifest& manifest) -> ManifestPiece& { return manifest.parameters[0].pieces[1]; };
    EXPECT_THAT(refuses([](Manifest& m) {
                    m.loss_scale = {{0, 0, 0, 1}};
                }),
                HasSubstr("not a number above 0"));
    EXPECT_THAT(refuses([](Manifest& m) {
                    m.loss_scale = {{1, 0, 1, 1}};
                }),
                HasSubstr("\"skipped\""));  // of no step
    EXPECT_THAT(refuses([&](Manifest& m) { piece(m).first = 3; }), HasSubstr("two pieces contain element 3"));
    EXPECT_THAT(refuses([&](Manifest& m) { piece(m).first = 5; }),
                HasSubstr("after the parameter's 8 elements"));
    EXPECT_THAT(refuses([&](Manifest& m) { piece(m).first = kHuge; }), HasSubstr("\"first\""));
    EXPECT_THAT(refuses([&](Manifest& m) { piece(m).elements = -4; }), HasSubstr("\"elements\""));
    EXPECT_THAT(refuses([&](Manifest& m) { piece(m).offset = 52; }), HasSubstr("after the 64 bytes"));
    EXPECT_THAT(refuses([&](Manifest& m) { piece(m).offset = -4; }), HasSubstr("\"offset\""));
    for (const std::vector<Extent>& order :
         std::vector<std::vector<Extent>>{{{2, 1}, {2, 1}}, {{4, 2}}, {{3, 1}}, {{2, 1}, {kHuge >> 4, 2}}}) {
        EXPECT_THAT(refuses([&](Manifest& m) { piece(m).order = order; }),
                    HasSubstr("w: the \"order\" of a piece does not name each of its 4 elements once"));
    }
    EXPECT_THAT(refuses([&](Manifest& m) {
                    piece(m).order = {{-2, 1}, {2, 2}};
                }),
                HasSubstr("w: \"order\" is not a list of pairs of sizes and strides"));
    EXPECT_EQ(refuses([&](Manifest& m) { piece(m).order = {{2, 1}, {2, 2}}; }), "nothing");
    EXPECT_THAT(refuses([](Manifest& m) { m.parameters.push_back(m.parameters[0]); }),
                HasSubstr("names w twice"));
    EXPECT_THAT(refuses([](Manifest& m) { m.files.push_back(m.files[0]); }),
                HasSubstr("rank-00000.bin twice"));
    EXPECT_THAT(refuses([](Manifest& m) { m.files[0].name = "../secret"; }),
                HasSubstr("not a file in the checkpoint"));
    EXPECT_THAT(refuses([](Manifest& m) { m.parameters[0].rows = kHuge; }), HasSubstr("\"rows\""));
    EXPECT_THAT(refuses([](Manifest& m) { m.parameters[0].width = 0; }), HasSubstr("\"width\""));
    EXPECT_THAT(refuses([](Manifest& m) { m.parameters[0].rows = m.parameters[0].width = kHuge >> 20; }),
                HasSubstr("too large"));
    EXPECT_THAT(refuses([](Manifest& m) { m.step = -1; }), HasSubstr("\"step\""));
    EXPECT_THAT(refuses([](Manifest& m) { m.ranks = 0; }), HasSubstr("\"ranks\""));
}

TEST(ImpossibleManifest, EveryValueOfAnotherTypeIsRefused) {
    Manifest good;
    good.optimizer = "sgd";
    good.job = {{"run.seed", "1"}};
    good.tokenizer = "tokenizer.txt";
    good.files = {{"rank-00000.bin", 64}};
    good.parameters = {{"w", 4, 2, {{"", 0, 8, 0, 0, 1}}}};
    const std::string text = to_text(good);
    int refused = 0;
    for (std::size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', colon + 1)) {
        for (const char* value : {"null", "1.5", "{}", "[1]"}) {
            // The end of the value is not searched; "null," before it would not be JSON, so it gets a key of
            // its own.
            std::string changed = text.substr(0, colon + 1) + value + ",\"old " + std::to_string(colon) +
                                  "\":" + text.substr(colon + 1);
            const std::size_t check = changed.rfind("\"check\"");
            if (colon > check) continue;
            if (std::string_view(value) == "{}" && text.substr(0, colon).ends_with("\"job\""))
                continue;  // it may be damaged
            changed.resize(check);
            changed += "\"check\": \"" + [&] {
                char digits[9];
                std::snprintf(digits, sizeof digits, "%08x", checksum(changed));
                return std::string(digits);
            }() + "\"}\n";
            try {
                parse_manifest(changed, "m");
                ADD_FAILURE() << changed;
            } catch (const CheckpointError&) {
                ++refused;
            }
        }
    }
    EXPECT_GT(refused, 50);
}

class OtherModel : public DamagedCheckpoint {
  protected:
    std::string refused_as(const Shapes& shapes) const {
        return refusal(folder_.string(), job_, flat_layout(shapes, 2, 2));
    }
};

TEST_F(OtherModel, IsRecognizedByItsFirstMissingParameter) {
    Shapes shapes = small_model();
    shapes.push_back({"net.4.weight", 3, 3});
    EXPECT_THAT(refused_as(shapes),
                AllOf(HasSubstr(kManifestName), HasSubstr("net.4.weight of the job's model is not")));
}

TEST_F(OtherModel, IsRecognizedByAnExtraParameter) {
    Shapes shapes = small_model();
    shapes.pop_back();
    EXPECT_THAT(refused_as(shapes), HasSubstr("it has scale, which the job's model does not have"));
}

TEST_F(OtherModel, IsRecognizedByAnotherShapeWithTheKeyThatDiffers) {
    Shapes shapes = small_model();
    shapes[2].rows = 4;
    job_.model.width = 7;
    EXPECT_THAT(refused_as(shapes),
                AllOf(HasSubstr("net.2.weight is 3 x 7 there and 4 x 7 in the job's model"),
                      HasSubstr("it was saved with model.width = 256, the job has 7")));
}

TEST_F(OtherModel, TheSameElementsInAnotherShapeAreAnotherModel) {
    Shapes shapes = small_model();
    std::swap(shapes[0].rows, shapes[0].width);
    EXPECT_THAT(refused_as(shapes), HasSubstr("net.0.weight is 7 x 5 there and 5 x 7"));
}

class OtherOptimizer : public DamagedCheckpoint {};

TEST_F(OtherOptimizer, OfAnotherTypeIsRefused) {
    job_.optimizer.type = job::OptimizerType::sgd;
    EXPECT_THAT(refusal(folder_.string(), job_, flat_layout(small_model(), 2, 2, {"", "momentum_buffer"})),
                AllOf(HasSubstr("its optimizer is adamw, the job's is sgd"),
                      HasSubstr("optimizer.type = \"adamw\"")));
}

// SGD keeps a buffer with momentum and none without.
TEST_F(OtherOptimizer, StateThatOneOfThemLacksIsNamed) {
    job::Job sgd = job_with(folder_ / "sgd", 2);
    sgd.optimizer.type = job::OptimizerType::sgd;
    const RunLayout with = flat_layout(small_model(), 2, 2, {"", "momentum_buffer"});
    const RunLayout without = flat_layout(small_model(), 2, 2, {""});
    save_values(sgd, with, 1);
    EXPECT_THAT(refusal(sgd.checkpoint.save, sgd, without),
                HasSubstr("it has momentum_buffer, which the job's optimizer does not keep"));
    sgd.checkpoint.save = folder_ / "plain";
    save_values(sgd, without, 1);
    EXPECT_THAT(refusal(sgd.checkpoint.save, sgd, with),
                HasSubstr("the job's optimizer needs momentum_buffer, which is not in it"));
}

// A parameter that was frozen while it was saved has no state.
TEST_F(OtherOptimizer, StateThatOneParameterMissesIsNamed) {
    LayoutMaker frozen(small_model(), 1, 1);
    for (int id = 0; id < 4; ++id) {
        for (const std::string& state : adam_states()) {
            if (id != 1 || state.empty()) {
                frozen.add(0, id, state, 0, frozen.shapes()[static_cast<std::size_t>(id)].elements());
            }
        }
    }
    save_values(job_with(folder_ / "frozen", 1), frozen.take(), 1);
    EXPECT_THAT(refusal(folder_ / "frozen", job_, layout_),
                HasSubstr("element 0 of exp_avg of net.0.bias is not stored"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
