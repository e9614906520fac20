#include "traces/watch/source.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>

#include "traces/store/error.h"
#include "traces/store/sqlite/open.h"
#include "traces/watch/file_status.h"
#include "traces/watch/status_client.h"

namespace shardscope::traces::watch {

namespace {

namespace fs = std::filesystem;
using status::Address;

class ServerSource final : public Source {
  public:
    ServerSource(const Address& address, const std::string& token)
        : address_(address), client_(address, token) {}

    std::optional<status::RunStatus> next(int timeout_ms) override {
        const std::optional<std::string> line = client_.next(timeout_ms);
        if (!line) return std::nullopt;
        return status::from_line(*line);
    }
    bool closed() const override { return client_.closed(); }
    std::string name() const override { return to_text(address_); }

  private:
    Address address_;
    StatusClient client_;
};

class FileSource final : public Source {
  public:
    explicit FileSource(const std::string& trace) : trace_(trace), file_(trace) {}

    std::optional<status::RunStatus> next(int timeout_ms) override {
        if (std::exchange(first_, false)) return file_.read();
        const int wait = std::min(timeout_ms, kPeriodMs - waited_);
        if (::poll(nullptr, 0, wait) < 0) return std::nullopt;  // a signal
        waited_ += wait;
        if (waited_ < kPeriodMs) return std::nullopt;
        waited_ = 0;
        return file_.read();
    }
    void add_to(Course& course) override { file_.add_to(course); }
    std::string name() const override {
        return fmt::format("{} (the trace itself; its run serves no status)", trace_);
    }

  private:
    static constexpr int kPeriodMs = 1000;

    std::string trace_;
    FileStatus file_;
    bool first_ = true;
    int waited_ = 0;
};

bool is_socket(const std::string& path) {
    struct stat facts;
    return ::stat(path.c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode);
}

std::string only_socket_here() {
    std::vector<std::string> sockets;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(".", ignored)) {
        const std::string path = entry.path().string();
        if (path.ends_with(".status") && is_socket(path)) sockets.push_back(path);
    }
    if (sockets.size() == 1) return sockets[0];
    std::sort(sockets.begin(), sockets.end());
    std::string names;
    for (const std::string& each : sockets) names += (names.empty() ? "" : ", ") + each;
    throw status::StatusError(
        sockets.empty()
            ? "no run serves its status in this folder; give a trace, a socket or HOST:PORT"
            : fmt::format("several runs serve their status in this folder: give one of {}", names));
}

// The address that a run has noted in its trace; empty: none.
std::string noted_address(const std::string& trace) {
    try {
        for (const std::string& file : files_of_run(trace)) {
            store::Database database = store::open_trace(file);
            if (!store::has_plain_table(database, "SHARD_RUN")) return {};
            // Another run may serve at that address by now.
            if (!store::has_plain_table(database, "SHARD_STATE") ||
                database.integer("SELECT ended FROM SHARD_STATE") != 0)
                continue;
            store::Statement noted(database, "SELECT value FROM SHARD_RUN WHERE key = 'status_address'");
            if (noted.step()) return std::string(noted.text(0));
        }
    } catch (const store::StoreError&) {  // FileSource says what is wrong
    }
    return {};
}

// Whether nobody but this machine can serve there; a name that only looks like 127.0.0.1 is looked up
// elsewhere.
bool is_here(const Address& address) {
    in_addr number{};
    const bool loopback =
        ::inet_pton(AF_INET, address.host.c_str(), &number) == 1 && ntohl(number.s_addr) >> 24 == 127;
    return !address.path.empty() || loopback || address.host == "localhost" || address.host == "::1";
}

std::unique_ptr<Source> of_trace(const std::string& trace, const std::string& token) {
    const std::string noted = noted_address(trace);
    try {
        if (const std::string beside = status::socket_of(trace); is_socket(beside))
            return std::make_unique<ServerSource>(Address{beside, {}, 0}, token);
        if (!noted.empty()) {
            const Address address = status::parse_address(noted);
            // A file from elsewhere could name any host.
            if (is_here(address) || token.empty()) return std::make_unique<ServerSource>(address, token);
        }
    } catch (const status::StatusError&) {  // that run has ended
        return std::make_unique<FileSource>(trace);
    }
    if (!noted.empty() && !token.empty()) {
        throw status::StatusError(fmt::format(
            "{} says that its run serves at {}; watch that address, so that the token goes only to a host "
            "that you have named, or unset {} to read the file",
            trace, noted, status::kTokenVariable));
    }
    return std::make_unique<FileSource>(trace);
}

}  // namespace

std::unique_ptr<Source> open_source(const std::string& what, const Variable& variable) {
    const std::string token = status::token_of(variable);
    const std::string named = what.empty() ? only_socket_here() : what;
    if (is_socket(named)) return std::make_unique<ServerSource>(Address{named, {}, 0}, token);
    std::error_code ignored;
    if (fs::exists(named, ignored) || named.find(':') == std::string::npos ||
        named.find('/') != std::string::npos)
        return of_trace(named, token);
    return std::make_unique<ServerSource>(status::parse_address(named), token);
}

}  // namespace shardscope::traces::watch
