// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/address_size.h"

#include "frontend/parse/lexer.h"

namespace ptarmigan::ptx {

bool declares_32_bit_addresses(std::string_view text) {
    const SourceBuffer none("", "");
    Diagnostics unused(none, 1);
    Lexer lexer(text, unused);
    for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next()) {
        if (token.is_word("address_size")) return lexer.next().text == "32";
        if (token.kind == TokenKind::word && token.text != "version" && token.text != "target") return false;
    }
    return false;
}

} // namespace ptarmigan::ptx
