// Checkpoints under the names of Hugging Face's transformers: files that it wrote
// (tests/fixtures/make_checkpoints.py), and ours under the same names.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/trainer/foreign_testing.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/foreign.h"
#include "trainer/checkpoint/hugging_face.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Stored {
    std::vector<std::int64_t> dims;
    std::vector<float> numbers;
    float at(std::int64_t row, std::int64_t column) const {
        return numbers.at(static_cast<std::size_t>(row * dims.at(1) + column));
    }
};

std::map<std::string, Stored> tensors_of(const std::filesystem::path& file) {
    const std::string bytes = bytes_of(file);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    std::map<std::string, Stored> tensors;
    const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
    for (const auto& [name, entry] : header.items()) {
        if (name == "__metadata__") continue;
        const auto range = entry.at("data_offsets").get<std::vector<std::size_t>>();
        Stored& stored = tensors[name];
        stored.dims = entry.at("shape").get<std::vector<std::int64_t>>();
        stored.numbers.resize((range.at(1) - range.at(0)) / 4);
        std::memcpy(stored.numbers.data(), bytes.data() + 8 + length + range[0], 4 * stored.numbers.size());
    }
    return tensors;
}

struct Family {
    job::ModelType type;
    std::string name, layers;
    Shapes shapes;
};

// Our models of the fixtures' sizes: two layers, five tokens, three positions.
Family family_of(job::ModelType type) {
    const auto norm = [](Shapes& shapes, const std::string& path, std::int64_t width, bool bias) {
        shapes.push_back({path + ".weight", width, 1});
        if (bias) shapes.push_back({path + ".bias", width, 1});
    };
    const auto linear = [](Shapes& shapes, const std::string& path, std::int64_t in, std::int64_t out,
                           bool bias) {
        shapes.push_back({path + ".weight", out, in});
        if (bias) shapes.push_back({path + ".bias", out, 1});
    };
    const bool llama = type == job::ModelType::llama, bert = type == job::ModelType::bert;
    Family family{type, llama ? "llama" : bert ? "bert" : "gpt", bert ? "layers." : "blocks.", {}};
    Shapes& shapes = family.shapes;
    const std::int64_t width = llama ? 8 : 4, hidden = type == job::ModelType::gpt ? 16 : 6;
    shapes.push_back({"token_embedding.weight", 5, width});
    if (!llama) shapes.push_back({"position_embedding.weight", 3, width});
    if (bert) norm(shapes, "embedding_norm", width, true);
    for (const char* number : {"0", "1"}) {
        const std::string block = family.layers + number + ".";
        norm(shapes, block + "norm_1", width, !llama);
        linear(shapes, block + "attention.qkv", width, llama ? 16 : 3 * width, !llama);
        linear(shapes, block + "attention.projection", width, width, !llama);
        norm(shapes, block + "norm_2", width, !llama);
        const std::string forward = block + "feed_forward.";
        if (llama) {
            linear(shapes, forward + "w1", width, hidden, false);
            linear(shapes, forward + "w3", width, hidden, false);
            linear(shapes, forward + "w2", hidden, width, false);
        } else {
            linear(shapes, forward + "expand", width, hidden, true);
            linear(shapes, forward + "projection", hidden, width, true);
        }
    }
    if (bert) linear(shapes, "transform", width, width, true);
    norm(shapes, "norm", width, !llama);
    if (llama) linear(shapes, "head", width, 5, false);
    return family;
}

job::Job job_of(const Family& family, const std::string& save = "", int ranks = 1) {
    job::Job job = job_with(save, ranks, job::CheckpointFormat::safetensors);
    job.model.type = family.type;
    job.checkpoint.names = job::CheckpointNames::huggingface;
    return job;
}

class HuggingFaceFiles : public ::testing::TestWithParam<job::ModelType> {
  protected:
    // The whole parameters of a run of one rank that has read the file.
    std::map<std::string, std::vector<float>> read(const std::filesystem::path& from) {
        const RunLayout layout = flat_layout(family_.shapes, 1, 1);
        const StoredCheckpoint stored(from.string());
        const CheckpointLoader loader(stored, job_of(family_), layout, LoadUse::weights);
        unused_ = loader.unused();
        Memory memory(layout);
        loader.fill(0, memory.of(0));
        std::map<std::string, std::vector<float>> values;
        for (const sharding::StatePiece& piece : layout.places[0]) {
            if (!piece.state.empty()) continue;
            const plan::HostView view = memory.of(0)(piece.where);
            std::vector<float>& numbers =
                values[family_.shapes[static_cast<std::size_t>(piece.parameter)].path];
            numbers.resize(static_cast<std::size_t>(piece.elements));
            std::memcpy(numbers.data(), view.bytes().data(), 4 * numbers.size());
        }
        return values;
    }

