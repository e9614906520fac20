#include "trainer/data/picture_folder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "trainer/data/dataset.h"
#include "trainer/data/picture.h"
#include "trainer/data/text_file.h"

namespace shardscope::trainer::data {

namespace {

namespace fs = std::filesystem;

bool is_picture(const fs::path& path) {
    std::string extension = path.extension();
    for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    constexpr std::array<std::string_view, 3> kExtensions = {".png", ".jpg", ".jpeg"};
    return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end() &&
           path.filename().native().front() != '.';
}

std::vector<fs::path> folders_in(const std::string& path) {
    std::vector<fs::path> folders;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
        if (entry.is_directory() && entry.path().filename().native().front() != '.')
            folders.push_back(entry.path());
    }
    std::sort(folders.begin(), folders.end());
    return folders;
}

// At any depth, also behind symbolic links to folders. `above`: the folder and those that it is in.
void add_pictures(const fs::path& folder, std::vector<fs::path>& above, std::vector<std::string>& paths) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        if (entry.is_directory()) {
            fs::path real = fs::canonical(entry.path());
            if (std::find(above.begin(), above.end(), real) != above.end()) {
                throw DataError("data.path", fmt::format("{} leads to a folder that it is in; remove it",
                                                         entry.path().string()));
            }
            above.push_back(std::move(real));
            add_pictures(entry.path(), above, paths);
            above.pop_back();
        } else if (is_picture(entry.path()) && entry.is_regular_file()) {
            paths.push_back(entry.path());
        }
    }
}

std::vector<std::string> pictures_in(const fs::path& folder) {
    std::vector<fs::path> above = {fs::canonical(folder.parent_path()), fs::canonical(folder)};
    std::vector<std::string> paths;
    add_pictures(folder, above, paths);
    std::sort(paths.begin(), paths.end());
    return paths;
}

}  // namespace

PictureFolder::PictureFolder(std::string key, const std::string& path, int classes) : key_(std::move(key)) {
    try {
        for (const fs::path& folder : folders_in(path)) {
            const auto label = static_cast<std::int32_t>(classes_.size());
            if (label >= classes) {
                throw DataError("data.classes",
                                fmt::format("the folder {} has more than {} folders of classes; set "
                                            "data.classes to their number",
                                            path, classes));
            }
            std::vector<std::string> found = pictures_in(folder);
            if (found.empty()) {
                throw DataError("data.path",
                                fmt::format("the folder {} has no *.png, *.jpg or *.jpeg file; remove it, or "
                                            "name a folder with a folder of pictures for each class",
                                            folder.string()));
            }
            classes_.push_back(folder.filename());
            labels_.insert(labels_.end(), found.size(), label);
            std::move(found.begin(), found.end(), std::back_inserter(paths_));
        }
    } catch (const fs::filesystem_error& error) {
        throw DataError("data.path", fmt::format("cannot read {}: {}; check its permissions",
                                                 error.path1().string(), error.code().message()));
    }
}

Picture PictureFolder::open(std::int64_t image, std::vector<unsigned char>& room) const {
    const std::string& path = paths_[static_cast<std::size_t>(image)];
    try {
        const std::string bytes = TextFile(path).whole();
        return decode({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()}, room);
    } catch (const std::system_error& error) {
        throw DataError(
            key_, fmt::format("cannot read {}: {}; check its permissions", path, error.code().message()));
    } catch (const PictureError& error) {
        throw DataError(key_, fmt::format("{} {}; replace it, or remove it", path, error.what()));
    }
}

}  // namespace shardscope::trainer::data
