// Arbitrary bytes as a session, a link and a file of marks of the viewer: each is refused with a sentence, or
// read, and what was read comes back from its own text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "viewer/model/link.h"
#include "viewer/model/marks.h"
#include "viewer/model/saved_session.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace shardscope::viewer::model;
    if (size == 0) return 0;
    // The first byte chooses the reader; the rest is the text.
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        switch (*data % 3) {
            case 0: {
                const SavedSession session = parse_session(text).session;
                const ReadSession again = parse_session(session_text(session));
                if (again.session != session || !again.left_out.empty()) std::abort();
                break;
            }
            case 1: {
                const Link link = parse_link(text).link;
                const std::string own = link_text(link);
                if (own.size() > kLongestLink) break;
                const ReadLink again = parse_link(own);
                if (again.link != link || !again.left_out.empty()) std::abort();
                break;
            }
            default: {
                const KeptBeside kept = parse_marks(text);
                if (parse_marks(marks_json(kept, "run.sqlite")) != kept) std::abort();
            }
        }
    } catch (const std::runtime_error&) {  // refused with a sentence
    }
    return 0;
}
