#include "traces/status/address.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <iterator>

#include <fmt/core.h>
#include <sys/stat.h>

namespace shardscope::traces::status {

namespace {

constexpr std::string_view kSocketEnding = ".status";

void check_token(const std::string& token, const std::string& where) {
    if (token.size() < kShortestToken || token.size() > kLongestToken ||
        !std::all_of(token.begin(), token.end(), [](unsigned char c) { return std::isgraph(c) != 0; })) {
        throw StatusError(
            fmt::format("{}: a token has {} to {} characters without blanks; make one with: "
                        "openssl rand -hex 16",
                        where, kShortestToken, kLongestToken));
    }
}

std::string token_in_file(const std::string& path) {
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0)
        throw StatusError(fmt::format("{} ({}) cannot be read; check the path", path, kTokenFileVariable));
    if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        throw StatusError(
            fmt::format("{0} ({1}) can be read by others; chmod 600 {0}", path, kTokenFileVariable));
    }
    std::ifstream file(path, std::ios::binary);
    std::string token(kLongestToken + 2, '\0');
    file.read(token.data(), static_cast<std::streamsize>(token.size()));
    token.resize(static_cast<std::size_t>(file.gcount()));
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    check_token(token, path);
    return token;
}

}  // namespace

Address parse_address(std::string_view text) {
    Address address;
    if (text.find('/') != std::string_view::npos || text.ends_with(kSocketEnding)) {
        address.path = text;
        return address;
    }
    const std::size_t colon = text.rfind(':');
    const auto wrong = [&] {
        return StatusError(fmt::format(
            "{} is not an address; write HOST:PORT, [IPv6]:PORT, :PORT, or a path with a slash", text));
    };
    if (colon == std::string_view::npos) throw wrong();
    std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        throw wrong();
    }
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc() || end != port.data() + port.size()) throw wrong();
    address.host = host.empty() ? "127.0.0.1" : host;
    return address;
}

std::string to_text(const Address& address) {
    if (!address.path.empty()) return address.path;
    return address.host.find(':') == std::string::npos ? fmt::format("{}:{}", address.host, address.port)
                                                       : fmt::format("[{}]:{}", address.host, address.port);
}

std::string socket_of(std::string_view trace) {
    return std::string(trace) + std::string(kSocketEnding);
}

std::string token_of(const std::function<const char*(const char*)>& variable) {
    if (const char* token = variable(kTokenVariable); token != nullptr && *token != '\0') {
        check_token(token, kTokenVariable);
        return token;
    }
    const char* path = variable(kTokenFileVariable);
    return path == nullptr || *path == '\0' ? std::string() : token_in_file(path);
}

bool equal_secrets(std::string_view given, std::string_view secret) {
    unsigned difference = given.size() == secret.size() ? 0 : 1;
    for (std::size_t i = 0; i < secret.size(); ++i) {
        const char other = given.empty() ? '\0' : given[i % given.size()];
        difference |= static_cast<unsigned char>(other ^ secret[i]);
    }
    return difference == 0;
}

}  // namespace shardscope::traces::status