    const Family family_ = family_of(GetParam());
    const std::filesystem::path file_ = fixture("hugging_face_" + family_.name) / "model.safetensors";
    std::vector<std::string> unused_;
};
INSTANTIATE_TEST_SUITE_P(Of, HuggingFaceFiles,
                         ::testing::Values(job::ModelType::gpt, job::ModelType::llama, job::ModelType::bert),
                         [](const auto& of) { return family_of(of.param).name; });

// Rows of queries, keys and values, and transposed weights, one by one.
TEST_P(HuggingFaceFiles, AreReadWhereTheyBelong) {
    const std::map<std::string, std::vector<float>> ours = read(file_);
    const std::map<std::string, Stored> theirs = tensors_of(file_);
    const std::int64_t width = family_.type == job::ModelType::llama ? 8 : 4;
    const auto at = [&](const std::string& path, std::int64_t row, std::int64_t column) {
        return ours.at(path).at(static_cast<std::size_t>(row * width + column));
    };
    if (family_.type == job::ModelType::gpt) {
        EXPECT_THAT(unused_, IsEmpty());
        for (int row = 0; row < 12; ++row) {
            for (int column = 0; column < 4; ++column) {
                EXPECT_EQ(at("blocks.1.attention.qkv.weight", row, column),
                          theirs.at("transformer.h.1.attn.c_attn.weight").at(column, row));
            }
        }
        EXPECT_EQ(ours.at("blocks.1.attention.qkv.bias"),
                  theirs.at("transformer.h.1.attn.c_attn.bias").numbers);
        for (int row = 0; row < 16; ++row) {
            EXPECT_EQ(at("blocks.0.feed_forward.expand.weight", row, 3),
                      theirs.at("transformer.h.0.mlp.c_fc.weight").at(3, row));
        }
        EXPECT_EQ(ours.at("position_embedding.weight"), theirs.at("transformer.wpe.weight").numbers);
        EXPECT_EQ(ours.at("norm.bias"), theirs.at("transformer.ln_f.bias").numbers);
        return;
    }
    const std::string attention = family_.type == job::ModelType::llama
                                      ? "model.layers.1.self_attn."
                                      : "bert.encoder.layer.1.attention.self.";
    const std::string end = family_.type == job::ModelType::llama ? "_proj.weight" : ".weight";
    const bool short_names = family_.type == job::ModelType::llama;
    const std::int64_t keys = 4, queries = width;
    const std::string qkv = family_.layers + "1.attention.qkv.weight";
    for (std::int64_t column = 0; column < width; ++column) {
        for (std::int64_t row = 0; row < queries; ++row) {
            EXPECT_EQ(at(qkv, row, column),
                      theirs.at(attention + (short_names ? "q" : "query") + end).at(row, column));
        }
        for (std::int64_t row = 0; row < keys; ++row) {
            EXPECT_EQ(at(qkv, queries + row, column),
                      theirs.at(attention + (short_names ? "k" : "key") + end).at(row, column));
            EXPECT_EQ(at(qkv, queries + keys + row, column),
                      theirs.at(attention + (short_names ? "v" : "value") + end).at(row, column));
        }
    }
    if (short_names) {
        EXPECT_THAT(unused_, IsEmpty());
        EXPECT_EQ(ours.at("blocks.0.feed_forward.w1.weight"),
                  theirs.at("model.layers.0.mlp.gate_proj.weight").numbers);
        EXPECT_EQ(ours.at("blocks.0.feed_forward.w2.weight"),
                  theirs.at("model.layers.0.mlp.down_proj.weight").numbers);
        EXPECT_EQ(ours.at("blocks.0.feed_forward.w3.weight"),
                  theirs.at("model.layers.0.mlp.up_proj.weight").numbers);
        EXPECT_EQ(ours.at("head.weight"), theirs.at("lm_head.weight").numbers);
    } else {
        EXPECT_THAT(unused_,
                    ElementsAre("bert.embeddings.token_type_embeddings.weight", "cls.predictions.bias"));
        EXPECT_EQ(ours.at("layers.0.norm_1.weight"),
                  theirs.at("bert.encoder.layer.0.attention.output.LayerNorm.weight").numbers);
        EXPECT_EQ(ours.at("norm.bias"), theirs.at("cls.predictions.transform.LayerNorm.bias").numbers);
        std::vector<float> biases;
        for (const char* each : {"query", "key", "value"}) {
            const std::vector<float>& numbers = theirs.at(attention + each + ".bias").numbers;
            biases.insert(biases.end(), numbers.begin(), numbers.end());
        }
        EXPECT_EQ(ours.at("layers.1.attention.qkv.bias"), biases);
    }
}

