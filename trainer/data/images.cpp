#include "trainer/data/images.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "trainer/data/text_files.h"
#include "trainer/job/job.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::data {

namespace {

using kernels::stream_of;

constexpr std::size_t kChannels = job::kImageChannels;
constexpr std::size_t kPatches = 4;  // of a class's pattern, along a side
constexpr std::size_t kPattern = kPatches * kPatches * kChannels;
constexpr std::uint64_t kBlock = 64;  // random numbers that the generator makes at a time

constexpr std::uint64_t whole_blocks(std::uint64_t n) {
    return (n + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

SyntheticImages::SyntheticImages(std::int64_t seed, int side, int classes)
    : seed_(static_cast<std::uint64_t>(seed)),
      side_(static_cast<std::size_t>(side)),
      classes_(static_cast<std::uint64_t>(classes)) {}

std::int64_t SyntheticImages::input_bytes() const {
    return static_cast<std::int64_t>(side_ * side_ * kChannels * sizeof(float));
}

std::int64_t SyntheticImages::target_bytes() const {
    return sizeof(std::int32_t);
}

void SyntheticImages::fill(std::int64_t first_sample, int count, void* input, void* target) const {
    auto* image = static_cast<float*>(input);
    auto* label = static_cast<std::int32_t*>(target);
    for (int i = 0; i < count; ++i, image += side_ * side_ * kChannels)
        *label++ = fill_one(static_cast<std::uint64_t>(first_sample + i), image);
}

std::int32_t SyntheticImages::fill_one(std::uint64_t sample, float* image) const {
    const std::uint64_t label =
        (kernels::random_bits(seed_, stream_of("data.images.label"), sample) >> 32) % classes_;
    std::array<float, kPattern> pattern{};
    kernels::fill_normal(pattern.data(), kPattern, seed_, stream_of("data.images.pattern"),
                         label * whole_blocks(kPattern), 0.0F, 1.0F);
    const std::size_t n = side_ * side_ * kChannels;
    kernels::fill_normal(image, n, seed_, stream_of("data.images.noise"), sample * whole_blocks(n), 0.0F,
                         1.0F);
    for (std::size_t y = 0; y < side_; ++y) {
        const float* row = pattern.data() + y * kPatches / side_ * kPatches * kChannels;
        for (std::size_t x = 0; x < side_; ++x, image += kChannels) {
            const float* patch = row + x * kPatches / side_ * kChannels;
            for (std::size_t c = 0; c < kChannels; ++c) image[c] += patch[c];
        }
    }
    return static_cast<std::int32_t>(label);
}

namespace {

constexpr std::size_t kPixels = std::size_t{CifarImages::kSide} * CifarImages::kSide;
constexpr std::size_t kPixelBytes = kPixels * kChannels;

std::int32_t label_of(const char* record) {
    return static_cast<unsigned char>(*record);
}

bool is_for_training(const std::filesystem::path& file) {
    const std::filesystem::path name = file.filename();
    return name.extension() == ".bin" && name != "test_batch.bin" && name != "test.bin";
}

std::vector<CifarFile> files_at(const std::string& path) {
    const TextFiles found(path, "CIFAR");
    const bool chooses = std::filesystem::is_directory(path);
    std::vector<CifarFile> files;
    for (int f = 0; f < found.files(); ++f) {
        const TextFile& file = found.file(f);
        if (!chooses || is_for_training(file.path())) files.push_back({file.path(), file.whole()});
    }
    if (files.empty()) {
        throw DataError("data.path", fmt::format("the folder {} has no *.bin file to train on directly in it "
                                                 "(test_batch.bin and test.bin are left out); give a CIFAR "
                                                 "file, or a folder of CIFAR files",
                                                 path));
    }
    return files;
}

std::vector<const char*> records_of(const std::vector<CifarFile>& files, int classes) {
    std::vector<const char*> records;
    for (const auto& [name, bytes] : files) {
        const std::size_t labels = bytes.size() % (kPixelBytes + 1) == 0 ? 1 : 2, size = kPixelBytes + labels;
        if (bytes.empty() || bytes.size() % size != 0) {
            throw DataError("data.path",
                            fmt::format("{} has {} bytes, which is not a whole number of images of CIFAR-10 "
                                        "({} bytes each) or CIFAR-100 ({}); name files of their binary "
                                        "version that are complete",
                                        name, bytes.size(), kPixelBytes + 1, kPixelBytes + 2));
        }
        for (std::size_t at = labels - 1; at < bytes.size(); at += size) {
            records.push_back(bytes.data() + at);
            if (label_of(records.back()) < classes) continue;
            throw DataError(
                "data.classes",
                fmt::format("{} has the label {} at image {}, which is not below {}; set data.classes to the "
                            "number of classes, 10 or 100",
                            name, label_of(records.back()), at / size, classes));
        }
    }
    return records;
}

}  // namespace

CifarImages::CifarImages(const std::string& path, int classes, std::int64_t seed)
    : files_(files_at(path)), records_(records_of(files_, classes)), sampler_(samples(), seed) {}

std::int64_t CifarImages::input_bytes() const {
    return static_cast<std::int64_t>(kPixelBytes * sizeof(float));
}

std::int64_t CifarImages::target_bytes() const {
    return sizeof(std::int32_t);
}

void CifarImages::fill(std::int64_t first_sample, int count, void* input, void* target) const {
    auto* image = static_cast<float*>(input);
    auto* label = static_cast<std::int32_t*>(target);
    for (int i = 0; i < count; ++i) {
        const char* record = records_[static_cast<std::size_t>(sampler_.sample_at(first_sample + i))];
        *label++ = label_of(record);
        const auto* planes = reinterpret_cast<const unsigned char*>(record + 1);
        for (std::size_t pixel = 0; pixel < kPixels; ++pixel) {
            for (std::size_t c = 0; c < kChannels; ++c)
                *image++ = (static_cast<float>(planes[c * kPixels + pixel]) / 255.0F - 0.5F) / 0.5F;
        }
    }
}

}  // namespace shardscope::trainer::data
