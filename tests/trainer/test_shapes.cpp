// model.name: published shapes fill in the keys that a job does not set.
#include <string>

#include <gtest/gtest.h>

#include "trainer/job/job.h"
#include "trainer/job/shapes.h"

namespace shardscope::trainer::job {
namespace TEST_FILE {

Job parse(const std::string& model) {
    return parse_job("[model]\n" + model + "\n[data]\ntype = 'text'\npath = 'x'", "job.toml");
}

std::string error_of(const std::string& model) {
    try {
        parse(model);
    } catch (const JobError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Shapes, FillTheKeysOfTheModel) {
    const ModelSection gpt = parse("name = 'gpt2-xl'").model;
    EXPECT_EQ(gpt.type, ModelType::gpt);
    EXPECT_EQ(gpt.layers, 48);
    EXPECT_EQ(gpt.heads, 25);
    EXPECT_EQ(gpt.width, 1600);
    EXPECT_EQ(gpt.context, 1024);
    EXPECT_EQ(gpt.vocabulary, 50257);
    EXPECT_TRUE(gpt.tied_embeddings);

    const ModelSection llama = parse("name = 'llama-70b'").model;
    EXPECT_EQ(llama.type, ModelType::llama);
    EXPECT_EQ(llama.layers, 80);
    EXPECT_EQ(llama.heads, 64);
    EXPECT_EQ(llama.kv_heads, 8);
    EXPECT_EQ(llama.width, 8192);
    EXPECT_EQ(llama.vocabulary, 128256);
    EXPECT_FALSE(llama.tied_embeddings);
}

TEST(Shapes, KeepGivenKeys) {
    const ModelSection model =
        parse("name = 'llama-8b'\ntype = 'llama'\nlayers = 2\nvocabulary = 0\ntied_embeddings = true").model;
    EXPECT_EQ(model.layers, 2);
    EXPECT_EQ(model.vocabulary, 0);
    EXPECT_TRUE(model.tied_embeddings);
    EXPECT_EQ(model.width, 4096);
}

// A head is 64 features wide in all of GPT-2, and 64 or 128 in Llama.
TEST(Shapes, HaveHeadsOfTheUsualWidths) {
    for (const NamedShape& shape : named_shapes()) {
        if (!has_tokens(shape.type)) continue;
        ASSERT_EQ(shape.width % shape.heads, 0) << shape.name;
        const int head = shape.width / shape.heads;
        EXPECT_TRUE(head == 64 || (shape.type == ModelType::llama && head == 128)) << shape.name;
        EXPECT_EQ(find_shape(shape.name), &shape);
    }
}

TEST(Shapes, AnUnknownOneNamesTheNearest) {
    EXPECT_EQ(
        error_of("name = 'gtp2'"),
        "job.toml:2: model.name: \"gtp2\" is not a published shape; did you mean gpt2? the shapes are gpt2, "
        "gpt2-medium, gpt2-large, gpt2-xl, llama-1b, llama-8b, llama-70b, bert-base, bert-large, bert-2.5b, "
        "resnet18, resnet34, resnet50, resnet101, resnet152, vgg11, vgg13, vgg16, vgg19, vit_b_16, vit_b_32, "
        "vit_l_16, vit_l_32");
    EXPECT_EQ(
        error_of("name = 'abcdefgh'"),
        "job.toml:2: model.name: \"abcdefgh\" is not a published shape; the shapes are gpt2, gpt2-medium, "
        "gpt2-large, gpt2-xl, llama-1b, llama-8b, llama-70b, bert-base, bert-large, bert-2.5b, "
        "resnet18, resnet34, resnet50, resnet101, resnet152, vgg11, vgg13, vgg16, vgg19, vit_b_16, vit_b_32, "
        "vit_l_16, vit_l_32");
    EXPECT_EQ(find_shape(""), nullptr);
}

TEST(Shapes, OfAnotherTypeAreRefused) {
    EXPECT_EQ(error_of("name = 'gpt2'\ntype = 'llama'"),
              "job.toml:2: model.name: gpt2 is a gpt, but model.type differs; omit model.type");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::job
