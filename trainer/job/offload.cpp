// memory.offload as text and back: "none", "optimizer", "activations", "optimizer+activations".
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "trainer/job/job.h"

namespace shardscope::trainer::job {

Offload parse_offload(const std::string& text) {
    Offload offload;
    if (text == "none") return offload;
    for (std::string_view rest = text;;) {
        const std::string_view word = rest.substr(0, rest.find('+'));
        bool* const named = word == "optimizer"     ? &offload.optimizer
                            : word == "activations" ? &offload.activations
                                                    : nullptr;
        if (named == nullptr || *named) {
            throw JobError(
                fmt::format("\"{}\" does not say what is offloaded; use none, optimizer, activations or "
                            "optimizer+activations",
                            text));
        }
        *named = true;
        if (word.size() == rest.size()) return offload;
        rest.remove_prefix(word.size() + 1);
    }
}

std::string to_text(const Offload& offload) {
    if (offload.optimizer && offload.activations) return "optimizer+activations";
    return offload.optimizer ? "optimizer" : offload.activations ? "activations" : "none";
}

}  // namespace shardscope::trainer::job
