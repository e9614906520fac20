// Files of safetensors: those that its Python package wrote, those that we write, and damaged ones.
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/trainer/foreign_testing.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/manifest.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Every element type, in one file and in several, into several layouts; a folder as well as the file itself.
TEST(Safetensors, LoadsWhatThePythonPackageWrote) {
    const Shapes shapes = model_with_filters();
    for (const RunLayout& layout :
         {flat_layout(shapes, 1, 1), flat_layout(shapes, 3, 3), row_layout(shapes, 4, 4)}) {
        EXPECT_EQ(loaded(fixture("safetensors_fp32"), layout, LoadUse::weights), "");
        EXPECT_EQ(loaded(fixture("safetensors_fp32/model.safetensors"), layout, LoadUse::weights), "");
        EXPECT_EQ(loaded(fixture("safetensors_parts"), layout, LoadUse::weights), "");
        EXPECT_EQ(loaded(fixture("safetensors_fp64"), layout, LoadUse::weights), "");
        EXPECT_EQ(loaded(fixture("safetensors_bf16"), layout, LoadUse::weights, to_bf16_and_back), "");
        EXPECT_EQ(loaded(fixture("safetensors_fp16"), layout, LoadUse::weights,
                         [](float value) { return std::fmod(value, 2048.0F); }),
                  "");
    }
}

// tests/fixtures/make_checkpoints.py has checked that the package reads these.
TEST(Safetensors, WritesTheBytesThatThePythonPackageHasRead) {
    for (const int ranks : {1, 2, 4}) {
        const TemporaryFolder folder;
        save_values(job_with(folder.string(), ranks, job::CheckpointFormat::safetensors),
                    flat_layout(small_model(), ranks, ranks), 20);
        for (const char* name : {"model.safetensors", "optimizer.safetensors"})
            expect_fixture(folder / "step-20" / name, fixture("ours_safetensors") / name);
    }
}

// The numbers of one tensor of a file.
std::vector<float> numbers_of(const std::filesystem::path& path, const std::string& tensor,
                              const std::vector<std::int64_t>& dims) {
    const std::string bytes = bytes_of(path);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    const nlohmann::json entry = nlohmann::json::parse(bytes.substr(8, length)).at(tensor);
    EXPECT_EQ(entry.at("shape").get<std::vector<std::int64_t>>(), dims) << tensor;
    const auto range = entry.at("data_offsets").get<std::vector<std::size_t>>();
    std::vector<float> numbers((range.at(1) - range.at(0)) / 4);
    std::memcpy(numbers.data(), bytes.data() + 8 + length + range[0], 4 * numbers.size());
    return numbers;
}

// Filters are [out, in, row, column] there and [out, row, column, in] here; the inputs of a Linear that reads
// an image are [channel, pixel] there. Pieces end within a row of either.
TEST(Safetensors, FiltersAndImagesHavePyTorchsOrder) {
    const Shapes shapes = model_of_images();
    const int filters = 4, classifier = 5;
    for (const int ranks : {1, 2, 5}) {
        const TemporaryFolder folder;
        save_values(job_with(folder.string(), ranks, job::CheckpointFormat::safetensors),
                    flat_layout(shapes, ranks, ranks), 20);
        const std::filesystem::path saved = folder / "step-20";
        for (const std::string& state : adam_states()) {
            const std::filesystem::path file =
                saved / (state.empty() ? "model.safetensors" : "optimizer.safetensors");
            const std::string end = state.empty() ? "" : "." + state;
            const std::vector<float> weight = numbers_of(file, "conv.weight" + end, {2, 3, 2, 2}),
                                     linear = numbers_of(file, "classifier.weight" + end, {3, 24});
            ASSERT_EQ(weight.size(), 24U);
            ASSERT_EQ(linear.size(), 72U);
            std::size_t at = 0;
            for (int out = 0; out < 2; ++out)
                for (int in = 0; in < 3; ++in)
                    for (int place = 0; place < 4; ++place)
                        EXPECT_EQ(weight[at++], value_of(filters, state, (out * 4 + place) * 3 + in));
            at = 0;
            for (int out = 0; out < 3; ++out)
                for (int channel = 0; channel < 4; ++channel)
                    for (int pixel = 0; pixel < 6; ++pixel)
                        EXPECT_EQ(linear[at++], value_of(classifier, state, (out * 6 + pixel) * 4 + channel));
        }
        for (const RunLayout& layout : {flat_layout(shapes, 3, 3), row_layout(shapes, 4, 4)})
            EXPECT_EQ(loaded(saved, layout, LoadUse::training), "");
        std::filesystem::remove(saved / kManifestName);
        for (const RunLayout& layout : {flat_layout(shapes, 3, 3), row_layout(shapes, 4, 4)})
            EXPECT_EQ(loaded(saved, layout, LoadUse::weights), "");
    }
}

TEST(Safetensors, ADamagedFilterIsFound) {
    const Shapes shapes = model_of_images();
    const TemporaryFolder folder;
    save_values(job_with(folder.string(), 2, job::CheckpointFormat::safetensors), flat_layout(shapes, 2, 2),
                20);
    const std::filesystem::path file = folder / "step-20/model.safetensors";
    std::string bytes = bytes_of(file);
    bytes[bytes.size() - 72 * 4 - 5] ^= 1;  // the last number of the filters, before those of the Linear
    put(file, bytes);
    EXPECT_THAT(refusal_of(folder / "step-20", flat_layout(shapes, 1, 1), LoadUse::weights),
                AllOf(HasSubstr("model.safetensors: is damaged"), HasSubstr("which hold conv.weight")));
}

