// Runs that consist only of memory: parameters laid out over ranks in several ways, where the value of each
// element identifies it. No model, no Plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/saver.h"

namespace shardscope::trainer::testing {

// A folder in memory if the system has such a file system, because saves wait for the disk.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        const std::filesystem::path memory = "/dev/shm";
        const bool has_memory = ::access(memory.c_str(), W_OK) == 0;
        std::string name =
            ((has_memory ? memory : std::filesystem::temp_directory_path()) / "checkpoint.XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    std::string string() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

inline std::string bytes_of(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline void put(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    stream.write(bytes.data(), std::ssize(bytes));
}

using Shapes = std::vector<checkpoint::ParameterShape>;

// The value of element `element` of a parameter or state: all elements of a small model differ, and all are
// exact in fp32 (below 2^24).
inline float value_of(int parameter, const std::string& state, std::int64_t element) {
    const int kind = state.empty() ? 0 : state == "exp_avg" ? 1 : 2;
    return static_cast<float>((parameter * 3 + kind) * 10'000 + element);
}

inline const std::vector<std::string>& adam_states() {
    static const std::vector<std::string> states = {"", "exp_avg", "exp_avg_sq"};
    return states;
}

// Lays out pieces in memory one after the other: a place's Arg names buffer 0 of its rank.
class LayoutMaker {
  public:
    LayoutMaker(Shapes shapes, int ranks, int shard) {
        layout_.mesh = {ranks, shard};
        layout_.parameters = std::move(shapes);
        layout_.places.resize(static_cast<std::size_t>(shard));
        ends_.resize(layout_.places.size());
    }
    const Shapes& shapes() const { return layout_.parameters; }

    void add(int place, int parameter, const std::string& state, std::int64_t first, std::int64_t elements) {
        std::int64_t& end = ends_[static_cast<std::size_t>(place)];
        layout_.places[static_cast<std::size_t>(place)].push_back(
            {parameter, state, first, elements, plan::Arg{0, end, 4 * elements}});
        end += 4 * elements + 4;  // leaves a gap of one foreign element
    }
    void add_at(int place, sharding::StatePiece piece) {
        layout_.places[static_cast<std::size_t>(place)].push_back(std::move(piece));
    }
    checkpoint::RunLayout take() { return std::move(layout_); }

  private:
    checkpoint::RunLayout layout_;
    std::vector<std::int64_t> ends_;
};

// FSDP's flat parameter: all parameters one after the other, padded, cut into equal pieces.
inline checkpoint::RunLayout flat_layout(const Shapes& shapes, int ranks, int shard,
                                         const std::vector<std::string>& states = adam_states()) {
    LayoutMaker maker(shapes, ranks, shard);
    std::int64_t total = 0;
    for (const checkpoint::ParameterShape& shape : shapes) total += shape.elements();
    const std::int64_t per_rank = (total + shard - 1) / shard;
    for (int place = 0; place < shard; ++place) {
        for (const std::string& state : states) {
            std::int64_t start = 0;
            for (int id = 0; id < std::ssize(shapes); ++id) {
                const std::int64_t elements = shapes[static_cast<std::size_t>(id)].elements();
                const std::int64_t first = std::clamp<std::int64_t>(place * per_rank - start, 0, elements);
                const std::int64_t last =
                    std::clamp<std::int64_t>((place + 1) * per_rank - start, 0, elements);
                maker.add(place, id, state, first, last - first);  // including the empty pieces
                start += elements;
            }
        }
    }
    return maker.take();
}

// FSDP2: every parameter's rows are cut as torch.chunk does, so that the last places may get none.
inline checkpoint::RunLayout row_layout(const Shapes& shapes, int ranks, int shard,
                                        const std::vector<std::string>& states = adam_states()) {
    LayoutMaker maker(shapes, ranks, shard);
    for (int place = 0; place < shard; ++place) {
        for (int id = 0; id < std::ssize(shapes); ++id) {
            const checkpoint::ParameterShape& shape = shapes[static_cast<std::size_t>(id)];
            const std::int64_t rows = (shape.rows + shard - 1) / shard;
            const std::int64_t first = std::min(place * rows, shape.rows);
            const std::int64_t last = std::min(first + rows, shape.rows);
            for (const std::string& state : states) {
                maker.add(place, id, state, first * shape.width, (last - first) * shape.width);
            }
        }
    }
    return maker.take();
}

// DDP: every rank holds everything.
inline checkpoint::RunLayout replicated_layout(const Shapes& shapes, int ranks,
                                               const std::vector<std::string>& states = adam_states()) {
    return flat_layout(shapes, ranks, 1, states);
}

// The parameters are whole on every place, their state is in random parts on random places, some on several.
inline checkpoint::RunLayout random_layout(const Shapes& shapes, int ranks, int shard, std::mt19937& random) {
    LayoutMaker maker(shapes, ranks, shard);
    std::uniform_int_distribution<int> any_place(0, shard - 1);
    for (int id = 0; id < std::ssize(shapes); ++id) {
        const std::int64_t elements = shapes[static_cast<std::size_t>(id)].elements();
        for (int place = 0; place < shard; ++place) maker.add(place, id, "", 0, elements);
        for (const char* state : {"exp_avg", "exp_avg_sq"}) {
            for (std::int64_t first = 0; first < elements;) {
                const std::int64_t count =
                    std::uniform_int_distribution<std::int64_t>(1, elements - first)(random);
                maker.add(any_place(random), id, state, first, count);
                if (random() % 3 == 0) {  // another place has a part of it as well
                    const std::int64_t skipped =
                        std::uniform_int_distribution<std::int64_t>(0, count - 1)(random);
                    maker.add(any_place(random), id, state, first + skipped, count - skipped);
                }
                first += count;
            }
        }
    }
    return maker.take();
}

// The memory of all ranks of a run.
class Memory {
  public:
    static constexpr float kStranger = -1;

    explicit Memory(const checkpoint::RunLayout& layout) : layout_(layout) {
        for (int rank = 0; rank < layout.mesh.ranks; ++rank) {
            std::int64_t end = 0;
            for (const sharding::StatePiece& piece : pieces(rank)) {
                end = std::max(end, piece.where.offset + piece.where.bytes + 4);
            }
            ranks_.emplace_back(static_cast<std::size_t>(end / 4), kStranger);
        }
    }

    void write_values() {
        for_each_element([](float& at, float value) { at = value; });
    }
    // Whether all values are in place and nothing else was modified.
    bool has_values() {
        bool all = true;
        Memory expected(layout_);
        expected.write_values();
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
            all = all && ranks_[rank] == expected.ranks_[rank];
        return all;
    }
    bool untouched() const {
        return std::all_of(ranks_.begin(), ranks_.end(), [](const std::vector<float>& each) {
            return std::all_of(each.begin(), each.end(), [](float value) { return value == kStranger; });
        });
    }
    checkpoint::RankMemory of(int rank) {
        return [this, rank](const plan::Arg& arg) {
            return plan::HostView(
                std::as_writable_bytes(std::span(ranks_[static_cast<std::size_t>(rank)]))
                    .subspan(static_cast<std::size_t>(arg.offset), static_cast<std::size_t>(arg.bytes)));
        };
    }

  private:
    const std::vector<sharding::StatePiece>& pieces(int rank) const {
        return layout_.places[static_cast<std::size_t>(layout_.mesh.shard_index(rank))];
    }
    template <class Function>
    void for_each_element(const Function& function) {
        for (int rank = 0; rank < layout_.mesh.ranks; ++rank) {
            for (const sharding::StatePiece& piece : pieces(rank)) {
                for (std::int64_t i = 0; i < piece.elements; ++i) {
                    function(ranks_[static_cast<std::size_t>(rank)]
                                   [static_cast<std::size_t>(piece.where.offset / 4 + i)],
                             value_of(piece.parameter, piece.state, piece.first + i));
                }
            }
        }
    }

    const checkpoint::RunLayout& layout_;
    std::vector<std::vector<float>> ranks_;
};

// A weight of 7 x 5, a bias of 7, a weight of 3 x 7 (uneven by 2, 3 and 8), a scalar.
inline Shapes small_model() {
    return {{"net.0.weight", 7, 5}, {"net.0.bias", 7, 1}, {"net.2.weight", 3, 7}, {"scale", 1, 1}};
}

inline constexpr job::CheckpointFormat kFormats[] = {
    job::CheckpointFormat::sharded, job::CheckpointFormat::full, job::CheckpointFormat::safetensors,
    job::CheckpointFormat::dcp};
inline std::string name_of(job::CheckpointFormat format) {
    static constexpr const char* kNames[] = {"sharded", "full", "safetensors", "dcp"};
    return kNames[static_cast<int>(format)];
}

inline job::Job job_with(const std::string& save, int ranks,
                         job::CheckpointFormat format = job::CheckpointFormat::sharded) {
    job::Job job;
    job.run.ranks = ranks;
    job.run.seed = 17;
    job.optimizer.type = job::OptimizerType::adamw;
    job.checkpoint.save = save;
    job.checkpoint.format = format;
    return job;
}

// All ranks save, each on a thread of its own. Returns what was reported.
inline std::vector<checkpoint::SaveReport> save(const job::Job& job, const checkpoint::RunLayout& layout,
                                                Memory& memory, std::int64_t step,
                                                checkpoint::SaveSettings settings = {}) {
    std::vector<checkpoint::SaveReport> reports;
    checkpoint::CheckpointSaver saver(
        job, layout, std::move(settings),
        [&](const checkpoint::SaveReport& report) { reports.push_back(report); });
    std::vector<std::thread> ranks;
    ranks.reserve(static_cast<std::size_t>(layout.mesh.ranks));
    for (int rank = 0; rank < layout.mesh.ranks; ++rank) {
        ranks.emplace_back([&, rank] { saver.save(rank, step, memory.of(rank)); });
    }
    for (std::thread& rank : ranks) rank.join();
    return reports;
}

inline void save_values(const job::Job& job, const checkpoint::RunLayout& layout, std::int64_t step,
                        checkpoint::SaveSettings settings = {}) {
    Memory memory(layout);
    memory.write_values();
    const std::vector<checkpoint::SaveReport> reports = save(job, layout, memory, step, std::move(settings));
    if (reports.size() != 1 || !reports.front().error.empty()) {
        throw std::runtime_error("not saved: " + (reports.empty() ? "no report" : reports.front().error));
    }
}

}  // namespace shardscope::trainer::testing
