// Published shapes of language models and of networks for images, selected by model.name.
#pragma once

#include <span>
#include <string_view>

#include "trainer/job/job.h"

namespace shardscope::trainer::job {

struct NamedShape {
    std::string_view name;
    ModelType type = ModelType::gpt;
    int layers = 0, heads = 0;  // layers of a resnet and a vgg: its depth
    int kv_heads = 0;           // 0: as many as heads
    int width = 0;
    int feed_forward = 0;  // features inside the feed-forward part
    int context = 0, vocabulary = 0;
    bool tied = false;
    double rotary_base = 0;  // llama
    int patch = 0;           // vit: pixels of a side
    double dropout = 0;
};

std::span<const NamedShape> named_shapes();

// Null if there is no shape of that name.
const NamedShape* find_shape(std::string_view name);

// The error for an unknown name such as "gpt-2", with the name that was probably meant.
std::string unknown_shape(std::string_view name);

}  // namespace shardscope::trainer::job
