#include "trainer/data/idx.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include "trainer/data/dataset.h"
#include "trainer/data/text_file.h"

namespace shardscope::trainer::data {

namespace {

constexpr std::string_view kImages = "images", kLabels = "labels", kCube = "idx3", kList = "idx1";
constexpr std::size_t kNumber = 4;               // bytes of a number of the header, the highest first
constexpr std::uint32_t kBytesOfDims = 0x800;    // unsigned bytes, plus the number of dimensions
constexpr std::uint32_t kLargestSide = 1 << 15;  // pixels

std::uint32_t number_at(const std::string& file, std::size_t place) {
    std::uint32_t value = 0;
    for (std::size_t i = place * kNumber; i < (place + 1) * kNumber; ++i)
        value = value << 8 | static_cast<unsigned char>(file[i]);
    return value;
}

std::string whole(const std::string& path) {
    try {
        return TextFile(path).whole();
    } catch (const std::system_error& error) {
        throw DataError("data.path", fmt::format("cannot read {}: {}; images and labels are two files, "
                                                 "NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte",
                                                 path, error.code().message()));
    }
}

// The file's bytes, after its dimensions have been compared with its size.
std::string checked(const std::string& path, std::uint32_t dims) {
    std::string file = whole(path);
    const std::size_t header = (1 + dims) * kNumber;
    if (file.size() < header || number_at(file, 0) != kBytesOfDims + dims) {
        throw DataError("data.path",
                        fmt::format("{} does not begin as an IDX file of unsigned bytes with {} dimension{}; "
                                    "unpack it if it is compressed, or name another",
                                    path, dims, dims == 1 ? "" : "s"));
    }
    std::uint64_t bytes = number_at(file, 1);
    for (std::uint32_t dim = 2; dim <= dims; ++dim) {
        const std::uint32_t side = number_at(file, dim);
        if (side == 0 || side > kLargestSide) {
            throw DataError("data.path", fmt::format("{} has images with a side of {} pixels; name a file "
                                                     "with 1 to {}",
                                                     path, side, kLargestSide));
        }
        bytes *= side;
    }
    if (bytes == 0 || file.size() - header != bytes) {
        throw DataError("data.path", fmt::format("{} has {} bytes, and its header promises {} images, {} "
                                                 "bytes together; name a file that is complete",
                                                 path, file.size(), number_at(file, 1), header + bytes));
    }
    return file;
}

std::string path_of_labels(const std::string& path) {
    std::string name = std::filesystem::path(path).filename();
    for (const auto& [from, to] : {std::pair(kImages, kLabels), std::pair(kCube, kList)}) {
        const std::size_t at = name.rfind(from);
        if (at == std::string::npos) {
            throw DataError("data.path", fmt::format("{} has no \"{}\" in its name; name the file of images, "
                                                     "as train-images-idx3-ubyte, whose labels are beside it",
                                                     path, from));
        }
        name.replace(at, from.size(), to);
    }
    return std::filesystem::path(path).replace_filename(name);
}

}  // namespace

bool IdxImages::has_name(const std::string& path) {
    return std::filesystem::path(path).filename().string().find("idx") != std::string::npos;
}

std::string IdxImages::of_folder(const std::string& folder, ImageSet set) {
    const std::string start = set == ImageSet::test ? "t10k" : "train";
    for (const char* end : {"-images-idx3-ubyte", "-images.idx3-ubyte"}) {
        std::string path = std::filesystem::path(folder) / (start + end);
        std::error_code error;
        if (std::filesystem::exists(path, error)) return path;
    }
    return {};
}

IdxImages::IdxImages(const std::string& path, int classes)
    : pixels_(checked(path, 3)), labels_(checked(path_of_labels(path), 1)) {
    height_ = static_cast<int>(number_at(pixels_, 2));
    width_ = static_cast<int>(number_at(pixels_, 3));
    if (number_at(labels_, 1) != number_at(pixels_, 1)) {
        throw DataError(
            "data.path",
            fmt::format("{} has {} images and {} {} labels; name files that belong together", path,
                        number_at(pixels_, 1), path_of_labels(path), number_at(labels_, 1)));
    }
    for (std::int64_t i = 0; i < images(); ++i) {
        if (label(i) < classes) continue;
        throw DataError(
            "data.classes",
            fmt::format("{} has the label {} at image {}, which is not below {}; set data.classes "
                        "to the number of classes",
                        path_of_labels(path), label(i), i, classes));
    }
}

std::int64_t IdxImages::images() const {
    return static_cast<std::int64_t>(labels_.size() - 2 * kNumber);
}

std::int32_t IdxImages::label(std::int64_t image) const {
    return static_cast<unsigned char>(labels_[2 * kNumber + static_cast<std::size_t>(image)]);
}

Picture IdxImages::open(std::int64_t image, std::vector<unsigned char>& /*room*/) const {
    const std::size_t size = static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_);
    const char* pixels = pixels_.data() + 4 * kNumber + static_cast<std::size_t>(image) * size;
    return {height_, width_, reinterpret_cast<const unsigned char*>(pixels), 1, 0};
}

}  // namespace shardscope::trainer::data
