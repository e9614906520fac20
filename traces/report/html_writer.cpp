#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include <fmt/core.h>

#include "traces/report/html_parts.h"
#include "traces/report/text_table.h"
#include "traces/schema/text.h"

namespace shardscope::traces::report {

namespace {

bool part_of_a_path(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._-+@~").find(c) != std::string::npos;
}

// Replaces paths ("/home/a/b.py", "~/b.py", "C:\b\c") by "…"; "a/b" (a rate, a fraction) stays.
std::string without_paths(std::string_view text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const bool word_starts = at == 0 || !part_of_a_path(text[at - 1]);
        const bool rooted = text[at] == '/' || text.substr(at, 2) == "~/" || text.substr(at, 2) == "./" ||
                            text.substr(at, 3) == "../" || text.substr(at, 2) == "\\\\" ||
                            (std::isalpha(static_cast<unsigned char>(text[at])) != 0 &&
                             (text.substr(at + 1, 2) == ":\\" || text.substr(at + 1, 2) == ":/"));
        std::size_t end = at;
        if (word_starts && rooted) {
            if (text.substr(at + 1, 1) == ":") end = at + 2;
            while (end < text.size() && (part_of_a_path(text[end]) || text[end] == '/' || text[end] == '\\'))
                ++end;
        }
        if (end > at + 1) {
            result += "…";
            at = end;
        } else {
            result += text[at++];
        }
    }
    return result;
}

// `hosts`: longer names first, since a short name may be part of a long one.
std::string without_hosts(std::string_view text, const std::vector<std::string>& hosts) {
    constexpr std::size_t kTooShort = 2;  // the name "a" would occur in every word
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const auto host = std::find_if(hosts.begin(), hosts.end(), [&](const std::string& name) {
            return name.size() > kTooShort && text.substr(at, name.size()) == name;
        });
        if (host == hosts.end()) {
            result += text[at++];
        } else {
            result += "[machine]";
            at += host->size();
        }
    }
    return result;
}

}  // namespace

std::string html_escaped(std::string_view text) {
    std::string html;
    for (const char c : printable(text)) {
        switch (c) {
            case '<':
                html += "&lt;";
                break;
            case '>':
                html += "&gt;";
                break;
            case '&':
                html += "&amp;";
                break;
            case '"':
                html += "&quot;";
                break;
            case '\'':
                html += "&#39;";
                break;
            default:
                html += c;
        }
    }
    return html;
}

std::string Redactor::text(std::string_view text) const {
    return html_escaped(plain(text));
}

std::string Redactor::plain(std::string_view text) const {
    return on_ ? without_hosts(without_paths(text), hosts_) : std::string(text);
}

bool Redactor::shows(std::string_view key, std::string_view value) const {
    if (!on_) return true;
    const std::string lower = schema::lower_case(key);
    for (const std::string_view word : {"host", "user", "path", "file", "command", "arg", "env", "cwd",
                                        "trace", "address", "folder", "directory", "url", "token"}) {
        if (lower.find(word) != std::string::npos) return false;
    }
    if (value.find_first_of("/\\") != std::string_view::npos) return false;
    return std::none_of(hosts_.begin(), hosts_.end(), [&](const std::string& host) {
        return !host.empty() && value.find(host) != std::string_view::npos;
    });
}

HtmlTable::HtmlTable(std::vector<std::string> header, std::size_t text_columns)
    : header_(std::move(header)), text_columns_(text_columns) {}

void HtmlTable::row(const std::vector<std::string>& cells, std::string_view row_class) {
    rows_ += row_class.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", row_class);
    for (std::size_t c = 0; c < cells.size(); ++c)
        rows_ += fmt::format("<td{}>{}</td>", c < text_columns_ ? "" : " class=\"n\"", cells[c]);
    rows_ += "</tr>\n";
}

HtmlTable::HtmlTable(const analysis::ResultTable& table) : text_columns_(0) {
    for (const analysis::ResultColumn& column : table.columns) {
        if (column.unit == analysis::Unit::text && text_columns_ == header_.size()) ++text_columns_;
        header_.push_back(html_escaped(header_text(column)));
    }
}

void HtmlTable::rows(const analysis::ResultTable& table, const Redactor& redact) {
    for (const std::vector<store::Cell>& cells : table.rows) {
        std::vector<std::string> texts;
        for (std::size_t c = 0; c < cells.size(); ++c)
            texts.push_back(redact.text(cell_text(table.columns[c], cells[c])));
        row(texts);
    }
}

std::string html_of(const analysis::ResultTable& table, const Redactor& redact) {
    HtmlTable html(table);
    html.rows(table, redact);
    return html.html();
}

std::string HtmlTable::html() const {
    std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
    for (std::size_t c = 0; c < header_.size(); ++c)
        html += fmt::format("<th{}>{}</th>", c < text_columns_ ? "" : " class=\"n\"", header_[c]);
    return html + "</tr></thead>\n<tbody>\n" + rows_ + "</tbody></table></div>\n";
}

std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view label) {
    constexpr double kWidth = 1000;
    std::string html = fmt::format(
        "<svg class=\"bar\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"{}\">",
        label);
    double at = 0;
    for (const BarPart& part : parts) {
        const double width = kWidth * part.share;
        if (width > 0) {
            html += fmt::format(
                "<rect x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"10\" "
                "class=\"c{}\"><title>{}</title></rect>",
                at, width, part.colour, part.label);
        }
        at += width;
    }
    return html + "</svg>\n";
}

std::string legend(const std::vector<std::pair<std::string, int>>& entries) {
    std::string html = "<ul class=\"legend\">";
    for (const auto& [name, colour] : entries)
        html += fmt::format(
            "<li><svg viewBox=\"0 0 10 10\"><rect width=\"10\" height=\"10\" rx=\"2\" "
            "class=\"c{}\"/></svg>{}</li>",
            colour, name);
    return html + "</ul>\n";
}

std::string cell_bar(double share, int colour) {
    return fmt::format(
        "<svg class=\"cellbar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\"><rect width=\"{:.2f}\" "
        "height=\"10\" class=\"c{}\"/></svg>",
        100 * std::clamp(share, 0.0, 1.0), colour);
}

std::string section(std::string_view id, std::string_view title, std::string_view content) {
    return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, content);
}

std::string folded(std::string_view title, std::string_view content) {
    return fmt::format("<details><summary>{}</summary>\n{}</details>\n", title, content);
}

}  // namespace shardscope::traces::report
