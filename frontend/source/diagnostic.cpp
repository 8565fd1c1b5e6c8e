// SPDX-License-Identifier: Apache-2.0
#include "frontend/source/diagnostic.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

/// PTX is ASCII. Anything else would garble a terminal or, as UTF-8 does, put the caret under the wrong character.
std::string printable(std::string_view line) {
    std::string shown(line);
    for (char& c : shown)
        if ((c < ' ' || c > '~') && c != '\t') c = '?'; // bytes above 0x7f: signed or not, outside the range
    return shown;
}

/// A line of a minified text may be megabytes long.

constexpr std::size_t shown_width = 160;

} // namespace

void Diagnostics::add(Severity severity, SourceLocation location, std::string text) {
    if (severity == Severity::error && error_count_++ >= max_errors_) return;
    if (list_.size() >= 2u * max_errors_) return; // warnings must not grow without bound either
    list_.push_back({location, severity, std::move(text)});
}

void Diagnostics::append(const Diagnostics& other) {
    for (const Diagnostic& d : other.list_)
        // Of a comment without an end both have heard.
        if (std::find(list_.begin(), list_.end(), d) == list_.end()) add(d.severity, d.location, d.text);
    const std::size_t not_kept = other.error_count_ > other.max_errors_ ? other.error_count_ - other.max_errors_ : 0;
    error_count_ += static_cast<unsigned>(not_kept);
    sort();
}

void Diagnostics::sort() {
    std::stable_sort(list_.begin(), list_.end(), [](const Diagnostic& a, const Diagnostic& b) {
        return a.location.line != b.location.line ? a.location.line < b.location.line
                                                  : a.location.column < b.location.column;
    });
}

std::string Diagnostics::render(const Diagnostic& diagnostic) const {
    const auto [line, column] = diagnostic.location;
    std::string out = source_->name() + ":";
    if (line != 0) out += std::to_string(line) + ":" + std::to_string(column) + ":";
    out += diagnostic.severity == Severity::error ? " error: " : " warning: ";
    out += diagnostic.text + "\n";
    if (line == 0) return out;

    const std::string_view text = source_->line(line);
    std::size_t caret = column == 0 ? 0 : column - 1;
    if (caret > text.size()) caret = text.size();
    const std::size_t first = caret > shown_width / 2 && text.size() > shown_width ? caret - shown_width / 2 : 0;
    out += "    " + printable(text.substr(first, shown_width)) + "\n    ";
    for (std::size_t i = first; i < caret; ++i) out += text[i] == '\t' ? '\t' : ' ';
    out += "^\n";
    return out;
}

std::string Diagnostics::render_all(std::size_t first) const {
    std::string out;
    for (std::size_t i = first; i < list_.size(); ++i) out += render(list_[i]);
    if (error_count_ <= max_errors_) return out;
    const unsigned hidden = error_count_ - max_errors_;
    out += source_->name() + ": " + std::to_string(hidden) + (max_errors_ != 0 ? " more" : "") +
           (hidden == 1 ? " error" : " errors") + " not shown" +
           (is_hopeless() ? ", and the rest of the text is not read\n" : "\n");
    return out;
}

} // namespace ptarmigan::ptx
