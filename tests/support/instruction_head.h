// SPDX-License-Identifier: Apache-2.0
// An instruction's head as the parser would hand it to the form matcher.
#pragma once

#include "frontend/parse/syntax.h"

#include <string_view>

namespace ptarmigan::test {

/// Opcode and words of "add.rn.f32"; they point into `head`.
inline ptx::InstructionSyntax syntax_of(std::string_view head) {
    ptx::InstructionSyntax syntax;
    syntax.head = head;
    std::size_t dot = head.find('.');
    syntax.opcode = head.substr(0, dot);
    while (dot != std::string_view::npos) {
        const std::size_t next = head.find('.', dot + 1);
        syntax.words.push_back(head.substr(dot + 1, next - dot - 1));
        dot = next;
    }
    return syntax;
}

} // namespace ptarmigan::test