// Read, written by some ranks whose pieces end anywhere, and compared with the file: each tensor is what it
// was, and those that our BERT lacks are zeros.
TEST_P(HuggingFaceFiles, AreWrittenAsTransformersWritesThem) {
    for (const int ranks : {1, 3}) {
        const RunLayout layout = flat_layout(family_.shapes, ranks, ranks);
        const StoredCheckpoint stored(file_.string());
        const CheckpointLoader loader(stored, job_of(family_), layout, LoadUse::weights);
        Memory memory(layout);
        for (int rank = 0; rank < ranks; ++rank) loader.fill(rank, memory.of(rank));
        const TemporaryFolder folder;
        const std::vector<SaveReport> reports =
            save(job_of(family_, folder.string(), ranks), layout, memory, 7);
        ASSERT_EQ(reports.size(), 1U);
        ASSERT_EQ(reports.front().error, "");
        const std::map<std::string, Stored> theirs = tensors_of(file_),
                                            ours = tensors_of(folder / "step-7/model.safetensors");
        ASSERT_EQ(ours.size(), theirs.size());
        for (const auto& [name, stored_there] : theirs) {
            ASSERT_TRUE(ours.contains(name)) << name;
            EXPECT_EQ(ours.at(name).dims, stored_there.dims) << name;
            const bool lacks =
                name == "bert.embeddings.token_type_embeddings.weight" || name == "cls.predictions.bias";
            EXPECT_EQ(ours.at(name).numbers,
                      lacks ? std::vector<float>(stored_there.numbers.size()) : stored_there.numbers)
                << name;
        }
        // The manifest says where our parameters and their state are in these files.
        Memory again(layout);
        const StoredCheckpoint own((folder / "step-7").string());
        const CheckpointLoader back(own, job_of(family_), layout, LoadUse::training);
        for (int rank = 0; rank < ranks; ++rank) back.fill(rank, again.of(rank));
        EXPECT_EQ(read(folder / "step-7"), read(file_));
    }
}

TEST_P(HuggingFaceFiles, TheStateOfTheOptimizerGoesWithThem) {
    for (const int ranks : {1, 3}) {
        const TemporaryFolder folder;
        save_values(job_of(family_, folder.string(), ranks), flat_layout(family_.shapes, ranks, ranks), 7);
        EXPECT_EQ(loaded(folder / "step-7", flat_layout(family_.shapes, 2, 2), LoadUse::training), "");
    }
}

TEST(HuggingFaceNames, OfTheBaseClassLackItsPrefix) {
    const std::optional<HuggingFace> bare =
        HuggingFace::in_file(job::ModelType::gpt, {"wte.weight", "h.0.ln_1.bias"});
    ASSERT_TRUE(bare);
    EXPECT_EQ(bare->forms({"blocks.11.norm_1.bias", 4, 1}).at(0).name, "h.11.ln_1.bias");
    EXPECT_FALSE(HuggingFace::in_file(job::ModelType::gpt, {"token_embedding.weight"}));
    EXPECT_FALSE(HuggingFace::in_file(job::ModelType::mlp, {"wte.weight"}));
    EXPECT_EQ(modern_name("bert.embeddings.LayerNorm.gamma"), "bert.embeddings.LayerNorm.weight");
    EXPECT_EQ(modern_name("bert.embeddings.LayerNorm.beta"), "bert.embeddings.LayerNorm.bias");
    EXPECT_EQ(modern_name("h.0.ln_1.bias"), "h.0.ln_1.bias");
}

// Older versions keep constants beside the parameters.
TEST(HuggingFaceNames, OfConstantsAreIgnored) {
    for (const char* constant :
         {"h.0.attn.bias", "transformer.h.0.attn.masked_bias", "model.layers.0.self_attn.rotary_emb.inv_freq",
          "bert.embeddings.position_ids"})
        EXPECT_TRUE(is_ignored(constant)) << constant;
    for (const char* parameter : {"h.0.attn.c_attn.bias", "transformer.h.0.attn.c_proj.bias",
                                  "bert.encoder.layer.0.attention.self.query.bias"})
        EXPECT_FALSE(is_ignored(parameter)) << parameter;
}

