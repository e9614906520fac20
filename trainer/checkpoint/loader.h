// Loads a checkpoint into a run of any number of ranks, strategy, wrap policy and layout: for each piece of a
// parameter that a rank holds, it reads the stored pieces that overlap it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/foreign.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/open_files.h"
#include "trainer/checkpoint/run_layout.h"
#include "trainer/checkpoint/strided_read.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::checkpoint {

// A checkpoint whose manifest and files exist and have the right sizes. Its values have not been read yet.
class StoredCheckpoint {
  public:
    // `path`: a checkpoint's folder or a checkpoint.save folder, or another library's (foreign.h).
    // CheckpointError names the file that is at fault.
    explicit StoredCheckpoint(const std::string& path);

    const std::filesystem::path& folder() const { return folder_; }
    const Manifest& manifest() const { return manifest_; }
    // Another library's, of which the manifest has only the files and the step; null: it is ours.
    const ForeignCheckpoint* foreign() const { return foreign_ ? &*foreign_ : nullptr; }
    // What it contains and where, which is the same for every copy.
    std::string text() const { return foreign_ ? to_text(*foreign_) : to_text(manifest_); }
    // The vocabulary's text; empty: the text is bytes, or the job has no text.
    const std::string& tokenizer() const { return tokenizer_; }

    // The file that says what is where: manifest.json, or another library's.
    const std::filesystem::path& manifest_path() const { return manifest_path_; }
    std::shared_ptr<const File> file(std::size_t index) const { return files_.file(index); }
    std::filesystem::path file_path(std::size_t index) const {
        return manifest_path_.parent_path() / manifest_.files[index].name;
    }

  private:
    std::filesystem::path folder_, manifest_path_;
    Manifest manifest_;
    std::optional<ForeignCheckpoint> foreign_;
    OpenFiles files_;
    std::string tokenizer_;
};

enum class LoadUse : std::uint8_t {
    training,  // parameters and the optimizer's state
    weights,   // parameters only
};

class CheckpointLoader {
  public:
    // Checks that the checkpoint has exactly what the run's ranks hold, and that every value to be read is
    // intact; with `only_rank`, the only rank that will be filled, the values of that rank. CheckpointError:
    // the checkpoint has another model or optimizer, or values are missing or damaged; nothing has been
    // loaded. `stored` must outlive the loader.
    CheckpointLoader(const StoredCheckpoint& stored, const job::Job& job, RunLayout layout, LoadUse use,
                     std::optional<int> only_rank = std::nullopt);

    // Where training continues: the steps done, and the offset of micro-steps' sample numbers, so that the
    // sampler continues where it stopped even with another number of ranks, batch or accumulation: samples
    // done after step n = n * job.samples_per_step() + sample_offset.
    std::int64_t step() const { return stored_.manifest().step; }
    std::int64_t sample_offset() const { return sample_offset_; }

    // The tensors of another library's checkpoint that the run's model lacks, and does not need.
    const std::vector<std::string>& unused() const { return bound_.unused; }

    // Writes the values of one rank, on any thread; the buffers are allocated and idle. CheckpointError if a
    // file can no longer be read.
    void fill(int rank, const RankMemory& memory) const;

  private:
    void check_parameters(const job::Job& job);
    void check_optimizer(const job::Job& job) const;
    void check_whole(const ManifestParameter& parameter, const std::string& state,
                     std::int64_t elements) const;
    std::set<const ManifestPiece*> pieces_of(int rank) const;
    void check_values(std::optional<int> only_rank) const;
    void check(const ManifestPiece& piece, const ManifestParameter& parameter) const;
    void read(std::span<const sharding::StatePiece> pieces, const RankMemory& memory) const;
    void read(const sharding::StatePiece& piece, std::span<std::byte> to,
              std::map<std::size_t, std::vector<StridedRun>>& apart) const;
    bool wanted(const std::string& state) const { return use_ == LoadUse::training || state.empty(); }
    [[noreturn]] void refuse(const std::string& what) const;

    const StoredCheckpoint& stored_;
    const RunLayout layout_;
    const LoadUse use_;
    std::int64_t sample_offset_ = 0;
    Bound bound_;                                       // of another library's
    std::vector<const ManifestParameter*> parameters_;  // indexed by the run's parameter id
};

}  // namespace shardscope::trainer::checkpoint
