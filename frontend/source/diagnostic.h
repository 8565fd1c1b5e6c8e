// SPDX-License-Identifier: Apache-2.0
// Errors and warnings about a PTX text: collected with their position, shown with the line they
// speak of.
#pragma once

#include "frontend/source/location.h"
#include "frontend/source/source_buffer.h"

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::ptx {

enum class Severity : std::uint8_t { error, warning };

struct Diagnostic {
    SourceLocation location;
    Severity severity = Severity::error;
    std::string text;
    bool operator==(const Diagnostic&) const = default;
};

/// What is wrong with one source text. Keeps the first `max_errors` errors, counts the rest.
class Diagnostics {
public:
    Diagnostics(const SourceBuffer& source, unsigned max_errors) : source_(&source), max_errors_(max_errors) {}

    void error(SourceLocation location, std::string text) { add(Severity::error, location, std::move(text)); }
    void warning(SourceLocation location, std::string text) { add(Severity::warning, location, std::move(text)); }

    const SourceBuffer& source() const { return *source_; }
    unsigned error_count() const { return error_count_; }
    /// Further errors are only counted: no need to find good words for them.
    bool is_full() const { return error_count_ >= max_errors_; }
    /// So many errors that this is no PTX: nothing more is read (an error costs some microseconds, and a text of 50 MB
    /// may have millions).
    bool is_hopeless() const { return error_count_ >= max_counted_errors; }
    static constexpr unsigned max_counted_errors = 100'000;
    bool has_errors() const { return error_count_ != 0; }
    const std::vector<Diagnostic>& list() const { return list_; }
    /// Adds what was found elsewhere about the same text (a body bound later), and restores source
    /// order.
    void append(const Diagnostics& other);
    /// Counts errors that nobody keeps.
    void count_unkept(unsigned errors) { error_count_ += errors; }
    /// Puts what was found out of order (bodies are bound on demand) into source order.
    void sort();

    /// "name:line:col: error: text\n", then the source line and a caret below the column.
    std::string render(const Diagnostic& diagnostic) const;
    /// All from index `first` on, and how many errors were not kept.
    std::string render_all(std::size_t first = 0) const;

private:
    void add(Severity severity, SourceLocation location, std::string text);

    const SourceBuffer* source_;
    unsigned max_errors_;
    unsigned error_count_ = 0;
    std::vector<Diagnostic> list_;
};

/// Thrown where a caller asked for something that has errors. what() is the rendered list.
class DiagnosticError : public std::exception {
public:
    explicit DiagnosticError(std::string text) : text_(std::move(text)) {}
    const char* what() const noexcept override { return text_.c_str(); }

private:
    std::string text_;
};

} // namespace ptarmigan::ptx
