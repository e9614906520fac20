// Checkpoints of torch.distributed.checkpoint: those that we write, those that PyTorch wrote, and damaged
// ones.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/foreign_testing.h"
#include "traces/import/pickle/pickle_text.h"
#include "trainer/checkpoint/dcp_read.h"
#include "trainer/checkpoint/dcp_write.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/foreign.h"
#include "trainer/checkpoint/save_plan.h"
#include "trainer/checkpoint/torch_file.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;
namespace pickled = traces::pickled;

using ::testing::AllOf;
using ::testing::HasSubstr;

// The elements of a box, as numbers in our order of the tensor.
std::vector<std::int64_t> elements_in(const TensorBox& box, const ParameterShape& shape) {
    std::vector<std::int64_t> elements(static_cast<std::size_t>(element_count(box.tensor.sizes)));
    const std::vector<std::int64_t> dims = shape.dims();
    const std::int64_t channels = shape.window > 0 ? dims[1] : 1;
    std::vector<std::int64_t> at(dims.size(), 0);
    for (std::int64_t i = 0; i < std::ssize(elements); ++i) {
        std::int64_t inside = 0;
        std::vector<std::int64_t> place = at;
        for (std::size_t d = 0; d < dims.size(); ++d) {
            inside += at[d] * box.tensor.strides[d];
            place[d] += box.offsets[d];
        }
        const std::int64_t number =
            shape.window > 0   ? ((place[0] * dims[2] + place[2]) * dims[3] + place[3]) * channels + place[1]
            : dims.size() == 2 ? place[0] * dims[1] + place[1]
                               : place[0];
        elements.at(static_cast<std::size_t>(inside)) = number;
        for (std::size_t d = dims.size(); d-- > 0 && ++at[d] == box.tensor.sizes[d];) at[d] = 0;
    }
    return elements;
}

// Every run of elements of a vector, a matrix and filters, under several limits of a box.
TEST(Boxes, HoldExactlyTheElementsOfThePiece) {
    const Shapes shapes = {{"v", 7, 1}, {"m", 5, 4}, {"f", 3, 12, 2}};
    for (const ParameterShape& shape : shapes) {
        for (const std::int64_t most : {1, 3, 5, 100}) {
            for (std::int64_t first = 0; first < shape.elements(); ++first) {
                for (std::int64_t count = 1; first + count <= shape.elements(); ++count) {
                    OwnedPiece piece;
                    piece.piece = {0, "", first, count, plan::Arg{0, 400, 4 * count}};
                    std::int64_t next = first;
                    for (const OwnedPiece& box : as_boxes(piece, shape, most)) {
                        ASSERT_LE(box.piece.elements, most);
                        ASSERT_EQ(box.piece.first, next);
                        ASSERT_EQ(box.piece.where.offset, 400 + 4 * (next - first));
                        for (const std::int64_t element : elements_in(box_of(box.piece, shape), shape))
                            ASSERT_EQ(element, next++) << shape.path << " " << first << " " << count;
                    }
                    ASSERT_EQ(next, first + count);
                }
            }
        }
    }
}

// tests/fixtures/make_checkpoints.py has checked that torch.distributed.checkpoint.load reads these.
TEST(Dcp, WritesTheBytesThatPyTorchHasRead) {
    const TemporaryFolder folder;
    save_values(job_with(folder.string(), 2, job::CheckpointFormat::dcp),
                flat_layout(model_with_filters(), 2, 2), 20);
    for (const char* name : {".metadata", "__0_0.distcp", "__1_0.distcp", "__0_1.distcp"})
        expect_fixture(folder / "step-20" / name, fixture("ours_dcp") / name);
}

TEST(Dcp, LoadsWhatPyTorchWrote) {
    const Shapes shapes = model_with_filters();
    for (const RunLayout& layout :
         {flat_layout(shapes, 1, 1), flat_layout(shapes, 3, 3), row_layout(shapes, 4, 4)}) {
        for (const char* name : {"dcp_fp32", "dcp_two_ranks", "ours_dcp"}) {
            EXPECT_EQ(loaded(fixture(name), layout, LoadUse::training), "") << name;
            EXPECT_EQ(StoredCheckpoint(fixture(name).string()).manifest().step, 20) << name;
        }
        EXPECT_EQ(loaded(fixture("dcp_app"), layout, LoadUse::weights), "");
        EXPECT_EQ(loaded(fixture("dcp_bf16"), layout, LoadUse::weights, to_bf16_and_back), "");
    }
}

