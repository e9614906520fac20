// See whole_file.h.
#include "viewer/model/whole_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace shardscope::viewer::model {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
    std::error_code error;
    return !path.empty() && fs::is_regular_file(path, error);
}

std::string read_whole(const std::string& path, std::uintmax_t most_bytes) {
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (error) throw std::runtime_error(error.message());
    if (bytes > most_bytes) throw std::runtime_error("it is too large");
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error(std::strerror(errno));
    std::string text(static_cast<std::size_t>(bytes), '\0');
    in.read(text.data(), static_cast<std::streamsize>(bytes));
    if (in.gcount() != static_cast<std::streamsize>(bytes)) throw std::runtime_error("it cannot be read");
    return text;
}

std::string write_whole(const std::string& path, const std::string& text, bool secret) {
    const std::string part = fmt::format("{}.{}.part", path, ::getpid());
    const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, secret ? 0600 : 0666);
    if (file < 0) return std::strerror(errno);
    std::size_t done = 0;
    int reason = 0;
    while (done < text.size() && reason == 0) {
        const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
        if (wrote < 0) reason = errno;
        if (wrote > 0) done += static_cast<std::size_t>(wrote);
    }
    if (::close(file) != 0 && reason == 0) reason = errno;
    std::error_code error(reason, std::generic_category());
    if (!error) fs::rename(part, path, error);
    if (!error) return "";
    std::error_code ignored;
    fs::remove(part, ignored);
    return error.message();
}

std::string state_folder() {
    // The specification requires ignoring a relative path in the variable.
    if (const char* folder = std::getenv("XDG_STATE_HOME"); folder != nullptr && folder[0] == '/')
        return std::string(folder) + "/shardscope";
    if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
        return std::string(home) + "/.local/state/shardscope";
    return "";
}

}  // namespace shardscope::viewer::model
