#include "trainer/data/image_files.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include "trainer/data/cifar.h"
#include "trainer/data/dataset.h"
#include "trainer/data/idx.h"
#include "trainer/data/picture_folder.h"

namespace shardscope::trainer::data {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPathKey = "data.path";  // which the formats name in their errors

// What a folder has directly in it.
struct FolderContent {
    bool cifar = false, folders = false;
};
FolderContent content_of(const std::string& key, const std::string& path) {
    FolderContent content;
    std::error_code error;
    for (fs::directory_iterator entry(path, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        content.cifar |= entry->path().extension() == ".bin";
        std::error_code unknown;
        content.folders |= entry->is_directory(unknown) && entry->path().filename().native().front() != '.';
    }
    if (error)
        throw DataError(key, fmt::format("cannot read {}: {}; check its permissions", path, error.message()));
    return content;
}

std::unique_ptr<ImageFiles> open_format(const std::string& key, const std::string& path, int classes) {
    const ImageSet set = key == kPathKey ? ImageSet::training : ImageSet::test;
    std::error_code error;
    if (!fs::exists(path, error) && (!error || error == std::errc::no_such_file_or_directory)) {
        throw DataError(key, fmt::format("{} does not exist; give a CIFAR file or folder, an IDX file of "
                                         "images, or a folder with a folder of PNG or JPEG files for each "
                                         "class",
                                         path));
    }
    if (fs::is_directory(path, error)) {
        if (const std::string idx = IdxImages::of_folder(path, set); !idx.empty())
            return std::make_unique<IdxImages>(idx, classes);
        const FolderContent content = content_of(key, path);
        if (content.folders && !content.cifar) return std::make_unique<PictureFolder>(key, path, classes);
        if (!content.cifar) {
            throw DataError(
                key, fmt::format("the folder {} has no images to {} on: neither a folder for each class, nor "
                                 "*.bin files of CIFAR, nor {}-images-idx3-ubyte; unpack its files if they "
                                 "are compressed, or name another",
                                 path, set == ImageSet::test ? "validate or test" : "train",
                                 set == ImageSet::test ? "t10k" : "train"));
        }
    } else if (IdxImages::has_name(path)) {
        return std::make_unique<IdxImages>(path, classes);
    }
    return std::make_unique<CifarImages>(path, classes, set);
}

}  // namespace

std::unique_ptr<ImageFiles> open_images(const std::string& key, const std::string& path, int classes) {
    try {
        return open_format(key, path, classes);
    } catch (const DataError& error) {
        if (error.key() != kPathKey || key == kPathKey) throw;
        throw DataError(key, std::string(error.what()).substr(std::string_view(kPathKey).size() + 2));
    }
}

}  // namespace shardscope::trainer::data