// Momentum is read, too, and it is not the weight. Without the manifest PyTorch's files say what is where.
TEST(Dcp, KeepsTheMomentumOfFiltersAndOfLinearsThatReadImages) {
    const Shapes shapes = model_of_images();
    const std::vector<std::string> states = {"", "momentum_buffer"};
    job::Job job = job_with("", 3, job::CheckpointFormat::dcp);
    for (const int ranks : {1, 3}) {
        const TemporaryFolder folder;
        job.checkpoint.save = folder.string();
        save_values(job, flat_layout(shapes, ranks, ranks, states), 20);
        const std::filesystem::path saved = folder / "step-20";
        EXPECT_EQ(loaded(saved, row_layout(shapes, 2, 2, states), LoadUse::training), "");
        std::filesystem::remove(saved / kManifestName);
        EXPECT_EQ(loaded(saved, row_layout(shapes, 2, 2, states), LoadUse::training), "");
        const ForeignCheckpoint read = read_foreign(saved);
        const auto classifier =
            std::find_if(read.tensors.begin(), read.tensors.end(), [](const ForeignTensor& tensor) {
                return tensor.name == "classifier.weight" && tensor.state == "momentum_buffer";
            });
        ASSERT_NE(classifier, read.tensors.end());
        ASSERT_EQ(classifier->boxes.size(), 1U);
        const std::string bytes = bytes_of(saved / read.manifest.files[classifier->boxes[0].file].name);
        for (int out = 0; out < 3; ++out) {
            for (int input = 0; input < 24; ++input) {
                float number = 0;
                std::memcpy(&number, bytes.data() + classifier->boxes[0].offset + 4 * (out * 24 + input), 4);
                const int channel = input / 6, pixel = input % 6;
                EXPECT_EQ(number, value_of(5, "momentum_buffer", (out * 6 + pixel) * 4 + channel));
            }
        }
    }
}

