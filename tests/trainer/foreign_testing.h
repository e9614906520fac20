// The model and the values of tests/fixtures/make_checkpoints.py, and what of them a checkpoint loads.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "tests/trainer/checkpoint_testing.h"
#include "trainer/checkpoint/error.h"
#include "trainer/kernels/bf16.h"

namespace shardscope::trainer::testing {

inline std::filesystem::path fixture(const std::string& name) {
    return std::filesystem::path(SHARDSCOPE_FIXTURES) / "checkpoints" / name;
}

// That a file is the one of a kept checkpoint of ours. With SHARDSCOPE_UPDATE_FIXTURES set it becomes that
// one; run make_checkpoints.py then, which checks that others can read it.
inline void expect_fixture(const std::filesystem::path& file, const std::filesystem::path& kept) {
    if (std::getenv("SHARDSCOPE_UPDATE_FIXTURES")) {
        std::filesystem::create_directories(kept.parent_path());
        put(kept, bytes_of(file));
    }
    EXPECT_EQ(bytes_of(file), bytes_of(kept)) << kept;
}

// small_model() and the filters of a convolution: 2 of 3 channels and 2 x 2.
inline Shapes model_with_filters() {
    Shapes shapes = small_model();
    shapes.push_back({"conv.weight", 2, 12, 2});
    return shapes;
}

// And a Linear that reads images of 6 pixels and 4 channels.
inline Shapes model_of_images() {
    Shapes shapes = model_with_filters();
    shapes.push_back({"classifier.weight", 3, 24, 0, true, 6});
    return shapes;
}

using Rounding = std::function<float(float)>;
inline float exact(float value) {
    return value;
}
inline float to_bf16_and_back(float value) {
    return kernels::to_float(kernels::to_bf16(value));
}

// Loads all ranks; "" if every element is the rounded value_of().
inline std::string loaded(const std::filesystem::path& path, const checkpoint::RunLayout& layout,
                          checkpoint::LoadUse use, const Rounding& rounded = exact) {
    const checkpoint::StoredCheckpoint stored(path.string());
    const checkpoint::CheckpointLoader loader(stored, job_with("", layout.mesh.ranks), layout, use);
    Memory memory(layout);
    for (int rank = 0; rank < layout.mesh.ranks; ++rank) loader.fill(rank, memory.of(rank));
    for (int rank = 0; rank < layout.mesh.ranks; ++rank) {
        for (const sharding::StatePiece& piece :
             layout.places[static_cast<std::size_t>(layout.place_of(rank))]) {
            if (use == checkpoint::LoadUse::weights && !piece.state.empty()) continue;
            const plan::HostView view = memory.of(rank)(piece.where);
            for (std::int64_t i = 0; i < piece.elements; ++i) {
                float found = 0;
                std::memcpy(&found, view.bytes().data() + 4 * i, sizeof found);
                const float expected = rounded(value_of(piece.parameter, piece.state, piece.first + i));
                if (found == expected) continue;
                return layout.parameters[static_cast<std::size_t>(piece.parameter)].path + " " + piece.state +
                       " [" + std::to_string(piece.first + i) + "] is " + std::to_string(found) + ", not " +
                       std::to_string(expected);
            }
        }
    }
    return "";
}

// What the loader says about it; nothing may have been written before.
inline std::string refusal_of(const std::filesystem::path& path, const checkpoint::RunLayout& layout,
                              checkpoint::LoadUse use) {
    Memory memory(layout);
    try {
        const checkpoint::StoredCheckpoint stored(path.string());
        const checkpoint::CheckpointLoader loader(stored, job_with("", layout.mesh.ranks), layout, use);
        for (int rank = 0; rank < layout.mesh.ranks; ++rank) loader.fill(rank, memory.of(rank));
    } catch (const checkpoint::CheckpointError& error) {
        EXPECT_TRUE(memory.untouched()) << error.what();
        return error.what();
    }
    return "";
}

}  // namespace shardscope::trainer::testing
