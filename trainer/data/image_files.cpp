#include "trainer/data/image_files.h"

#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "trainer/data/cifar.h"
#include "trainer/data/dataset.h"
#include "trainer/data/idx.h"
#include "trainer/data/picture_folder.h"

namespace shardscope::trainer::data {

namespace {

namespace fs = std::filesystem;

// What a folder has directly in it.
struct FolderContent {
    bool cifar = false, folders = false;
};
FolderContent content_of(const std::string& path) {
    FolderContent content;
    std::error_code error;  // the reader reports it
    for (fs::directory_iterator entry(path, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        content.cifar |= entry->path().extension() == ".bin";
        std::error_code unknown;
        content.folders |= entry->is_directory(unknown) && entry->path().filename().native().front() != '.';
    }
    return content;
}

std::unique_ptr<ImageFiles> open_format(const std::string& key, const std::string& path, int classes) {
    std::error_code error;
    if (!fs::exists(path, error) && (!error || error == std::errc::no_such_file_or_directory)) {
        throw DataError(key, fmt::format("{} does not exist; give a CIFAR file or folder, an IDX file of "
                                         "images, or a folder with a folder of PNG or JPEG files for each "
                                         "class",
                                         path));
    }
    if (fs::is_directory(path, error)) {
        if (const std::string idx = IdxImages::of_folder(path); !idx.empty())
            return std::make_unique<IdxImages>(idx, classes);
        const FolderContent content = content_of(path);
        if (content.folders && !content.cifar) return std::make_unique<PictureFolder>(key, path, classes);
    } else if (IdxImages::has_name(path)) {
        return std::make_unique<IdxImages>(path, classes);
    }
    return std::make_unique<CifarImages>(path, classes);
}

}  // namespace

std::unique_ptr<ImageFiles> open_images(const std::string& key, const std::string& path, int classes) {
    try {
        return open_format(key, path, classes);
    } catch (const DataError& error) {
        const std::string path_key = "data.path";  // which the formats name
        if (error.key() != path_key || key == path_key) throw;
        throw DataError(key, std::string(error.what()).substr(path_key.size() + 2));
    }
}

}  // namespace shardscope::trainer::data
