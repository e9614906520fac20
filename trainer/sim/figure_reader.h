// Reads the figures of a cost model from a TOML text, key by key: every figure is requested once, with its
// meaning and its range; a key that was never requested is an error. Keeps toml++ out of other files.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trainer/sim/cluster.h"

namespace shardscope::trainer::sim {

enum class Presence : std::uint8_t { required, optional };

class FigureReader {
  public:
    // Messages call the text `file`. Throws ClusterError if it is not TOML, as all members do if a figure is
    // missing, of the wrong type or impossible.
    FigureReader(const std::string& toml, std::string file);
    ~FigureReader();
    FigureReader(const FigureReader&) = delete;
    FigureReader& operator=(const FigureReader&) = delete;

    // Whether [section] exists; "operators.matmul" is a section inside another.
    bool has(std::string_view section) const;

    // Each returns whether the key is present, and leaves `into` unchanged if not. `what` completes "give …":
    // "the bytes of a device's memory".
    bool number(std::string_view section, std::string_view key, std::string_view what, double low,
                double high, double& into, Presence presence = Presence::required);
    bool positive(std::string_view section, std::string_view key, std::string_view what, double& into,
                  Presence presence = Presence::required);
    bool count(std::string_view section, std::string_view key, std::string_view what, int low, int high,
               int& into, Presence presence = Presence::required);
    bool boolean(std::string_view section, std::string_view key, bool& into);  // optional
    bool text(std::string_view section, std::string_view key, std::string_view what, std::string& into,
              Presence presence = Presence::required);
    // Sets `into` to the index of one of `choices`.
    bool choice(std::string_view section, std::string_view key, std::span<const std::string_view> choices,
                std::size_t& into);
    // A share (0 to 1], or a list of points [size, share] with rising sizes. Optional.
    bool curve(std::string_view section, std::string_view key, Curve& into);

    // A square of `size` rows of `size` figures, from `low` to `high` but on its diagonal, which is ignored.
    // Optional. `of`: the key that tells the size, for messages.
    bool pairs(std::string_view section, std::string_view key, std::string_view what, std::string_view of,
               int size, double low, double high, PairFigures& into);

    // Refuses keys and sections that were never requested.
    void end() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::trainer::sim
