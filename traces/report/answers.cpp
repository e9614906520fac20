// The answers to the five questions as text, JSON, CSV and the head of the HTML report.
#include "traces/analysis/answers/answers.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/html_parts.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWidestText = 100, kMargin = 2;

// The text as one word of a shell's command line.
std::string shell_word(const std::string& text) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string command_text(const analysis::Answer& answer, const std::vector<std::string>& files,
                         const std::string& options) {
    if (answer.command.empty()) return "";
    std::string text = "shardscope-trace " + answer.command + options;
    for (const std::string& file : files) text += " " + shell_word(file);
    return text;
}

std::string answer_text(const analysis::Answer& answer, const std::vector<std::string>& files,
                        const std::string& options, std::size_t width) {
    const std::size_t room = std::max(std::min(width, kWidestText), 4 * kMargin) - kMargin;
    const std::string margin(kMargin, ' ');
    std::string text(asks(answer));
    text += "\n";
    for (const std::string& line : broken_at_blanks(printable(answer.says), room))
        text += margin + line + "\n";
    if (!answer.setting.empty()) text += margin + "Job file: " + printable(answer.setting) + "\n";
    // Never broken, so that it can be copied.
    if (const std::string command = command_text(answer, files, options); !command.empty())
        text += margin + "$ " + printable(command) + "\n";
    return text + "\n";
}

std::vector<std::string> files_of(const analysis::AnswersReport& report) {
    std::vector<std::string> files;
    for (const analysis::RunAnswers& run : report.runs) files.push_back(run.file);
    return files;
}

std::string table_text(const analysis::AnswersReport& report, std::size_t width) {
    std::string text;
    for (const analysis::Answer& answer : report.compared)
        text += answer_text(answer, files_of(report), report.options, width);
    for (const analysis::RunAnswers& run : report.runs) {
        if (report.runs.size() > 1) text += fmt::format("--- {}\n\n", printable(run.name));
        for (const analysis::Answer& answer : run.answers)
            text += answer_text(answer, {run.file}, report.options, width);
        for (const std::string& note : run.notes)
            text += paragraph(note, std::min(width, kWidestText)) + "\n";
    }
    text.pop_back();  // the blank line at the end
    return text;
}

Json json_answers(const std::vector<analysis::Answer>& answers) {
    Json all = Json::array();
    for (const analysis::Answer& answer : answers) {
        Json json = json_row(analysis::answer_fields(), answer);
        json["figures"] = json_figures(answer.figures);
        all.push_back(std::move(json));
    }
    return all;
}

std::string json_text(const analysis::AnswersReport& report) {
    Json runs = Json::array();
    for (const analysis::RunAnswers& run : report.runs) {
        runs.push_back({{"file", run.file}, {"answers", json_answers(run.answers)}, {"notes", run.notes}});
    }
    return json_line({{"compared", json_answers(report.compared)}, {"runs", std::move(runs)}});
}

std::string csv_text(const analysis::AnswersReport& report) {
    analysis::ResultTable table =
        empty_table(analysis::answer_fields(), {{.key = "file", .title = "", .meaning = "The trace."}});
    const auto add = [&](const std::string& file, const std::vector<analysis::Answer>& answers) {
        for (const analysis::Answer& answer : answers) {
            table.rows.push_back({analysis::known_text(file)});
            add_cells(table.rows.back(), analysis::answer_fields(), answer);
        }
    };
    add("", report.compared);
    for (const analysis::RunAnswers& run : report.runs) add(run.file, run.answers);
    return csv_of(table);
}

// The section of the report that has the evidence.
std::string_view section_of(const analysis::Answer& answer) {
    if (answer.compares) return "comparison";
    switch (answer.question) {
        case analysis::Question::peak:
            return "memory";
        case analysis::Question::time:
            return "summary";
        case analysis::Question::exposed:
            return answer.unit.empty() ? "collectives" : "units";
        case analysis::Question::late:
            return "collectives";
        case analysis::Question::change:
            return "advice";
    }
    return "";
}

}  // namespace

std::string render(const analysis::AnswersReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string html_answers(const std::vector<analysis::Answer>& answers, const Redactor& redact,
                         const std::string& prefix, const std::vector<std::string>& sections) {
    if (answers.empty()) return {};
    std::string html = "<dl class=\"answers\">\n";
    for (const analysis::Answer& answer : answers) {
        const std::string id = prefix + std::string(section_of(answer));
        const bool there = std::find(sections.begin(), sections.end(), id) != sections.end();
        const std::string question = html_escaped(asks(answer));
        html += fmt::format("<dt>{}</dt><dd{}>{}",
                            there ? fmt::format("<a href=\"#{}\">{}</a>", id, question) : question,
                            answer.known ? "" : " class=\"dim\"", redact.text(answer.says));
        if (!answer.setting.empty()) html += fmt::format(" <code>{}</code>", redact.text(answer.setting));
        html += "</dd>\n";
    }
    return html + "</dl>\n";
}

}  // namespace shardscope::traces::report
