#include "trainer/planner/job_file.h"

#include <fmt/core.h>

#include "trainer/job/keys.h"
#include "trainer/job/value.h"

namespace shardscope::trainer::planner {

std::string job_file(const job::Job& job, std::string_view comment) {
    std::string out;
    while (!comment.empty()) {
        const auto end = comment.find('\n');
        out += fmt::format("# {}\n", comment.substr(0, end));
        comment.remove_prefix(end == std::string_view::npos ? comment.size() : end + 1);
    }
    const job::Job defaults;
    for (const job::Section& section : job::sections()) {
        std::string lines;
        for (const job::Key& key : job::keys()) {
            if (key.section != section.name || is_of_the_trace(key)) continue;
            if (job.train.epochs > 0 && key.full_name() == "run.steps") continue;  // they follow from it
            const job::Value value = key.get(job);
            // Some defaults depend on other keys, so a key that was given may equal the plain default.
            if (value == key.get(defaults) && !job.origins.contains(key.full_name())) continue;
            lines += fmt::format("{} = {}\n", key.name, job::toml_of(key, value));
        }
        if (!lines.empty()) out += fmt::format("{}[{}]\n{}", out.empty() ? "" : "\n", section.name, lines);
    }
    return out;
}

}  // namespace shardscope::trainer::planner
