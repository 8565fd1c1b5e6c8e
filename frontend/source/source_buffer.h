// SPDX-License-Identifier: Apache-2.0
// A PTX text with its name, and its lines for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptarmigan::ptx {

/// Owns a text; views into it stay valid for the life of the object, which therefore does not move.
class SourceBuffer {
public:
    /// `name` is what messages call the text. A trailing NUL (fat binaries store one) is not part
    /// of the text.
    SourceBuffer(std::string text, std::string name);
    SourceBuffer(const SourceBuffer&) = delete;
    SourceBuffer& operator=(const SourceBuffer&) = delete;

    std::string_view text() const { return text_; }
    const std::string& name() const { return name_; }
    /// The 1-based line without its end, empty if there is none. Walks the text: for messages only.
    std::string_view line(std::uint32_t number) const;

private:
    std::string text_;
    std::string name_;
};

} // namespace ptarmigan::ptx