TEST(Safetensors, OurOwnAreReadWithoutTheManifestToo) {
    EXPECT_EQ(loaded(fixture("ours_safetensors"), flat_layout(small_model(), 2, 2), LoadUse::weights), "");
}

class DamagedSafetensors : public ::testing::Test {
  protected:
    // A file with this header and so many bytes after it.
    std::string refused(const std::string& header, std::size_t bytes = 4) {
        std::string text(8, '\0');
        const std::uint64_t length = header.size();
        std::memcpy(text.data(), &length, sizeof length);
        return refused_file(text + header + std::string(bytes, '\0'));
    }
    std::string refused_file(const std::string& text) {
        put(file_, text);
        std::string error = refusal_of(file_, layout_, LoadUse::weights);
        EXPECT_THAT(error, StartsWith(file_.string() + ": "));
        return error;
    }

    TemporaryFolder folder_;
    std::filesystem::path file_ = folder_ / "model.safetensors";
    RunLayout layout_ = flat_layout({{"a", 1, 1}}, 1, 1);
};

TEST_F(DamagedSafetensors, IsRefusedAtEveryLength) {
    const std::string whole = bytes_of(fixture("ours_safetensors/model.safetensors"));
    layout_ = flat_layout(small_model(), 2, 2);
    put(file_, whole);
    EXPECT_EQ(refusal_of(file_, layout_, LoadUse::weights), "");
    for (std::size_t length = 0; length < whole.size(); ++length)
        EXPECT_THAT(refused_file(whole.substr(0, length)), HasSubstr("cut off")) << length;
}

TEST_F(DamagedSafetensors, IsRefusedWithWhatIsWrong) {
    const std::vector<std::pair<std::string, std::string>> headers = {
        {"", "its header is not a JSON object"},
        {"[1]", "its header is not a JSON object"},
        {"{\"a\":", "its header is not a JSON object"},
        {std::string(100'000, '['), "its header is not a JSON object"},
        {R"({"a":3})", "a has no dtype, shape and data_offsets"},
        {R"({"a":{"dtype":"F32","shape":[1]}})", "a has no dtype, shape and data_offsets"},
        {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
         "a has no dtype, shape and data_offsets"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})",
         "a is in bytes 0 to 8 after the header, of which there are 4"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "a is in bytes 4 to 0"},
        {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
         "a has 4 bytes, which do not fit its shape"},
        {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
         "a has 4 bytes, which do not fit its shape"},
        {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})",
         "a has no dtype, shape and data_offsets"},
        {R"({"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})",
         "a has dtype I32; only F32, BF16, F16 and F64 can be read; convert it"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
         "its header names a twice"},
        {R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[2,4]}})",
         "b overlaps another tensor"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
         "b overlaps another tensor"},
        {R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "a of the job's model is not in it"},
        {R"({"a":{"dtype":"F32","shape":[0,281474976710656,281474976710656],"data_offsets":[0,0]}})",
         "a is [0, 281474976710656, 281474976710656] there and [1] in the job's model"},
        {R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})",
         "a is [2] there and [1] in the job's model"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
         "it has b, which the job's model does not have"},
    };
    for (const auto& [header, sentence] : headers)
        EXPECT_THAT(refused(header), HasSubstr(sentence)) << header.substr(0, 200);
}

TEST_F(DamagedSafetensors, OfSeveralFilesNamesTheOneThatIsWrong) {
    const std::filesystem::path list = folder_ / "model.safetensors.index.json";
    const auto refused = [&](const std::string& text) {
        put(list, text);
        return refusal_of(folder_.string(), layout_, LoadUse::weights);
    };
    EXPECT_THAT(refused("{}"), AllOf(StartsWith(list.string()), HasSubstr("no \"weight_map\"")));
    EXPECT_THAT(refused(R"({"weight_map": {"a": "../a.safetensors"}})"),
                HasSubstr("the file of a is not one in its folder"));
    EXPECT_THAT(refused(R"({"weight_map": {"a": "b.safetensors"}})"),
                HasSubstr("b.safetensors: cannot be read: No such file"));
    std::filesystem::copy_file(fixture("ours_safetensors/model.safetensors"), folder_ / "b.safetensors");
    EXPECT_THAT(refused(R"({"weight_map": {"a": "b.safetensors"}})"),
                HasSubstr("a should be in b.safetensors, which does not contain it"));
    std::filesystem::copy_file(folder_ / "b.safetensors", folder_ / "c.safetensors");
    EXPECT_THAT(refused(R"({"weight_map": {"scale": "b.safetensors", "net.0.bias": "c.safetensors"}})"),
                HasSubstr("is also in another file of the checkpoint"));
}

// Filters that have the elements of the job's, but other channels.
TEST_F(DamagedSafetensors, FiltersOfAnotherWindowAreRefused) {
    Shapes shapes = model_with_filters();
    shapes.back() = {"conv.weight", 2, 12, 1};
    EXPECT_THAT(refusal_of(fixture("safetensors_fp32"), flat_layout(shapes, 1, 1), LoadUse::weights),
                AllOf(HasSubstr("conv.weight is [2, 3, 2, 2] there and [2, 12, 1, 1] in the job's model"),
                      EndsWith("set the model's keys as in the run that saved it")));
}

// It has no optimizer state.
TEST_F(DamagedSafetensors, CannotBeContinuedFrom) {
    EXPECT_THAT(refusal_of(fixture("ours_safetensors"), flat_layout(small_model(), 1, 1), LoadUse::training),
                HasSubstr("the job's optimizer needs exp_avg, which is not in it"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
