#include "trainer/data/cifar.h"

#include <filesystem>

#include <fmt/core.h>

#include "trainer/data/dataset.h"
#include "trainer/data/text_files.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::data {

namespace {

constexpr std::size_t kPixels = std::size_t{CifarImages::kSide} * CifarImages::kSide;
constexpr std::size_t kPixelBytes = kPixels * job::kImageChannels;

std::int32_t label_of(const char* record) {
    return static_cast<unsigned char>(*record);
}

bool is_of(ImageSet set, const std::filesystem::path& file) {
    const std::filesystem::path name = file.filename();
    const bool tests = name == "test_batch.bin" || name == "test.bin";
    return name.extension() == ".bin" && tests == (set == ImageSet::test);
}

std::vector<CifarFile> files_at(const std::string& path, ImageSet set) {
    const TextFiles found(path, "CIFAR");
    const bool chooses = std::filesystem::is_directory(path);
    std::vector<CifarFile> files;
    for (int f = 0; f < found.files(); ++f) {
        const TextFile& file = found.file(f);
        if (!chooses || is_of(set, file.path())) files.push_back({file.path(), file.whole()});
    }
    if (files.empty()) {
        throw DataError(
            "data.path",
            fmt::format("the folder {} has no {} directly in it; give a CIFAR file, or a folder of "
                        "CIFAR files",
                        path,
                        set == ImageSet::test
                            ? "test_batch.bin or test.bin to validate or test on"
                            : "*.bin file to train on (test_batch.bin and test.bin are left out)"));
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

CifarImages::CifarImages(const std::string& path, int classes, ImageSet set)
    : files_(files_at(path, set)), records_(records_of(files_, classes)) {}

std::int32_t CifarImages::label(std::int64_t image) const {
    return label_of(records_[static_cast<std::size_t>(image)]);
}

Picture CifarImages::open(std::int64_t image, std::vector<unsigned char>& /*room*/) const {
    const char* pixels = records_[static_cast<std::size_t>(image)] + 1;
    return {kSide, kSide, reinterpret_cast<const unsigned char*>(pixels), 1, kPixels};
}

}  // namespace shardscope::trainer::data