TEST(Dcp, ALinearThatReadsImagesAndIsTooLargeForItsArchiveIsRefused) {
    job::Job job = job_with("", 2, job::CheckpointFormat::dcp);
    job.origins["checkpoint.format"] = "job.toml:7";
    const auto refusal = [&](std::int64_t rows) -> std::string {
        try {
            plan_save(flat_layout({{"classifier.0.weight", rows, 1024, 0, true, 2}}, 2, 2), job);
        } catch (const job::JobError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(refusal((1 << 19) - 1), "");
    EXPECT_THAT(refusal(1 << 19),
                AllOf(HasSubstr("job.toml:7: checkpoint.format: dcp has classifier.0.weight in one archive"),
                      HasSubstr("its 2147483648 bytes are more than the 2147483647 of an archive; set "
                                "checkpoint.format to safetensors or full")));
    job.checkpoint.format = job::CheckpointFormat::safetensors;
    EXPECT_EQ(refusal(1 << 19), "");
}

// What a rank has of a weight that is cut by its columns is one box.
TEST(Dcp, ColumnsAreOneBoxOfARank) {
    const Shapes shapes = {{"w", 6, 8}};
    LayoutMaker maker(shapes, 2, 2);
    for (const int place : {0, 1}) {
        std::int64_t at = 0;
        for (const std::string& state : adam_states()) {
            for (int row = 0; row < 6; ++row, at += 16) {
                maker.add_at(place, {0, state, row * 8 + place * 4, 4, plan::Arg{0, at, 16}});
            }
        }
    }
    const RunLayout layout = maker.take();
    const TemporaryFolder folder;
    save_values(job_with(folder.string(), 2, job::CheckpointFormat::dcp), layout, 20);
    EXPECT_EQ(loaded(folder / "step-20", flat_layout(shapes, 1, 1), LoadUse::training), "");
    std::filesystem::remove(folder / "step-20/manifest.json");
    for (const ForeignTensor& tensor : read_foreign(folder / "step-20").tensors) {
        ASSERT_EQ(tensor.boxes.size(), 2U) << tensor.state;
        for (const StoredBox& box : tensor.boxes) EXPECT_EQ(box.sizes, (std::vector<std::int64_t>{6, 4}));
    }
    EXPECT_EQ(loaded(folder / "step-20", flat_layout(shapes, 3, 3), LoadUse::training), "");
}

// NovoGrad's: exp_avg_sq is one number of each parameter, which every place holds.
RunLayout novograd_layout(const Shapes& shapes, int ranks) {
    RunLayout layout = flat_layout(shapes, ranks, ranks, {"", "exp_avg"});
    for (std::vector<sharding::StatePiece>& place : layout.places) {
        std::int64_t end = place.back().where.offset + place.back().where.bytes + 4;
        for (int id = 0; id < std::ssize(shapes); ++id, end += 8)
            place.push_back({id, "exp_avg_sq", 0, 1, plan::Arg{0, end, 4}, true});
    }
    return layout;
}

TEST(Dcp, AStateOfOneNumberIsATensorOfOneElementInEveryFormat) {
    const Shapes shapes = model_with_filters();
    for (const job::CheckpointFormat format : kFormats) {
        SCOPED_TRACE(name_of(format));
        const TemporaryFolder folder;
        save_values(job_with(folder.string(), 2, format), novograd_layout(shapes, 2), 20);
        const std::filesystem::path saved = folder / "step-20";
        EXPECT_EQ(loaded(saved, novograd_layout(shapes, 3), LoadUse::training), "");
        if (format == job::CheckpointFormat::safetensors) {
            const ForeignCheckpoint others = read_foreign(saved / "optimizer.safetensors");
            ASSERT_EQ(others.tensors.size(), 2 * shapes.size());
            int numbers = 0;
            for (const ForeignTensor& state : others.tensors)
                numbers += state.name.ends_with("exp_avg_sq") && element_count(state.dims) == 1 ? 1 : 0;
            EXPECT_EQ(numbers, std::ssize(shapes));
        }
        if (format == job::CheckpointFormat::dcp) {
            std::filesystem::remove(saved / kManifestName);
            EXPECT_EQ(loaded(saved, novograd_layout(shapes, 3), LoadUse::training), "");
            EXPECT_THAT(refusal_of(saved, flat_layout(shapes, 1, 1), LoadUse::training),
                        HasSubstr("element 1 of exp_avg_sq of net.0.weight is not stored"));
        }
    }
}

// PyTorch's optimizers do not count the steps that a loss scale skips; the run does.
TEST(Dcp, TheStepOfItsOptimizerCountsUpdates) {
    const TemporaryFolder folder;
    SaveSettings settings;
    settings.loss_scale = [] { return ManifestLossScale{.scale = 1024, .clean = 2, .skipped = 3}; };
    save_values(job_with(folder.string(), 2, job::CheckpointFormat::dcp), flat_layout(small_model(), 2, 2),
                20, settings);
    EXPECT_EQ(StoredCheckpoint(folder.string()).manifest().step, 20);
    std::filesystem::remove(folder / "step-20" / kManifestName);
    EXPECT_EQ(StoredCheckpoint((folder / "step-20").string()).manifest().step, 17);
}

TEST(Dcp, TheNamesOfStateDictsMeanParametersAndTheirState) {
    const auto meaning = [](const char* name, const char* prefix) {
        const DcpName parsed = parse_dcp_name(name, prefix);
        return parsed.ignored ? "-" : parsed.path + " " + parsed.state;
    };
    EXPECT_EQ(meaning("model.net.0.weight", "model."), "net.0.weight ");
    EXPECT_EQ(meaning("optim.state.net.0.weight.exp_avg", "model."), "net.0.weight exp_avg");
    EXPECT_EQ(meaning("app.optim.state.net.0.weight.step", "app.model."), "net.0.weight step");
    EXPECT_EQ(meaning("state.w.momentum_buffer", ""), "w momentum_buffer");
    EXPECT_EQ(meaning("w", ""), "w ");
    EXPECT_EQ(meaning("scheduler.last", "model."), "-");
    EXPECT_EQ(meaning("state.w", ""), "-");
}

// --- checkpoints that are made by hand -------------------------------------------------------------------

struct HandMade {
    std::string name;
    TorchTensor tensor;
    std::vector<float> numbers;
};

std::string object(const std::string& type,
                   const std::vector<std::pair<std::string_view, std::string>>& entries) {
    return pickled::object(pickled::global("torch.distributed.checkpoint." + type.substr(0, type.find(' ')),
                                           type.substr(type.find(' ') + 1)),
                           pickled::members(entries));
}

std::string torch_size(const std::vector<std::int64_t>& sizes) {
    return pickled::call(pickled::global("torch", "Size"), {pickled::integers(sizes)});
}

// Every tensor is one box.
void make_dcp(const std::filesystem::path& folder, const std::vector<HandMade>& tensors) {
    using pickled::text;
    const std::string properties =
        pickled::object(pickled::global("torch.distributed.checkpoint.metadata", "TensorProperties"),
                        pickled::tuple({pickled::global("torch", "float32")}));
    std::string file;
    pickled::Entries entries, places;
    for (const HandMade& made : tensors) {
        const std::string sizes = torch_size(made.tensor.sizes),
                          begin = torch_size(std::vector<std::int64_t>(made.tensor.sizes.size(), 0));
        std::string numbers(4 * made.numbers.size(), '\0');
        std::memcpy(numbers.data(), made.numbers.data(), numbers.size());
        const std::string bytes = torch_tensor(made.tensor, numbers);
        const std::string box =
            object("metadata ChunkStorageMetadata", {{"offsets", begin}, {"sizes", sizes}});
        entries.emplace_back(
            text(made.name),
            object("metadata TensorStorageMetadata",
                   {{"properties", properties}, {"size", sizes}, {"chunks", pickled::list({box})}}));
        places.emplace_back(
            object("metadata MetadataIndex", {{"fqn", text(made.name)}, {"offset", begin}}),
            object("filesystem _StorageInfo", {{"relative_path", text("data")},
                                               {"offset", pickled::integer(std::ssize(file))},
                                               {"length", pickled::integer(std::ssize(bytes))}}));
        file += bytes;
    }
    put(folder / "data", file);
    put(folder / ".metadata",
        pickled::whole(object("metadata Metadata", {{"state_dict_metadata", pickled::dictionary(entries)},
                                                    {"storage_data", pickled::dictionary(places)}})));
}

// A weight of 3 x 4 whose columns are neighbours in the file, as after w.t().
TEST(Dcp, ReadsTransposedTensorsAndAStepOfOneElement) {
    std::vector<HandMade> tensors = {{"optim.state.w.step", {.sizes = {1}, .strides = {1}}, {5}}};
    for (const std::string& state : adam_states()) {
        HandMade made{
            state.empty() ? "model.w" : "optim.state.w." + state, {.sizes = {3, 4}, .strides = {1, 3}}, {}};
        for (int column = 0; column < 4; ++column)
            for (int row = 0; row < 3; ++row) made.numbers.push_back(value_of(0, state, row * 4 + column));
        tensors.push_back(std::move(made));
    }
    const TemporaryFolder folder;
    make_dcp(folder.string(), tensors);
    for (const int ranks : {1, 2, 5})
        EXPECT_EQ(loaded(folder.string(), flat_layout({{"w", 3, 4}}, ranks, ranks), LoadUse::training), "");
    LayoutMaker columns({{"w", 3, 4}}, 2, 2);  // two of each row
    for (const int place : {0, 1}) {
        for (const std::string& state : adam_states())
            for (int row = 0; row < 3; ++row) columns.add(place, 0, state, row * 4 + place * 2, 2);
    }
    EXPECT_EQ(loaded(folder.string(), columns.take(), LoadUse::training), "");
    EXPECT_EQ(StoredCheckpoint(folder.string()).manifest().step, 5);
}

TEST(Dcp, OfImpossibleSizesIsRefused) {
    const TemporaryFolder folder;
    const auto refused = [&](const HandMade& made) {
        make_dcp(folder.string(), {made});
        return refusal_of(folder.string(), flat_layout({{"w", 1, 1}}, 1, 1), LoadUse::weights);
    };
    EXPECT_THAT(refused({"optim.state.w.step", {.sizes = {2}, .strides = {1}}, {5, 5}}),
                HasSubstr("optim.state.w.step is [2], not a number of steps"));
    const std::vector<std::int64_t> ones(17, 1);
    EXPECT_THAT(refused({"model.w", {.sizes = ones, .strides = ones}, {1}}),
                HasSubstr("model.w has an impossible size"));
    // No element: no offset of one is computed.
    EXPECT_THAT(refused({"model.w", {.sizes = {0, 1LL << 47, 1LL << 47}, .strides = {1, 1LL << 47, 1}}, {}}),
                HasSubstr(".metadata: w is [0, "));
}

// A copy of dcp_fp32 that a test damages.
class DamagedDcp : public ::testing::Test {
  protected:
    DamagedDcp() { std::filesystem::copy(fixture("dcp_fp32"), copy_); }

    std::string refused() const { return refusal_of(copy_, layout_, LoadUse::training); }
    std::string refused_with(const std::string& metadata) const {
        put(copy_ / ".metadata", metadata);
        return refused();
    }
    // Replaces one text of the pickle by another of the same length.
    std::string refused_with(const std::string& before, const std::string& after) const {
        std::string bytes = bytes_of(fixture("dcp_fp32/.metadata"));
        const std::size_t at = bytes.find(before);
        EXPECT_NE(at, std::string::npos) << before;
        EXPECT_EQ(before.size(), after.size());
        return refused_with(bytes.replace(at, before.size(), after));
    }

    TemporaryFolder folder_;
    std::filesystem::path copy_ = folder_ / "copy";
    RunLayout layout_ = flat_layout(model_with_filters(), 2, 2);
};

TEST_F(DamagedDcp, LoadsWhileItIsIntact) {
    EXPECT_EQ(refused(), "");
}

TEST_F(DamagedDcp, IsRefusedAtEveryLengthOfItsMetadata) {
    const std::string whole = bytes_of(copy_ / ".metadata");
    for (std::size_t length = 0; length < whole.size(); length += 7)
        EXPECT_THAT(refused_with(whole.substr(0, length)), HasSubstr(".metadata")) << length;
}

// A length within the last tensor's archive, and within an earlier one's.
TEST_F(DamagedDcp, IsRefusedWhenItsTensorsAreCutOff) {
    const std::string whole = bytes_of(copy_ / "__0_0.distcp");
    for (const std::size_t length : {std::size_t{0}, std::size_t{1000}, whole.size() / 2, whole.size() - 1}) {
        put(copy_ / "__0_0.distcp", whole.substr(0, length));
        EXPECT_THAT(refused(), AllOf(HasSubstr("__0_0.distcp"), HasSubstr("cut off"))) << length;
    }
    std::filesystem::remove(copy_ / "__0_0.distcp");
    EXPECT_THAT(refused(), HasSubstr("__0_0.distcp: cannot be read: No such file"));
}

// Flips a bit of some bytes: it is refused with a sentence or loads something; it never fails otherwise.
TEST_F(DamagedDcp, IsRefusedOrReadWhateverBitIsFlipped) {
    layout_ = flat_layout(small_model(), 1, 1);
    const std::string metadata = bytes_of(copy_ / ".metadata");
    for (std::size_t at = 0; at < metadata.size(); at += 23) {
        std::string changed = metadata;
        changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
        refused_with(changed);
    }
    put(copy_ / ".metadata", metadata);
    const std::string tensors = bytes_of(copy_ / "__0_0.distcp");
    for (std::size_t at = 0; at < tensors.size(); at += 97) {
        std::string changed = tensors;
        changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
        put(copy_ / "__0_0.distcp", changed);
        refused();
    }
}

TEST_F(DamagedDcp, IsRefusedWithWhatIsWrong) {
    EXPECT_THAT(
        refused_with("TensorStorageMetadata", "TensorStorageMetadatb"),
        AllOf(HasSubstr(".metadata"),
              HasSubstr("would import torch.distributed.checkpoint.metadata.TensorStorageMetadatb, and a "
                        "file of this format names other classes only")));
    EXPECT_THAT(refused_with("cos\nsystem\n."), HasSubstr("import os.system"));
    EXPECT_THAT(refused_with("model.net.0.bias", "model.net.0.bios"),
                HasSubstr(".metadata: has the optimizer's state of net.0.bias, but not its values"));
    EXPECT_THAT(refused_with("N."), HasSubstr("is not the metadata of torch.distributed.checkpoint"));
    EXPECT_THAT(refused_with("__0_0.distcp", "../_0.distcp"), HasSubstr("is not in a file of its folder"));
    EXPECT_THAT(
        refused_with("float32", "float64"),
        HasSubstr("model.net.0.weight is a FloatStorage of [7, 5] there, and .metadata says torch.float64 "
                  "of [7, 5]"));
}

TEST_F(DamagedDcp, ThatLacksATensorIsRefused) {
    std::filesystem::remove_all(copy_);
    Shapes shapes = model_with_filters();
    shapes.push_back({"more", 3, 1});
    const RunLayout larger = flat_layout(shapes, 1, 1);
    EXPECT_THAT(refusal_of(fixture("dcp_fp32"), larger, LoadUse::training),
                HasSubstr(".metadata: more of the job's model is not in it; set the model's keys"));
    EXPECT_THAT(refusal_of(fixture("dcp_fp32"), flat_layout(small_model(), 1, 1), LoadUse::training),
                HasSubstr(".metadata: it has conv.weight, which the job's model does not have"));
    shapes = model_with_filters();
    shapes[0] = {"net.0.weight", 5, 7};
    EXPECT_THAT(refusal_of(fixture("dcp_fp32"), flat_layout(shapes, 1, 1), LoadUse::training),
                HasSubstr("net.0.weight is [7, 5] there and [5, 7] in the job's model"));
    EXPECT_THAT(refusal_of(fixture("dcp_app"), layout_, LoadUse::training),
                HasSubstr("the job's optimizer needs exp_avg, which is not in it"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