TEST(HuggingFaceNames, OfAnotherSizeOrHeadAreRefusedByName) {
    Family family = family_of(job::ModelType::gpt);
    const auto refusal = [&](const std::string& of) {
        const RunLayout layout = flat_layout(family.shapes, 1, 1);
        try {
            const StoredCheckpoint stored(fixture("hugging_face_" + of).string());
            const CheckpointLoader loader(stored, job_of(family), layout, LoadUse::weights);
        } catch (const CheckpointError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(refusal("gpt"), "");
    EXPECT_THAT(refusal("llama"), HasSubstr("token_embedding.weight of the job's model is not in it"));
    family.shapes.push_back({"head.weight", 5, 4});
    EXPECT_THAT(
        refusal("gpt"),
        HasSubstr("lm_head.weight of the job's model is not in it, as its head is tied to its embedding; set "
                  "model.tied_embeddings = true"));
    family.shapes.pop_back();
    const auto expand = std::find_if(family.shapes.begin(), family.shapes.end(), [](const ParameterShape& s) {
        return s.path == "blocks.0.feed_forward.expand.weight";
    });
    expand->rows = 12;
    EXPECT_THAT(refusal("gpt"),
                HasSubstr("transformer.h.0.mlp.c_fc.weight is [4, 16] there and [4, 12] in the "
                          "job's model"));
    family = family_of(job::ModelType::llama);
    family.shapes.pop_back();
    EXPECT_THAT(refusal("llama"), HasSubstr("set model.tied_embeddings = false"));
}

// A head that is tied has no tensor, and neither has the class without a head.
TEST(HuggingFaceNames, OfAHeadSayWhatToSet) {
    // The model's file, after `change` of its tensors' names and dimensions.
    const auto refusal = [](const Family& family, const auto& change) -> std::string {
        ForeignCheckpoint checkpoint =
            read_foreign(fixture("hugging_face_" + family.name) / "model.safetensors");
        change(checkpoint.tensors);
        try {
            const Bound bound = bind(checkpoint, flat_layout(family.shapes, 1, 1), family.type);
            return "unused:" + std::to_string(bound.unused.size());
        } catch (const CheckpointError& error) {
            return error.what();
        }
    };
    using Tensors = std::vector<ForeignTensor>;
    const auto as_it_is = [](Tensors&) {};
    const auto rename = [](Tensors& tensors, std::string_view prefix) {
        std::erase_if(tensors, [&](const ForeignTensor& each) { return !each.name.starts_with(prefix); });
        for (ForeignTensor& each : tensors) each.name.erase(0, prefix.size());
    };
    const auto add_like = [](Tensors& tensors, std::string_view like, const char* name) {
        const auto found = std::find_if(tensors.begin(), tensors.end(),
                                        [&](const ForeignTensor& each) { return each.name == like; });
        ForeignTensor added = *found;
        added.name = name;
        tensors.push_back(std::move(added));
    };

    Family bert = family_of(job::ModelType::bert);
    const auto with_bias = [&](Tensors& tensors) {
        add_like(tensors, "cls.predictions.bias", "cls.predictions.decoder.bias");
    };
    const auto with_decoder = [&](Tensors& tensors) {
        with_bias(tensors);
        add_like(tensors, "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight");
    };
    const auto bare_bert = [&](Tensors& tensors) { rename(tensors, "bert."); };
    EXPECT_EQ(refusal(bert, with_bias), "unused:3");
    EXPECT_THAT(
        refusal(bert, with_decoder),
        HasSubstr("it has cls.predictions.decoder.weight, which the job's model does not have, as its "
                  "head is tied to its embedding; set model.tied_embeddings = false"));
    EXPECT_THAT(refusal(bert, bare_bert),
                HasSubstr("cls.predictions.transform.dense.weight of the job's model is not in it, as it is "
                          "of a class without that head, such as BertModel; load a file of "
                          "BertForMaskedLM"));
    bert.shapes.push_back({"head.weight", 5, 4});
    EXPECT_EQ(refusal(bert, with_decoder), "unused:3");
    EXPECT_THAT(refusal(bert, as_it_is),
                HasSubstr("cls.predictions.decoder.weight of the job's model is not in it, as its head is "
                          "tied to its embedding; set model.tied_embeddings = true"));

    const Family llama = family_of(job::ModelType::llama);
    EXPECT_THAT(refusal(llama, [&](Tensors& tensors) { rename(tensors, "model."); }),
                AllOf(HasSubstr("lm_head.weight of the job's model is not in it, as it is of a class without "
                                "that head, such as LlamaModel; load a file of LlamaForCausalLM"),
                      ::testing::Not(HasSubstr("tied"))));
    const auto tied = [](Tensors& tensors) {
        std::erase_if(tensors, [](const ForeignTensor& each) { return each.name == "lm_head.weight"; });
    };
    EXPECT_THAT(refusal(llama, tied), HasSubstr("set model.tied_embeddings = true"));

    // GPT-2 itself is published as GPT2Model; its head is its embedding.
    Family gpt = family_of(job::ModelType::gpt);
    gpt.shapes.push_back({"head.weight", 5, 4});
    EXPECT_THAT(refusal(gpt, [&](Tensors& tensors) { rename(tensors, "transformer."); }),
                HasSubstr("set model.tied_embeddings = true"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
