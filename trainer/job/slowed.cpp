// The stragglers of a simulation, as text and back: "3:1.5,7:2" and "inter:0.5,intra@2:0.25".
#include <optional>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/schema/text.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::job {

namespace {

using traces::schema::number_of;

[[noreturn]] void refuse_rank(const std::string& text, std::string_view piece) {
    throw JobError(
        fmt::format("\"{}\": \"{}\" is not a slowed rank; use RANK:FACTOR[,RANK:FACTOR], such as 3:1.5 "
                    "where rank 3 computes one and a half times as long",
                    text, piece));
}

[[noreturn]] void refuse_link(const std::string& text, std::string_view piece) {
    throw JobError(
        fmt::format("\"{}\": \"{}\" is not a slowed link; use intra or inter, @NODE for one node's "
                    "only, and the share of the bandwidth that is left: inter:0.5 or inter@2:0.5",
                    text, piece));
}

// The two halves of "a:b"; nothing without a colon.
std::optional<std::pair<std::string_view, std::string_view>> cut(std::string_view piece) {
    const auto colon = piece.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    return std::pair(piece.substr(0, colon), piece.substr(colon + 1));
}

// Calls `each` for every piece between commas; "none" has no pieces.
template <class Each>
void for_pieces(std::string_view list, const Each& each) {
    if (list == "none") return;
    for (;;) {
        const auto comma = list.find(',');
        each(list.substr(0, comma));
        if (comma == std::string_view::npos) return;
        list.remove_prefix(comma + 1);
    }
}

}  // namespace

std::vector<SlowRank> parse_slow_ranks(const std::string& text) {
    std::vector<SlowRank> ranks;
    for_pieces(text, [&](std::string_view piece) {
        const auto parts = cut(piece);
        if (!parts) refuse_rank(text, piece);
        const auto rank = number_of<int>(parts->first);
        const auto factor = number_of<double>(parts->second);
        if (!rank || *rank < 0 || !factor || !(*factor >= 1e-3 && *factor <= 1e3)) refuse_rank(text, piece);
        ranks.push_back({*rank, *factor});
    });
    return ranks;
}

std::vector<SlowLink> parse_slow_links(const std::string& text) {
    std::vector<SlowLink> links;
    for_pieces(text, [&](std::string_view piece) {
        const auto parts = cut(piece);
        if (!parts) refuse_link(text, piece);
        std::string_view which = parts->first;
        SlowLink link;
        if (const auto at = which.find('@'); at != std::string_view::npos) {
            const auto node = number_of<int>(which.substr(at + 1));
            if (!node || *node < 0) refuse_link(text, piece);
            link.node = *node;
            which = which.substr(0, at);
        }
        link.between_nodes = which == "inter";
        const auto share = number_of<double>(parts->second);
        if ((which != "inter" && which != "intra") || !share || !(*share >= 1e-6 && *share <= 1))
            refuse_link(text, piece);
        link.share = *share;
        links.push_back(link);
    });
    return links;
}

std::string to_text(const std::vector<SlowRank>& ranks) {
    std::vector<std::string> pieces;
    pieces.reserve(ranks.size());
    for (const SlowRank& slow : ranks) pieces.push_back(fmt::format("{}:{}", slow.rank, slow.factor));
    return pieces.empty() ? "none" : traces::schema::joined(pieces, ",");
}

std::string to_text(const std::vector<SlowLink>& links) {
    std::vector<std::string> pieces;
    pieces.reserve(links.size());
    for (const SlowLink& slow : links) {
        pieces.push_back(fmt::format("{}{}:{}", slow.between_nodes ? "inter" : "intra",
                                     slow.node < 0 ? "" : fmt::format("@{}", slow.node), slow.share));
    }
    return pieces.empty() ? "none" : traces::schema::joined(pieces, ",");
}

}  // namespace shardscope::trainer::job
