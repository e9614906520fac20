#include "trainer/world/board.h"

#include <stdexcept>
#include <utility>

namespace shardscope::trainer::world {

void Board::joined() {
    change([&] { state_ = State::joined; });
}

void Board::refused(const std::string& sentence) {
    change([&] {
        state_ = State::refused;
        sentence_ = sentence;
    });
}

void Board::put(Call call, Texts texts) {
    change([&] { results_[call] = std::move(texts); });
}

void Board::failed(const Failure& failure) {
    change([&] { failure_ = failure; });
}

void Board::failure_told() {
    change([&] { failure_told_ = true; });
}

void Board::farewell() {
    change([&] { farewell_ = true; });
}

bool Board::is_joining() const {
    const std::scoped_lock lock(mutex_);
    return state_ == State::joining;
}

bool Board::said_farewell() const {
    const std::scoped_lock lock(mutex_);
    return farewell_;
}

std::optional<Failure> Board::failure() const {
    const std::scoped_lock lock(mutex_);
    return failure_;
}

void Board::wait_for_all() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return state_ != State::joining; });
    if (state_ == State::refused) throw WorldError(sentence_);
}

Board::Texts Board::wait_for(Call call) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_told_ || farewell_ || results_.contains(call); });
    const auto result = results_.find(call);
    if (result != results_.end()) return std::move(results_.extract(result).mapped());
    if (failure_) throw WorldFailure(*failure_);
    throw std::logic_error("World: a collective call after leave()");
}

void Board::throw_failure() const {
    if (const std::optional<Failure> what = failure()) throw WorldFailure(*what);
}

void Board::wait_for_end() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return failure_told_ || farewell_; });
}

}  // namespace shardscope::trainer::world
